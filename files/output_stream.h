// Standard output as a stream whose errors have their reason.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>
#include <string>

#include "absl/status/status.h"

namespace gemmd::files {

// Text to a file descriptor that somebody else opened. The first failed write
// ends the output: what follows is dropped, and the stream is bad. Not
// thread-safe.
class OutputStream : public std::ostream {
 public:
  // `name` is for errors, such as "standard output".
  OutputStream(int fd, std::string name);

  // To be called once, last: writes what is buffered and closes the descriptor.
  // The first error since the beginning.
  absl::Status Close();

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(int fd);
    // The errno of the first write that failed; 0: none has.
    int error() const { return error_; }
    void Close();

   protected:
    int_type overflow(int_type c) override;
    int sync() override;

   private:
    const int fd_;
    int error_ = 0;
    std::array<char, 8192> bytes_;
  };

  const std::string name_;
  Buffer buffer_;
};

}  // namespace gemmd::files
