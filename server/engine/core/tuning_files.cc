#include "server/engine/core/tuning_files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gemm/quote.h"

namespace gemmd {
namespace {

// At most one byte more than a table may have.
absl::StatusOr<std::string> ReadTable(const std::string& path) {
  const auto cannot_read = [&path] {
    return absl::InvalidArgumentError(absl::StrCat("--tuning-tables: ", gemm::Quoted(path), ": ",
                                                   std::strerror(errno),
                                                   "; allowed: files that can be read"));
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot_read();
  std::string text(gemm::kMaxTuningBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  // A folder can be opened, but fails here.
  if (file.bad()) return cannot_read();
  text.resize(static_cast<size_t>(file.gcount()));
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
