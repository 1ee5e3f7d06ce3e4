#include "server/engine/core/tuning_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gemm/quote.h"

namespace gemmd {
namespace {

absl::Status CannotRead(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--tuning-tables: ", gemm::Quoted(path), ": ", why,
                                                 "; allowed: files that can be read"));
}

// Of a descriptor: a little more than a table may have at most.
absl::StatusOr<std::string> ReadText(int file, const std::string& path) {
  struct stat status {};
  if (fstat(file, &status) != 0) return CannotRead(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return CannotRead(path, "not a regular file");
  std::string text;
  std::array<char, 1 << 16> piece;
  while (text.size() <= gemm::kMaxTuningBytes) {
    const ssize_t bytes = read(file, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return CannotRead(path, std::strerror(errno));
    if (bytes == 0) break;
    text.append(piece.data(), static_cast<size_t>(bytes));
  }
  return text;
}

absl::StatusOr<std::string> ReadTable(const std::string& path) {
  // A FIFO would be waited for.
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return CannotRead(path, std::strerror(errno));
  absl::StatusOr<std::string> text = ReadText(file, path);
  close(file);
  return text;
}

}  // namespace

absl::StatusOr<gemm::TuningTable> ReadTuningTables(absl::string_view paths) {
  gemm::TuningTable all;
  for (const absl::string_view path : absl::StrSplit(paths, ',', absl::SkipWhitespace())) {
    const absl::StatusOr<std::string> text = ReadTable(std::string(path));
    if (!text.ok()) return text.status();
    const absl::StatusOr<gemm::TuningTable> table =
        gemm::ParseTuningTable(*text, absl::StrCat("--tuning-tables: ", path));
    if (!table.ok()) return table.status();
    if (const absl::Status merged = all.Merge(*table); !merged.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tuning-tables: ", path, ": ", merged.message()));
    }
  }
  return all;
}

}  // namespace gemmd
