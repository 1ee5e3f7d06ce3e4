// The bound on calls that are not over: of a caller, of an address whose caller is not known, and
// in all.
//
// gRPC 1.51 reads a connection on while the calls that came on it wait for its threads, also calls
// that were reset, and calls of a connection that is closed. UnfinishedCalls bounds those of one
// connection. Here they are added up over connections, those that are closed included. gRPC tells
// through channelz alone how many calls of a connection have begun and how many it has destroyed,
// with those that the gate refused, or that were reset before their service saw them. So that is
// read, when calls begin to add up.
//
// Beyond the bound the largest connections are closed, and new ones from their addresses are
// refused until enough calls are over. A known caller's calls are refused before that.
//
// docs/architecture.md, "What gRPC 1.51 makes necessary", says when it can go.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/floods/transports.h"
#include "server/net/descriptors.h"

namespace gemmd {

// Of all together as many times what one may have.
inline constexpr int64_t kCallersWorthOfCalls = 8;

// A caller, or an address, has too many calls that are not over.
struct TooManyCalls {
  std::string caller;   // empty: nobody known
  std::string address;  // new connections from here are refused for now
  int64_t calls = 0;    // of all their connections
  int64_t bound = 0;
  int64_t closed = 0;  // connections
};

// Thread-safe, except Start and Stop.
class CallBacklog {
 public:
  // Its view of connections, and its means.
  struct Gates {
    // Connections whose number is above `after`, in its order.
    std::function<std::vector<Transport>(intptr_t after)> opened;
    // The calls of a connection; nullopt when it and all of them are over.
    std::function<std::optional<TransportCalls>(intptr_t id)> calls;
    // Connections with more than `bytes` that gRPC has yet to read.
    std::function<std::vector<GivenSockets::Unread>(int64_t bytes)> unread;
    // Closes a connection, as DropConnection does.
    std::function<bool(const std::string& peer)> close;
    // Told from any thread. A bound of 0: as before, and more were closed.
    std::function<void(const TooManyCalls&)> on_excess;
  };

  CallBacklog(int64_t most, Gates gates) : most_(most), gates_(std::move(gates)) {}
  ~CallBacklog() { Stop(); }
  CallBacklog(const CallBacklog&) = delete;

  // Looks from now on whenever that is due, on a thread of its own.
  void Start();
  void Stop();

  // A call's headers have come, or gRPC is done with one that was handed over. Quick.
  void Began();
  void Ended() { unfinished_.fetch_sub(1, std::memory_order_relaxed); }
  // Whose connection this is. The first one counts.
  void Know(const std::string& peer, const std::string& caller);

  // Whether a known caller may begin one more call. RESOURCE_EXHAUSTED.
  absl::Status MayBegin(absl::string_view caller) const;
  // Whether a connection that was accepted from this peer may be served.
  bool MayServe(const std::string& peer);

  // Refuses new connections from the address of this peer for so long.
  void Refuse(const std::string& peer, absl::Duration time);
  // Of an open connection; nullopt where there is none.
  std::optional<TransportCalls> CallsOf(const std::string& peer);

  // Looks now.
  void Look();

  // Of the last look.
  int64_t calls() const;
  // The calls of `peer`, as PeerName has it, are those of this address: an IPv4 address, a
  // network of 64 bits of IPv6, or empty for all Unix sockets.
  static std::string AddressOf(absl::string_view peer);

 private:
  struct Connection {
    std::string peer;
    std::string address;
    int64_t calls = 0;
    bool begun = false;   // a call of it has
    bool closed = false;  // by us
  };
  // Whose calls are counted together.
  struct Owner {
    int64_t calls = 0;
    std::vector<Connection*> connections;  // that have calls
  };
  using Owners = std::map<std::pair<bool, std::string>, Owner>;  // of a caller, whose

  // What a look decides: peers whose connections are to be closed, by address.
  using Excess = std::map<std::string, std::pair<TooManyCalls, std::vector<std::string>>>;

  void Loop();
  bool Due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadOpened() ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_);
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_);
  // `unread`: by peer.
  Owners Sum(std::unordered_map<std::string, GivenSockets::Unread> unread)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_, mutex_);
  // Of one owner, where all together are not to have more than their bound.
  int64_t BoundOf(const Owners& owners) const;
  // Refuses new connections of `address` for now. Returns its peers that are to be closed.
  std::vector<std::string>& RefuseExcess(const std::string& address, TooManyCalls about,
                                         absl::Time now, Excess& excess)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Excess Judge(const Owners& owners, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_, mutex_);

  const int64_t most_;
  const Gates gates_;
  std::atomic<int64_t> unfinished_{0};  // begun and not ended, but for what gRPC does not tell
  std::atomic<int64_t> looked_at_{0};   // its value at the last look
  std::atomic<bool> asleep_{false};     // until a look is due
  std::atomic<bool> any_full_{false};   // full_ is not empty

  Mutex looking_;
  std::map<intptr_t, Connection> connections_ ABSL_GUARDED_BY(looking_);
  intptr_t last_ ABSL_GUARDED_BY(looking_) = 0;
  intptr_t next_quiet_ ABSL_GUARDED_BY(looking_) = 0;

  mutable Mutex mutex_;  // after looking_
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;  // calls are there that may be too many soon
  std::unordered_map<std::string, int> fresh_ ABSL_GUARDED_BY(mutex_);  // connections, by address
  std::unordered_map<std::string, std::string> callers_ ABSL_GUARDED_BY(mutex_);  // by peer
  std::unordered_map<std::string, int64_t> full_ ABSL_GUARDED_BY(mutex_);  // calls, by caller
  std::map<std::string, absl::Time> refused_ ABSL_GUARDED_BY(mutex_);      // addresses, until
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace gemmd
