// Closes connections that send much that no call wants, such as floods of control frames.
//
// gRPC 1.51 reads frames such as WINDOW_UPDATE, PRIORITY, acknowledgements of PING and SETTINGS,
// and empty CONTINUATION as fast as they come, and closes no connection for them (CVE-2019-9511 to
// 9518). It does not tell of frames. But the kernel tells how many bytes a connection has sent,
// calls tell how many they have read, and channelz tells of calls. What is left over is frames. It
// counts against the connection, at most so much a second is forgiven, and past a bound it is
// closed. The bound is small before a call of the connection was let through.
//
// docs/architecture.md, "What gRPC 1.51 makes necessary", says when it can go.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/floods/transports.h"
#include "server/net/descriptors.h"

namespace gemmd {

// Connections that one look has closed.
struct FrameFlood {
  std::string peer;   // of the first
  int64_t bytes = 0;  // that no call of it wanted
  int64_t closed = 0;
};

// Thread-safe. Look on one thread.
class FrameFloods {
 public:
  struct Gates {
    // What the open connections have sent and received.
    std::function<std::vector<GivenSockets::Traffic>()> traffic;
    // Of an open connection; nullopt where there is none.
    std::function<std::optional<TransportCalls>(const std::string& peer)> calls;
    // Whether an accepted call waits for its request on a connection whose peer is not known.
    std::function<bool()> first_call_waits;
    // Closes a connection, and refuses new ones from its address for kRefuseFor.
    std::function<void(const std::string& peer)> close;
    std::function<void(const FrameFlood&)> on_flood;
  };

  // Of connections without and with a call that was let through.
  static constexpr int64_t kMostOfStrangers = 1 << 20;
  static constexpr int64_t kMostOfKnown = 4 << 20;
  // Forgiven in a second.
  static constexpr int64_t kRateOfStrangers = 64 << 10;
  static constexpr int64_t kRateOfKnown = 256 << 10;
  // For which new connections from the address of a closed one are refused.
  static constexpr absl::Duration kRefuseFor = absl::Seconds(10);

  // `message_bytes`: the longest message. As much may come of each call and not be read: it is on
  // its way, gRPC refused it, or the call was refused or cancelled.
  FrameFloods(int64_t message_bytes, Gates gates)
      : message_bytes_(message_bytes), gates_(std::move(gates)) {}
  FrameFloods(const FrameFloods&) = delete;

  // A call of this connection was let through. It adds the bytes of the messages that it reads to
  // the result, which lives as long as the call wants.
  std::shared_ptr<std::atomic<int64_t>> CallBegins(const std::string& peer);

  // Looks now, unless the last look was long and just now.
  void Look();

  size_t connections() const;

 private:
  struct Account {
    int64_t received = 0;
    int64_t sent = 0;
    int64_t read = 0;      // by calls, of what was sent
    int64_t read_now = 0;  // since
    int64_t calls = 0;     // that had begun when it was last a suspect
    int64_t begun = 0;     // of these, those that an earlier excess has used up
    int64_t excess = 0;
    bool closed = false;  // by us; gRPC may see that late
    uint64_t look = 0;    // the last that found it open, or before its first call
    std::shared_ptr<std::atomic<int64_t>> wanted;  // null: no call was let through

    // What has come since the last look and is no more than `forgiven`.
    void Add(const GivenSockets::Traffic& now, absl::Duration passed);
  };

  // Whether the connection has sent more than it may.
  bool Floods(const std::string& peer, Account& account);

  const int64_t message_bytes_;
  const Gates gates_;
  absl::Time last_look_ = absl::InfinitePast();
  absl::Time next_look_ = absl::InfinitePast();
  mutable Mutex mutex_;
  uint64_t looks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Account> accounts_ ABSL_GUARDED_BY(mutex_);  // by peer
};

}  // namespace gemmd
