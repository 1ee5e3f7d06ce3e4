#include "server/logs/patient_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

constexpr absl::Duration kImpatience = absl::Minutes(1);
constexpr absl::Duration kPause = absl::Milliseconds(1);

// Writes what there is room for, without waiting for more. The open file may be one that others
// have, too, so it is not made non-blocking itself.
class Outlet {
 public:
  explicit Outlet(int fd) : fd_(fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) return;
    is_socket_ = S_ISSOCK(status.st_mode);
    if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return;
    const std::string name = absl::StrCat("/proc/self/fd/", fd);
    own_ = open(name.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own_ >= 0) fd_ = own_;
  }
  ~Outlet() {
    if (own_ >= 0) (void)close(own_);
  }
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  int fd() const { return fd_; }
  // As write(2), or EAGAIN.
  ssize_t Write(absl::string_view text) const {
    if (is_socket_) return send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return write(fd_, text.data(), text.size());
  }

 private:
  int fd_;
  int own_ = -1;
  bool is_socket_ = false;
};

}  // namespace

PatientSink::PatientSink(int fd, absl::Duration patience, std::function<std::string(int64_t)> note)
    : fd_(fd), patience_(patience), note_(std::move(note)) {}

void PatientSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t formatted;
  formatter_->format(message, formatted);
  const absl::string_view line(formatted.data(), formatted.size());
  // The line before may have been cut.
  const std::string text =
      left_out_ > 0 ? absl::StrCat("\n", note_(left_out_), line) : std::string(line);
  const absl::Time now = SystemSteadyNow();
  if (Write(text, now < patient_from_ ? now : now + patience_)) {
    left_out_ = 0;
    return;
  }
  ++left_out_;
  patient_from_ = SystemSteadyNow() + kImpatience;
}

bool PatientSink::Write(absl::string_view text, absl::Time limit) const {
  const Outlet outlet(fd_);
  while (!text.empty()) {
    const ssize_t written = outlet.Write(text);
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return true;  // nobody can read it any more, or a disk is full
    const absl::Duration left = limit - SystemSteadyNow();
    if (left <= absl::ZeroDuration()) return false;
    pollfd writable = {.fd = outlet.fd(), .events = POLLOUT, .revents = 0};
    (void)poll(&writable, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    // A terminal is called writable also where it has no room for a line.
    absl::SleepFor(std::min(kPause, left));
  }
  return true;
}

}  // namespace gemmd
