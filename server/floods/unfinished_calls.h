// The bound on a connection's calls that the server has not finished.
//
// HTTP/2 bounds the calls that a client has open (--max-streams-per-connection). A call that it
// resets no longer counts there, but costs memory until the server is done with it, and gRPC 1.51
// reads on meanwhile (CVE-2023-44487). So calls are counted here from their headers until gRPC
// lets them go. A connection far above its bound gets no more calls, and is closed.
//
// docs/architecture.md, "What gRPC 1.51 makes necessary", says when it can go.
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
  // Told of a connection by its peer, as ServerContext::peer() has it; from the thread of a call,
  // and without a lock.
  using Told = std::function<void(const std::string& peer)>;
  using ToldOfCaller = std::function<void(const std::string& peer, const std::string& caller)>;

  // `on_excess` is called once for a connection that has more than `most`. `on_caller` is called
  // for one whose client has shown who it is: with the first of its unfinished calls. `on_end` of
  // each call.
  UnfinishedCalls(
      int64_t most, Told on_excess, ToldOfCaller on_caller, std::function<void()> on_end = [] {})
      : most_(most),
        on_excess_(std::move(on_excess)),
        on_caller_(std::move(on_caller)),
        on_end_(std::move(on_end)) {}
  // After the last call has ended, on a thread of gRPC: the lock shows it to the thread sanitizer.
  ~UnfinishedCalls() { MutexLock lock(mutex_); }
  UnfinishedCalls(const UnfinishedCalls&) = delete;

  // A call's headers have come, `of_caller` where they have shown whose: a caller of this name.
  // False where its connection has too many: it is refused then, and does not count.
  bool Begin(uint64_t connection, bool of_caller, const std::string& caller = "");
  // A call that began is handed over, and knows its peer.
  void HandOver(uint64_t connection, const std::string& peer);
  // gRPC is done with a call that was handed over.
  void End(uint64_t connection);

  // Whether a call that was let through waits for its request on a connection whose peer no call
  // has told yet.
  bool FirstCallWaits() const;

  size_t connections() const;

 private:
  struct Connection {
    // Whose headers have come, and that are not handed over yet: in this period, and in the one
    // before.
    int64_t begun = 0;
    int64_t begun_before = 0;
    absl::Time period_began = absl::InfinitePast();
    int64_t handed_over = 0;  // and not over
    std::string peer;         // empty: not known yet
    bool exceeded = false;
    bool reported = false;
    bool of_caller = false;
    std::string caller;
    bool told_of_caller = false;
    absl::Time last_call;

    int64_t calls() const { return begun + begun_before + handed_over; }
  };

  // gRPC tells of no end where it drops a call before it is handed over, as for a message above its
  // limit. Calls like that are forgotten after a minute or two.
  static void ForgetDropped(Connection& connection, absl::Time now);
  // And their connections when no call has come for long; also those that were above their bound:
  // gRPC still reads what they sent, and would have them reported again.
  void ForgetOld(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The peer, where its excess is to be reported now; empty where not.
  static std::string ToReport(Connection& connection);

  const int64_t most_;
  const Told on_excess_;
  const ToldOfCaller on_caller_;
  const std::function<void()> on_end_;
  mutable Mutex mutex_;
  std::unordered_map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = 1024;  // connections
};

}  // namespace gemmd
