#include "files/output_stream.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "files/output_file.h"

namespace gemmd::files {

OutputStream::Buffer::Buffer(int fd) : fd_(fd) {
  setp(bytes_.data(), bytes_.data() + bytes_.size());
}

OutputStream::Buffer::int_type OutputStream::Buffer::overflow(int_type c) {
  if (sync() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
  return traits_type::not_eof(c);
}

int OutputStream::Buffer::sync() {
  const char* from = pbase();
  while (error_ == 0 && from < pptr()) {
    const ssize_t n = ::write(fd_, from, static_cast<size_t>(pptr() - from));
    if (n >= 0) {
      from += n;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  setp(bytes_.data(), bytes_.data() + bytes_.size());
  return error_ == 0 ? 0 : -1;
}

void OutputStream::Buffer::Close() {
  (void)sync();
  if (::close(fd_) != 0 && errno != EINTR && error_ == 0) error_ = errno;
}

OutputStream::OutputStream(int fd, std::string name)
    : std::ostream(nullptr), name_(std::move(name)), buffer_(fd) {
  rdbuf(&buffer_);
}

bool OutputStream::unread() const { return buffer_.error() == EPIPE; }

absl::Status OutputStream::Close() {
  buffer_.Close();
  if (buffer_.error() == 0) return absl::OkStatus();
  return SystemError(buffer_.error(), name_, "cannot be written");
}

}  // namespace gemmd::files
