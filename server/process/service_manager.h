// Tells the service manager, such as systemd, how the server stands (sd_notify(3)).
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gemmd {

// It listens on the datagram socket $NOTIFY_SOCKET. Without that variable nothing is sent. A
// message that is lost costs nothing but the message. Not thread-safe: the main thread tells.
class ServiceManager {
 public:
  ServiceManager();

  void Ready() const { Send("READY=1"); }
  void Stopping() const { Send("STOPPING=1"); }
  // To be called often. Sends as often as $WATCHDOG_USEC wants: twice in that time.
  void Alive();

 private:
  void Send(absl::string_view state) const;

  std::string socket_;
  absl::Duration watchdog_ = absl::InfiniteDuration();
  absl::Time alive_at_ = absl::InfinitePast();
};

}  // namespace gemmd
