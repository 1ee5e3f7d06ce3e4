// Reading and writing .npy files.

#include "client/cpp/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gemmd::client {
namespace {

// A file descriptor, closed with the object.
class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0)
      : fd_(open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { (void)Close(); }

  bool ok() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  int Close() { return fd_ < 0 ? 0 : close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// What the last system call on `path` failed with.
absl::Status SystemError(const std::string& path, absl::string_view what) {
  const int error = errno;
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

// Up to `bytes` bytes; fewer at the end of the file alone.
absl::StatusOr<uint64_t> ReadUpTo(const File& file, const std::string& path, char* to,
                                  uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t n = read(file.fd(), to + done, std::min<uint64_t>(bytes - done, 1u << 30));
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(path, "cannot be read");
    done += static_cast<uint64_t>(n);
  }
  return done;
}

absl::Status WriteAll(const File& file, const std::string& path, const char* from, uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t n = write(file.fd(), from, std::min<uint64_t>(bytes, 1u << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(path, "cannot be written");
    from += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<NpyHeader> ReadHeader(const File& file, const std::string& path,
                                     std::optional<DataType> hint) {
  if (!file.ok()) return SystemError(path, "cannot be opened");
  struct stat info;
  if (fstat(file.fd(), &info) != 0) return SystemError(path, "cannot be read");
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  std::string prefix(kMaxNpyHeaderBytes, '\0');
  absl::StatusOr<uint64_t> length = ReadUpTo(file, path, prefix.data(), prefix.size());
  if (!length.ok()) return length.status();
  absl::StatusOr<NpyHeader> header = ReadNpyHeader(absl::string_view(prefix.data(), *length), hint);
  if (!header.ok()) return InFile(path, header.status());
  const uint64_t file_bytes = static_cast<uint64_t>(info.st_size);
  const uint64_t expected = header->data_offset + header->shape.bytes();
  if (file_bytes != expected) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the file has ", file_bytes,
                                                   " bytes; its header (", ToString(header->shape),
                                                   ") asks for ", expected));
  }
  return header;
}

}  // namespace

absl::StatusOr<NpyHeader> StatNpy(const std::string& path, std::optional<DataType> hint) {
  return ReadHeader(File(path, O_RDONLY), path, hint);
}

absl::StatusOr<HostMatrix> ReadNpy(const std::string& path, std::optional<DataType> hint) {
  const File file(path, O_RDONLY);
  absl::StatusOr<NpyHeader> header = ReadHeader(file, path, hint);
  if (!header.ok()) return header.status();
  absl::StatusOr<HostMatrix> matrix = HostMatrix::Allocate(header->shape);
  if (!matrix.ok()) return InFile(path, matrix.status());
  if (lseek(file.fd(), static_cast<off_t>(header->data_offset), SEEK_SET) < 0) {
    return SystemError(path, "cannot be read");
  }
  absl::StatusOr<uint64_t> length =
      ReadUpTo(file, path, reinterpret_cast<char*>(matrix->data()), matrix->bytes());
  if (!length.ok()) return length.status();
  if (*length != matrix->bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the file was cut while it was read"));
  }
  return matrix;
}

absl::Status WriteNpy(const std::string& path, const MatrixView& matrix) {
  absl::StatusOr<std::string> header = EncodeNpyHeader(matrix.shape);
  if (!header.ok()) return InFile(path, header.status());
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".part");
  File file(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (!file.ok()) return SystemError(temporary, "cannot be created");
  absl::Status status = WriteAll(file, temporary, header->data(), header->size());
  if (status.ok()) {
    status =
        WriteAll(file, temporary, reinterpret_cast<const char*>(matrix.data), matrix.shape.bytes());
  }
  if (status.ok() && file.Close() != 0) status = SystemError(temporary, "cannot be written");
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError(path, "cannot be replaced");
  }
  if (!status.ok()) (void)unlink(temporary.c_str());
  return status;
}

}  // namespace gemmd::client
