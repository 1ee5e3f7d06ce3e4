// Reading and writing .npy files.

#include "gemmd/client/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "files/output_file.h"

namespace gemmd::client {
namespace {

// A file to read, closed with the object. A FIFO is opened without waiting for
// its writer, so that it can be refused.
class File {
 public:
  explicit File(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (ok()) (void)close(fd_);
  }

  bool ok() const { return fd_ >= 0; }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// What the last system call on `path` failed with.
absl::Status LastError(const std::string& path, absl::string_view what) {
  return files::SystemError(errno, path, what);
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
    if (n < 0) return LastError(path, "cannot be read");
    done += static_cast<uint64_t>(n);
  }
  return done;
}

template <size_t kBytes>
void ReverseEach(std::byte* elements, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::reverse(elements + i * kBytes, elements + (i + 1) * kBytes);
  }
}

// From big-endian elements to little-endian ones.
void SwapBytes(HostMatrix& matrix) {
  const int64_t count = matrix.shape().elements();
  switch (SizeOf(matrix.shape().dtype)) {
    case 8:
      return ReverseEach<8>(matrix.data(), count);
    case 4:
      return ReverseEach<4>(matrix.data(), count);
    case 2:
      return ReverseEach<2>(matrix.data(), count);
    default:
      return;
  }
}

absl::StatusOr<NpyHeader> ReadHeader(const File& file, const std::string& path,
                                     std::optional<DataType> hint) {
  if (!file.ok()) return LastError(path, "cannot be opened");
  struct stat info;
  if (fstat(file.fd(), &info) != 0) return LastError(path, "cannot be read");
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": not a regular file, and a .npy file must be one; save what comes through a pipe "
        "into a file first"));
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
  return ReadHeader(File(path), path, hint);
}

absl::StatusOr<HostMatrix> ReadNpy(const std::string& path, std::optional<DataType> hint) {
  const File file(path);
  absl::StatusOr<NpyHeader> header = ReadHeader(file, path, hint);
  if (!header.ok()) return header.status();
  absl::StatusOr<HostMatrix> matrix = HostMatrix::Allocate(header->shape);
  if (!matrix.ok()) return InFile(path, matrix.status());
  if (lseek(file.fd(), static_cast<off_t>(header->data_offset), SEEK_SET) < 0) {
    return LastError(path, "cannot be read");
  }
  absl::StatusOr<uint64_t> length =
      ReadUpTo(file, path, reinterpret_cast<char*>(matrix->data()), matrix->bytes());
  if (!length.ok()) return length.status();
  if (*length != matrix->bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the file was cut while it was read"));
  }
  if (header->big_endian) SwapBytes(*matrix);
  return matrix;
}

struct NpyOutput::File {
  std::string path;
  files::OutputFile file;
};

absl::StatusOr<NpyOutput> NpyOutput::Open(const std::string& path) {
  absl::StatusOr<files::OutputFile> file = files::OutputFile::Open(path);
  if (!file.ok()) return file.status();
  return NpyOutput(std::make_unique<File>(File{path, *std::move(file)}));
}

NpyOutput::NpyOutput(std::unique_ptr<File> file) : file_(std::move(file)) {}
NpyOutput::NpyOutput(NpyOutput&& other) noexcept = default;
NpyOutput& NpyOutput::operator=(NpyOutput&& other) noexcept = default;
NpyOutput::~NpyOutput() = default;

absl::Status NpyOutput::Write(const MatrixView& matrix) {
  const absl::StatusOr<std::string> header = EncodeNpyHeader(matrix.shape);
  if (!header.ok()) return InFile(file_->path, header.status());
  absl::Status status = file_->file.Write(*header);
  if (status.ok()) {
    status = file_->file.Write({reinterpret_cast<const char*>(matrix.data), matrix.shape.bytes()});
  }
  return status.ok() ? file_->file.Close() : status;
}

absl::Status WriteNpy(const std::string& path, const MatrixView& matrix) {
  absl::StatusOr<NpyOutput> file = NpyOutput::Open(path);
  return file.ok() ? file->Write(matrix) : file.status();
}

}  // namespace gemmd::client
