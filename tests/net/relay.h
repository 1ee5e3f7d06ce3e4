// A network that can fail silently.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gemmd {

// Passes bytes between TCP clients and a server of this machine, until it is
// frozen: then connections stay open and nothing comes through any more.
class Relay {
 public:
  // `server` is host:port, with the host 127.0.0.1.
  explicit Relay(const std::string& server);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  const std::string& address() const { return address_; }
  void Freeze() { frozen_ = true; }

 private:
  void Accept(int port);
  void Pass(int from, int to);

  std::string address_;
  int listener_ = -1;
  std::atomic<bool> frozen_{false};
  std::atomic<bool> stopped_{false};
  std::thread acceptor_;
  std::mutex mutex_;
  std::vector<int> sockets_;          // under mutex_
  std::vector<std::thread> passers_;  // under mutex_
};

}  // namespace gemmd
