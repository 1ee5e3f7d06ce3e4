// Tracks the unfinished files of this process, so that none is left when a signal ends
// it.
#pragma once

#include <string>

namespace gemmd::files {

// While this object lives, its file is removed when a signal ends the process.
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
  // The index at which the handler finds the path. -1: too many files are unfinished,
  // and this one is not removed.
  int slot_ = -1;
};

// Call in main, before any thread is started. SIGHUP, SIGINT, SIGTERM and SIGXCPU then
// remove the unfinished files before they end the process. A file beyond its size limit
// fails the write (EFBIG) instead of ending the process by SIGXFSZ, and so does a pipe that
// nobody reads any more (EPIPE instead of SIGPIPE). Calls OpenStandardDescriptors.
void PrepareProcess();

// Ends the process as if SIGPIPE had: without a word, as a shell's user expects of a program whose
// reader has seen enough.
[[noreturn]] void EndUnread();

}  // namespace gemmd::files
