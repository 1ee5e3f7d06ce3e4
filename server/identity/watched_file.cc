#include "server/identity/watched_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

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
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return CannotRead(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': not a regular file; allowed: a file that can be read"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return CannotRead(path, std::strerror(errno));
  std::string text(max_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return CannotRead(path, "a read failed");
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': more than ", max_bytes, " bytes; allowed: up to ", max_bytes));
  }
  return text;
}

}  // namespace gemmd
