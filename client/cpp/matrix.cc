#include "gemmd/client/matrix.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gemmd::client {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 62;
constexpr size_t kAlignment = 64;
// Large matrices lie on huge pages where the system grants them: received
// bytes land in fresh memory, whose page faults would cost more than the copy.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{4} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::shared_ptr<std::byte> AllocateBytes(uint64_t bytes) {
  const bool huge = bytes >= kHugeFrom;
  const size_t alignment = huge ? kHugePage : kAlignment;
  void* memory = std::aligned_alloc(alignment, RoundUp(bytes, alignment));
  if (memory == nullptr) return nullptr;
  // Advice only: where it is refused the memory is as good, and slower.
  if (huge) (void)madvise(memory, RoundUp(bytes, alignment), MADV_HUGEPAGE);
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), std::free);
}

}  // namespace

absl::Status CheckShape(const Shape& shape, absl::string_view field) {
  for (const auto& [name, value] : {std::pair<absl::string_view, int64_t>{"rows", shape.rows},
                                    std::pair<absl::string_view, int64_t>{"cols", shape.cols}}) {
    if (value < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ".", name, " is ", value, "; it must be at least 1"));
    }
  }
  if (SizeOf(shape.dtype) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".dtype is ", static_cast<int>(shape.dtype),
                     "; it must be one of f64, f32, f16, bf16, e4m3, e5m2, s8 and s32"));
  }
  if (shape.layout != kRowMajor && shape.layout != kColumnMajor) {
    return absl::InvalidArgumentError(absl::StrCat(field, ".layout is ",
                                                   static_cast<int>(shape.layout),
                                                   "; it must be row-major or column-major"));
  }
  const uint64_t most_rows = kMaxBytes / SizeOf(shape.dtype) / static_cast<uint64_t>(shape.cols);
  if (static_cast<uint64_t>(shape.rows) >= most_rows) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is ", shape.rows, "x", shape.cols,
                                                   " of ", SizeOf(shape.dtype),
                                                   " bytes; its size must be below 2^62 bytes"));
  }
  return absl::OkStatus();
}

std::string ToString(const Shape& shape) {
  return absl::StrCat(shape.rows, "x", shape.cols, " ", Name(shape.dtype), " ", Name(shape.layout),
                      "-major");
}

::gemm::v1::MatrixShape ToProto(const Shape& shape) {
  ::gemm::v1::MatrixShape proto;
  proto.set_rows(shape.rows);
  proto.set_cols(shape.cols);
  proto.set_dtype(shape.dtype);
  proto.set_layout(shape.layout);
  return proto;
}

Shape FromProto(const ::gemm::v1::MatrixShape& shape) {
  return {.rows = shape.rows(),
          .cols = shape.cols(),
          .dtype = shape.dtype(),
          .layout = shape.layout() == kColumnMajor ? kColumnMajor : kRowMajor};
}

absl::StatusOr<HostMatrix> HostMatrix::Allocate(const Shape& shape) {
  if (absl::Status status = CheckShape(shape, "shape"); !status.ok()) return status;
  HostMatrix matrix;
  matrix.shape_ = shape;
  matrix.data_ = AllocateBytes(shape.bytes());
  if (matrix.data_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a matrix of ", shape.bytes(), " bytes"));
  }
  return matrix;
}

absl::StatusOr<HostMatrix> HostMatrix::FromDoubles(const Shape& shape,
                                                   absl::Span<const double> row_major_values) {
  absl::StatusOr<HostMatrix> matrix = Allocate(shape);
  if (!matrix.ok()) return matrix;
  if (row_major_values.size() != static_cast<size_t>(shape.elements())) {
    return absl::InvalidArgumentError(absl::StrCat("row_major_values has ", row_major_values.size(),
                                                   " values; a ", ToString(shape), " has ",
                                                   shape.elements()));
  }
  const double* value = row_major_values.data();
  for (int64_t i = 0; i < shape.rows; ++i) {
    for (int64_t j = 0; j < shape.cols; ++j) matrix->Set(i, j, *value++);
  }
  return matrix;
}

absl::StatusOr<HostMatrix> HostMatrix::Clone() const {
  if (empty()) return HostMatrix();
  absl::StatusOr<HostMatrix> copy = Allocate(shape_);
  if (copy.ok()) std::memcpy(copy->data(), data(), bytes());
  return copy;
}

double HostMatrix::Get(int64_t row, int64_t col) const {
  return LoadElement(data(), shape_.Index(row, col), shape_.dtype);
}

void HostMatrix::Set(int64_t row, int64_t col, double value) {
  StoreElement(data(), shape_.Index(row, col), shape_.dtype, value);
}

std::vector<double> HostMatrix::ToDoubles() const {
  std::vector<double> values;
  if (empty()) return values;
  values.reserve(static_cast<size_t>(shape_.elements()));
  for (int64_t i = 0; i < shape_.rows; ++i) {
    for (int64_t j = 0; j < shape_.cols; ++j) values.push_back(Get(i, j));
  }
  return values;
}

}  // namespace gemmd::client
