// Accepts connections, and hands them to whoever serves them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/net/descriptors.h"
#include "server/net/listen_socket.h"

namespace gemmd {

struct ConnectionStats {
  int64_t open = 0;
  int64_t limit = 0;
  int64_t accepted = 0;
  int64_t refused = 0;   // closed at once, for want of room below the limit
  int64_t failures = 0;  // of accept(2), such as for want of descriptors
};

// Accepts from Start to Stop on a thread of its own. No error of one connection,
// and no want of descriptors or memory, ends that: it pauses and goes on. What
// does end it, a listening socket that is no more, is told by Health.
// Thread-safe but for Start and Stop.
class Acceptor {
 public:
  // `take` owns each connection, a socket that does not block, and closes it at
  // its end. It is called on the acceptor's thread.
  using Take = std::function<void(UniqueFd connection)>;

  // `fds` listen, do not block, and outlive this.
  Acceptor(std::vector<int> fds, int max_connections);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void Start(Take take);
  // No call of `take` is under way afterwards. May come twice.
  void Stop();

  // OK as long as connections are accepted.
  absl::Status Health() const;
  // Looks at every open connection: for scrapes, not for calls.
  ConnectionStats Stats() const;
  int64_t Refused() const;

 private:
  void Run();
  // Accepts some of what waits on `fd`. How long to wait before the next attempt.
  absl::Duration AcceptSome(int fd);
  bool HasRoom();
  void Fail(absl::Status status);

  const std::vector<int> fds_;
  const UniqueFd stop_;  // an eventfd that becomes readable when this is to stop
  Take take_;
  std::thread thread_;

  mutable Mutex mutex_;
  mutable GivenSockets given_ ABSL_GUARDED_BY(mutex_);
  ConnectionStats stats_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point counted_ ABSL_GUARDED_BY(mutex_);
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
