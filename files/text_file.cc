#include "files/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "files/output_file.h"

namespace gemmd::files {
namespace {

absl::StatusOr<std::string> ReadAll(int file, const std::string& path, size_t max_bytes) {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (true) {
    const ssize_t bytes = read(file, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return SystemError(errno, path, "cannot be read");
    if (bytes == 0) return text;
    text.append(piece.data(), static_cast<size_t>(bytes));
    if (text.size() > max_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": has more than ", max_bytes, " bytes, the most that are read"));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadText(const std::string& path, size_t max_bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return SystemError(errno, path, "cannot be read");
  absl::StatusOr<std::string> text = ReadAll(file, path, max_bytes);
  (void)close(file);
  return text;
}

bool IsRegularFile(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace gemmd::files
