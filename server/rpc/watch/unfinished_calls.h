// The bound on a connection's calls that the server has not finished.
//
// HTTP/2 bounds the calls that a client has open (--max-streams-per-connection). A call that it
// resets no longer counts there, but costs memory until the server is done with it, and gRPC 1.51
// reads on meanwhile (CVE-2023-44487). So calls are counted here from their headers until gRPC
// lets them go. A connection far above its bound gets no more calls, and is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

// Thread-safe. Connections are known by a number.
class UnfinishedCalls {
 public:
  // `on_excess` is called once for a connection that has more than `most`, with its peer, as
  // ServerContext::peer() has it; from the thread of a call, and without a lock.
  UnfinishedCalls(int64_t most, std::function<void(const std::string& peer)> on_excess)
      : most_(most), on_excess_(std::move(on_excess)) {}
  // After the last call has ended, on a thread of gRPC: the lock shows it to the thread sanitizer.
  ~UnfinishedCalls() { MutexLock lock(mutex_); }
  UnfinishedCalls(const UnfinishedCalls&) = delete;

  // A call's headers have come. False where its connection has too many: it is refused then,
  // and does not count.
  bool Begin(uint64_t connection);
  // The call is handed over, and knows its peer.
  void LearnPeer(uint64_t connection, const std::string& peer);
  // gRPC is done with a call that began.
  void End(uint64_t connection);

  size_t connections() const;

 private:
  struct Connection {
    int64_t calls = 0;
    std::string peer;  // empty: not known yet
    bool exceeded = false;
    bool reported = false;
    absl::Time last_begin;
  };

  // gRPC tells of no end where it drops a call before it is handed over, as without an authority;
  // and a connection that was above its bound stays known, since gRPC still reads what it sent and
  // would have it reported again. Such connections are forgotten when no call has come for long.
  void ForgetOld(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The peer, where its excess is to be reported now; empty where not.
  static std::string ToReport(Connection& connection);

  const int64_t most_;
  const std::function<void(const std::string& peer)> on_excess_;
  mutable Mutex mutex_;
  std::unordered_map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = 1024;  // connections
};

}  // namespace gemmd
