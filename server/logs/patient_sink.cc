#include "server/logs/patient_sink.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace gemmd {
namespace {

bool IsSocket(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

// A pipe that poll calls ready takes so much without waiting.
constexpr size_t kLargestWrite = PIPE_BUF;

}  // namespace

PatientSink::PatientSink(int fd, absl::Duration patience, std::function<std::string(int64_t)> note)
    : fd_(fd), is_socket_(IsSocket(fd)), patience_(patience), note_(std::move(note)) {}

void PatientSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t formatted;
  formatter_->format(message, formatted);
  const absl::string_view line(formatted.data(), formatted.size());
  const bool stuck = left_out_ > 0;
  // The line before may have been cut.
  const std::string text = stuck ? absl::StrCat("\n", note_(left_out_), line) : std::string(line);
  // Whoever was waited for once is not waited for again before there is room.
  const absl::Time limit = stuck ? absl::InfinitePast() : absl::Now() + patience_;
  left_out_ = Write(text, limit) ? 0 : left_out_ + 1;
}

bool PatientSink::Write(absl::string_view text, absl::Time limit) const {
  while (!text.empty()) {
    pollfd writable = {.fd = fd_, .events = POLLOUT, .revents = 0};
    const absl::Duration left = std::max(limit - absl::Now(), absl::ZeroDuration());
    const int ready = poll(&writable, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return false;
    const ssize_t written = WriteSome(text.substr(0, kLargestWrite));
    if (written < 0 && (errno == EINTR || errno == EAGAIN) && absl::Now() < limit) continue;
    if (written < 0 && errno == EAGAIN) return false;
    if (written < 0) return true;  // nobody can read it any more, or a disk is full
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

ssize_t PatientSink::WriteSome(absl::string_view text) const {
  if (is_socket_) return send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return write(fd_, text.data(), text.size());
}

}  // namespace gemmd
