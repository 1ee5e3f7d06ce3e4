#include "server/identity/watched_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

absl::Status CannotRead(const std::string& path, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("'", path, "': ", why, "; allowed: a file that can be read"));
}

// The first `most_bytes` of it.
absl::StatusOr<std::string> ReadDescriptor(int file, const std::string& path, size_t most_bytes) {
  struct stat status {};
  if (fstat(file, &status) != 0) return CannotRead(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': not a regular file; allowed: a file that can be read"));
  }
  std::string text(most_bytes, '\0');
  size_t end = 0;
  while (end < most_bytes) {
    const ssize_t bytes = read(file, text.data() + end, most_bytes - end);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return CannotRead(path, std::strerror(errno));
    if (bytes == 0) break;
    end += static_cast<size_t>(bytes);
  }
  text.resize(end);
  return text;
}

}  // namespace

FileVersion VersionOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .bytes = status.st_size,
          .modified_ns = Nanoseconds(status.st_mtim),
          .changed_ns = Nanoseconds(status.st_ctim)};
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes) {
  // A FIFO would be waited for.
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return CannotRead(path, std::strerror(errno));
  absl::StatusOr<std::string> text = ReadDescriptor(file, path, max_bytes + 1);
  close(file);
  if (text.ok() && text->size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': more than ", max_bytes, " bytes; allowed: up to ", max_bytes));
  }
  return text;
}

}  // namespace gemmd
