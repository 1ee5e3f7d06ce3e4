// Files that a program writes for its user. Every write is checked, the close
// too, and the error names the path.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gemmd::files {

// An error of the system as a status: "PATH: WHAT: No space left on device".
// `error` is an errno.
absl::Status SystemError(int error, const std::string& path, absl::string_view what);

// A file to write from its beginning. Not thread-safe.
//
// A path that does not exist, or that is the only name of a regular file, gets
// its new content at once when the file is closed: until then the content goes
// to a file beside it, which is removed where the writing fails or the object
// is destroyed before. Whatever else the path names stays what it is and is
// written through: a device, a FIFO, a symbolic link's target, a file with
// several names. Of a FIFO the reader is awaited for ten seconds.
class OutputFile {
 public:
  enum class Visible {
    kWhole,      // as described above
    kAsItGrows,  // the path is written through in any case; what was there is cut
  };

  static absl::StatusOr<OutputFile> Open(std::string path, Visible visible = Visible::kWhole);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  // At the end of what was written. After an error nothing but destruction
  // makes sense.
  absl::Status Write(absl::string_view bytes);

  // To be called once, last: the content is the path's only if this is OK.
  absl::Status Close();

 private:
  struct Part;
  OutputFile(std::string path, int fd, std::unique_ptr<Part> part);

  std::string path_;
  int fd_ = -1;
  std::unique_ptr<Part> part_;  // null: written through
};

// Opens, writes and closes.
absl::Status WriteFile(const std::string& path, absl::string_view content);

}  // namespace gemmd::files
