#include "server/process/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Whether the watchdog is for this process, and not for one that started it.
bool WatchdogIsOurs() {
  const std::string pid = Variable("WATCHDOG_PID");
  int64_t number = 0;
  return pid.empty() || (absl::SimpleAtoi(pid, &number) && number == getpid());
}

}  // namespace

ServiceManager::ServiceManager() : socket_(Variable("NOTIFY_SOCKET")) {
  int64_t microseconds = 0;
  if (absl::SimpleAtoi(Variable("WATCHDOG_USEC"), &microseconds) && microseconds > 0 &&
      WatchdogIsOurs()) {
    watchdog_ = absl::Microseconds(microseconds);
  }
}

void ServiceManager::Alive() {
  if (watchdog_ == absl::InfiniteDuration()) return;
  const absl::Time now = SteadyNow();
  if (now - alive_at_ < watchdog_ / 2) return;
  alive_at_ = now;
  Send("WATCHDOG=1");
}

void ServiceManager::Send(absl::string_view state) const {
  sockaddr_un address = {.sun_family = AF_UNIX};
  if (socket_.empty() || socket_.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return;
  // Never waits: a manager that does not read must not hold the server.
  (void)!sendto(descriptor, state.data(), state.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address), length);
  close(descriptor);
}

}  // namespace gemmd
