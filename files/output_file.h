// Files that a program writes for its user. Every write and the close are checked,
// and the error names the path.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gemmd::files {

// The path that means standard output.
inline constexpr const char* kStandardOutput = "-";

// An errno as a status: "PATH: WHAT: No space left on device".
absl::Status SystemError(int error, const std::string& path, absl::string_view what);

// A file to write from its beginning. Not thread-safe.
//
// A path that does not exist, or that is the only name of a regular file, gets its
// new content atomically when the file is closed, also if the machine goes down then. Until then
// the content is in a temporary file beside it, .NUMBER.part with a random number, which is removed
// if writing fails or the object is destroyed first. Owner, group and permissions stay.
//
// Anything else is written through: a device, a FIFO, a symbolic link's target, a file with several
// names. So is a file that cannot be replaced: one that is mounted by itself, one in a folder that
// this process may not write, one whose owner or group only another user can give it. The old
// content of such a file is cut at the first write, or at the close. An error of a later write says
// that it is lost. A file that was made here is removed if nothing is written. A FIFO waits up to
// ten seconds for its reader. A name of this process's own output, such as - or /dev/stdout, is
// that output: the bytes are appended where it stands.
class OutputFile {
 public:
  enum class Visible {
    kWhole,      // as described above
    kAsItGrows,  // the path is written through in any case
  };

  // An error where the path cannot be written: open it before the work whose result it is to have.
  static absl::StatusOr<OutputFile> Open(std::string path, Visible visible = Visible::kWhole);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  // Appends. After an error, only destruction is allowed.
  absl::Status Write(absl::string_view bytes);

  // Call once, last. The path has the new content only if this returns OK.
  absl::Status Close();

 private:
  struct Part;
  OutputFile(std::string path, int fd, std::unique_ptr<Part> part);
  static absl::StatusOr<OutputFile> WriteThrough(std::string path, Visible visible);
  absl::Status Cut();
  // The error of a write, by errno.
  absl::Status Unwritten() const;

  std::string path_;
  int fd_ = -1;
  bool uncut_ = false;          // written through, and the path still has what it had
  bool loses_ = false;          // written through, and what it had is gone once it is cut
  bool made_ = false;           // written through, and there was no file before
  std::unique_ptr<Part> part_;  // null: written through
};

// Whether a path, as - or /dev/stdout, names what standard output is, and somebody may read it
// there: not so /dev/null.
bool IsStandardOutput(const std::string& path);

// Whether bytes that are written to a path appear on a terminal.
bool IsTerminal(const std::string& path);

// Opens, writes and closes.
absl::Status WriteFile(const std::string& path, absl::string_view content);

}  // namespace gemmd::files
