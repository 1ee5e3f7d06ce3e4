// Text that a program reads of a file that its user names.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace gemmd::files {

// The content of the path. A FIFO, such as the shell makes of <(command), is waited for.
// NOT_FOUND, PERMISSION_DENIED and other statuses of the system; INVALID_ARGUMENT if it is a
// folder, or has more than `max_bytes`. Every error names the path.
absl::StatusOr<std::string> ReadText(const std::string& path, size_t max_bytes);

// Whether the path is a regular file, or a link to one.
bool IsRegularFile(const std::string& path);

}  // namespace gemmd::files
