// NumPy's .npy files, versions 1.0, 2.0 and 3.0.
//
// Types by descr: <f8, <f4, <f2, |i1, <i4, and what ml_dtypes' arrays leave in
// a file: bfloat16 is <V2, float8_e4m3fn is <V1 (also |V2, |V1), float8_e5m2 is
// <f1. A <V1 could as well be another 8-bit type: give a hint where it is not
// e4m3. Only little-endian, no structured or object types.
//
// Shapes: (rows, cols); (n,) is 1 x n; () is 1 x 1. Fortran order is
// column-major.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/matrix.h"

namespace gemmd::client {

// The most bytes, from the file's first, that a header may take.
inline constexpr uint64_t kMaxNpyHeaderBytes = 64 << 10;

struct NpyHeader {
  Shape shape;
  // Where the elements begin, in bytes from the start of the file.
  uint64_t data_offset = 0;
  int major_version = 1;
  // As the file has it, such as "<f4".
  std::string descr;
  int dimensions = 2;  // 0, 1 or 2
};

// Reads the header at the start of a file's bytes; `bytes` may go on past it,
// and kMaxNpyHeaderBytes of them are enough. Where `hint` is set and the descr
// is one of the opaque V1, V2 or f1, the type is the hint's if its size fits.
// INVALID_ARGUMENT says what is wrong and what is allowed.
absl::StatusOr<NpyHeader> ReadNpyHeader(absl::string_view bytes,
                                        std::optional<DataType> hint = std::nullopt);

// The header that goes before the elements of such a matrix: version 1.0, padded
// so that the elements begin on a 64-byte boundary. Types as above.
absl::StatusOr<std::string> EncodeNpyHeader(const Shape& shape);

// The header alone, as ReadNpyHeader, with the file's length checked against it.
absl::StatusOr<NpyHeader> StatNpy(const std::string& path,
                                  std::optional<DataType> hint = std::nullopt);

// A whole file. Errors begin with the path: NOT_FOUND, PERMISSION_DENIED,
// INVALID_ARGUMENT (not .npy, not a regular file, or a file shorter or longer than
// its header says).
absl::StatusOr<HostMatrix> ReadNpy(const std::string& path,
                                   std::optional<DataType> hint = std::nullopt);

// Into the path as files::OutputFile does: a reader never sees half of a regular
// file, and a device, a FIFO or a link stays what it is. Errors begin with the path.
absl::Status WriteNpy(const std::string& path, const MatrixView& matrix);

}  // namespace gemmd::client
