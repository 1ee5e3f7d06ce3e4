#include "server/engine/store/matrix.h"

#include "absl/strings/str_cat.h"
#include "gemm/generate.h"

namespace gemmd {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 60;

// True where lines * pitch stays below kMaxBytes, computed without overflow.
bool Fits(const Shape& shape) {
  const int64_t line_limit = kMaxBytes / static_cast<int64_t>(gemm::SizeOf(shape.type)) - 16;
  if (shape.line_elements() > line_limit) return false;
  return shape.lines() <= kMaxBytes / shape.pitch_bytes();
}

}  // namespace

std::string ToString(const Shape& shape) {
  const absl::string_view type = gemm::Name(shape.type);
  return absl::StrCat(shape.rows, "x", shape.cols, " ", type,
                      shape.column_major ? " column-major" : " row-major");
}

absl::Status CheckRange(const ByteSpan& range, uint64_t all) {
  if (range.length >= 1 && range.offset < all && range.length <= all - range.offset) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("range has offset ", range.offset, " and length ",
                                                 range.length, ", but the matrix has ", all,
                                                 " bytes, and a length is at least 1"));
}

absl::Status CheckShape(const Shape& shape, absl::string_view field) {
  if (shape.rows < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".rows is ", shape.rows, ", but must be at least 1"));
  }
  if (shape.cols < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".cols is ", shape.cols, ", but must be at least 1"));
  }
  if (!Fits(shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " is ", ToString(shape), ", but a matrix must be smaller than 2^60 bytes"));
  }
  return absl::OkStatus();
}

absl::Status CheckGenerator(const Shape& shape, absl::string_view field) {
  const absl::Status status = gemm::CheckGenerated(shape.type);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(field, ": ", status.message()));
}

}  // namespace gemmd
