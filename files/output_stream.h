// Standard output as a stream that keeps the reason of an error.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>
#include <string>

#include "absl/status/status.h"

namespace gemmd::files {

// Writes text to a file descriptor that somebody else opened. After the first failed
// write, the stream is bad and further text is dropped. Not thread-safe.
class OutputStream : public std::ostream {
 public:
  // `name` is for errors, such as "standard output".
  OutputStream(int fd, std::string name);

  // Call once, last: flushes the buffer and closes the descriptor. Returns the first
  // error since the beginning.
  absl::Status Close();

  // Whether the first error was that nobody reads any more, as "| head" does not. After Close.
  bool unread() const;

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
