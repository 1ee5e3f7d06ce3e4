// NumPy's .npy files, versions 1.0, 2.0 and 3.0.
//
// Types by descr: <f8, <f4, <f2, |i1, <i4, and the descrs that ml_dtypes writes:
// <V2 for bfloat16, <V1 for float8_e4m3fn (also |V2, |V1), <f1 for float8_e5m2. As
// <V1 may also be another 8-bit type, it is read only with a hint. Big-endian
// >f8, >f4, >f2 and >i4 are read, too; =f4 and f4 are in this machine's order. No structured
// or object types, and no names such as float32.
//
// Shapes: (rows, cols); (n,) is 1 x n; () is 1 x 1. Fortran order is
// column-major.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemmd/client/matrix.h"

namespace gemmd::client {

// A header, counted from the file's first byte, has at most this many bytes.
inline constexpr uint64_t kMaxNpyHeaderBytes = 64 << 10;

struct NpyHeader {
  Shape shape;
  // Where the elements begin, in bytes from the start of the file.
  uint64_t data_offset = 0;
  int major_version = 1;
  // As in the file, such as "<f4".
  std::string descr;
  // Whether the elements in the file are. ReadNpy swaps their bytes.
  bool big_endian = false;
  int dimensions = 2;  // 0, 1 or 2
};

// Reads the header at the start of `bytes`, the first bytes of a file. They may go
// on past the header; kMaxNpyHeaderBytes of them are enough. For the descr V2, `hint` may give
// another type of two bytes. For V1, it must give a type of one byte.
// INVALID_ARGUMENT says what is wrong and what is allowed.
absl::StatusOr<NpyHeader> ReadNpyHeader(absl::string_view bytes,
                                        std::optional<DataType> hint = std::nullopt);

// The header for a matrix of this shape: version 1.0, padded so that the elements
// begin on a 64-byte boundary. Types as above.
absl::StatusOr<std::string> EncodeNpyHeader(const Shape& shape);

// Reads only the header, as ReadNpyHeader does, and checks the file's length
// against it.
absl::StatusOr<NpyHeader> StatNpy(const std::string& path,
                                  std::optional<DataType> hint = std::nullopt);

// Reads a whole file. Errors begin with the path: NOT_FOUND, PERMISSION_DENIED,
// INVALID_ARGUMENT (not .npy, not a regular file, or a file shorter or longer than
// its header says).
absl::StatusOr<HostMatrix> ReadNpy(const std::string& path,
                                   std::optional<DataType> hint = std::nullopt);

// A file for one matrix. Open it before the work: a path that cannot be written then costs none. A
// reader never sees half of a regular file. A device, a FIFO or a link is written through. Until
// Write, the path keeps its content. Errors begin with the path. Not thread-safe.
class NpyOutput {
 public:
  static absl::StatusOr<NpyOutput> Open(const std::string& path);

  NpyOutput(NpyOutput&& other) noexcept;
  NpyOutput& operator=(NpyOutput&& other) noexcept;
  ~NpyOutput();

  // Call once. The path has the matrix only if this returns OK.
  absl::Status Write(const MatrixView& matrix);

 private:
  struct File;
  explicit NpyOutput(std::unique_ptr<File> file);

  std::unique_ptr<File> file_;
};

// Opens and writes.
absl::Status WriteNpy(const std::string& path, const MatrixView& matrix);

}  // namespace gemmd::client
