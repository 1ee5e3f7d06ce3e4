// Files that the server reads again when they change.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gemmd {

// Tells the versions of a file apart: those of the file that a link leads to. So a link that is
// turned (as Kubernetes does with secrets) is a change.
struct FileVersion {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t bytes = -1;  // -1: there is none
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

FileVersion VersionOf(const std::string& path);

// The error names the path and why. UNAVAILABLE: it cannot be read, now at least.
// INVALID_ARGUMENT: it is no regular file, or has more than `max_bytes`.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes);

}  // namespace gemmd
