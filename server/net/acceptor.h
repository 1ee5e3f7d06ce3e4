// Accepts connections, and hands them to the code that serves them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/net/descriptors.h"
#include "server/net/listen_socket.h"
#include "server/net/unproven_connections.h"

namespace gemmd {

struct ConnectionStats {
  int64_t open = 0;
  int64_t limit = 0;
  int64_t accepted = 0;
  int64_t refused = 0;   // closed at once, for want of room below the limit
  int64_t failures = 0;  // of accept(2), such as for want of descriptors
  // Of those that are open: in their handshake, and older than AcceptorLimits::age.
  int64_t handshaking = 0;
  int64_t leaving = 0;
  int64_t handshake_limit = 0;     // 0: none
  int64_t refused_handshakes = 0;  // closed at once, for want of room below that limit
  int64_t made_room = 0;           // ended by AcceptorLimits::proof
  int64_t refused_peers = 0;       // closed at once, as MayServe said
  int64_t refused_users = 0;       // closed at once, for AcceptorLimits::own_user
  // That gRPC has not destroyed, and the most of one caller; of a listener of gRPC.
  int64_t calls = 0;
  int64_t calls_limit = 0;
  // Of shared memory that clients have registered; no limit: none may.
  int64_t regions = 0;
  int64_t regions_limit = 0;
};

struct AcceptorLimits {
  int connections = 1;
  // The most connections in their handshake. 0: any number.
  int handshakes = 0;
  // From this age on, a connection counts as leaving. 0: never.
  absl::Duration age;
  // Where there is no room, connections end that are older than this and that nobody has proven.
  // 0: none does.
  absl::Duration proof;
  // Unix sockets serve the user of this process alone, and root.
  bool own_user = false;
};

// Accepts connections from Start to Stop, on its own thread. After an error of one
// connection, or when descriptors or memory run out, it pauses and goes on. The loss of
// a listening socket ends it; Health reports that. Thread-safe, except Start and Stop.
class Acceptor {
 public:
  // Takes ownership of each connection, a non-blocking socket. Called on the acceptor's
  // thread.
  using Take = std::function<void(UniqueFd connection)>;
  // The number of open connections whose handshake has ended, as far as whoever took
  // them knows. Called from any thread.
  using CountEstablished = std::function<int64_t()>;
  // Whether a connection of this peer, as PeerName has it, may be served. Called on the
  // acceptor's thread.
  using MayServe = std::function<bool(const std::string& peer)>;

  // `fds` are listening, non-blocking, and outlive this object.
  Acceptor(std::vector<int> fds, AcceptorLimits limits);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Without `count_established` no connection counts as in its handshake.
  void Start(Take take, CountEstablished count_established = nullptr, MayServe may_serve = nullptr);
  // Afterwards `take` is no longer called or running. May be called twice.
  void Stop();

  // The client of this connection has shown who it is. Thread-safe and quick.
  void Prove(const std::string& peer) { unproven_.Prove(peer); }

  // OK as long as connections are accepted.
  absl::Status Health() const;
  // Checks every open connection, so it is for metrics, not for the path of a call.
  ConnectionStats Stats() const;
  int64_t Refused() const;  // for either limit
  // Ends an open connection by its peer. False where there is none.
  bool ShutDown(const std::string& peer);
  // Connections with more than `bytes` that whoever took them has yet to read.
  std::vector<GivenSockets::Unread> UnreadAbove(int64_t bytes) const;
  // What each open connection has moved.
  std::vector<GivenSockets::Traffic> Traffic() const;
  // Ends every open connection. Whoever took them sees that.
  void ShutDownConnections();

 private:
  void Run();
  // Accepts some of the connections that wait on `fd`. Returns how long to wait before
  // the next attempt.
  absl::Duration AcceptSome(int fd);
  bool HasRoom();
  // The next connection may find room. This one does not, because the owner has yet to close those
  // that are ended.
  void MakeRoom();
  bool HasRoomForHandshake();
  bool MayBeServed(int fd);
  void Fail(absl::Status status);

  const std::vector<int> fds_;
  const AcceptorLimits limits_;
  const UniqueFd stop_;  // an eventfd that becomes readable when this is to stop
  Take take_;
  MayServe may_serve_;
  // Of the acceptor's thread: the handshakes at the last count plus those that began
  // since, and when they may be counted again.
  int64_t handshakes_ = 0;
  std::chrono::steady_clock::time_point count_handshakes_at_;
  std::chrono::steady_clock::time_point made_room_;
  std::thread thread_;
  UnprovenConnections unproven_;

  mutable Mutex mutex_;
  mutable GivenSockets given_ ABSL_GUARDED_BY(mutex_);
  CountEstablished count_established_ ABSL_GUARDED_BY(mutex_);
  ConnectionStats stats_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point counted_ ABSL_GUARDED_BY(mutex_);
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
