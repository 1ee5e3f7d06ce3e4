// The unfinished files of this process, so that none is left where a signal ends
// it.
#pragma once

#include <string>

namespace gemmd::files {

// Names a file to remove when a signal ends the process, as long as it lives.
// Thread-safe.
class PartFile {
 public:
  explicit PartFile(std::string path);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  // Where the handler finds the path; -1 where too many files are unfinished,
  // and this one is not removed.
  int slot_ = -1;
};

// For a program's main, before it starts threads: SIGHUP, SIGINT, SIGTERM and
// SIGXCPU remove the unfinished files and then end the process as they would
// have. A file that outgrows its limit is an error of the write (EFBIG), not the
// end of the process by SIGXFSZ. Descriptors 0 to 2 that are closed are taken, so
// that no socket or file gets their numbers and, with them, the program's output.
void PrepareProcess();

}  // namespace gemmd::files
