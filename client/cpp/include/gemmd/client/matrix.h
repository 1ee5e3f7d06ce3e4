// Matrices in host memory: dense, little-endian, line after line without padding,
// exactly as on the wire. A line is a row of a row-major matrix, or a column of a
// column-major one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gemmd/client/types.h"

namespace gemmd::client {

// Shape, type and storage order of a matrix as stored, before any transpose.
struct Shape {
  int64_t rows = 0;
  int64_t cols = 0;
  DataType dtype = kF32;
  Layout layout = kRowMajor;

  int64_t elements() const { return rows * cols; }
  // Dense size. Meaningful only where CheckShape is OK.
  uint64_t bytes() const { return static_cast<uint64_t>(rows) * cols * SizeOf(dtype); }

  // The offset of element (row, col), in elements.
  int64_t Index(int64_t row, int64_t col) const {
    return layout == kColumnMajor ? col * rows + row : row * cols + col;
  }

  friend bool operator==(const Shape&, const Shape&) = default;
};

// OK where rows and cols are at least 1, the type and layout are those of the
// contract, and the dense size is below 2^62 bytes. Otherwise INVALID_ARGUMENT,
// which names `field`, the value and the bound.
absl::Status CheckShape(const Shape& shape, absl::string_view field);

// "4096x64 f16 row-major".
std::string ToString(const Shape& shape);

// To and from the contract's message. An unspecified layout is row-major.
::gemm::v1::MatrixShape ToProto(const Shape& shape);
Shape FromProto(const ::gemm::v1::MatrixShape& shape);

// Elements to send, in the caller's memory. They are sent without a copy.
struct MatrixView {
  Shape shape;
  const std::byte* data = nullptr;

  // Optional: keeps `data` alive. Without an owner, a call returns only once the
  // transport has released the memory. After a cancellation or a passed deadline,
  // that can mean waiting for a peer that has stopped reading. With an owner, a call
  // returns at once, and the memory lives until the transport releases it. Views of
  // a HostMatrix have an owner.
  std::shared_ptr<const void> owner;
};

// The caller's memory for received elements. It must stay valid until the call has
// ended. Its content is undefined where the call failed, unless it overlaps an operand:
// then it is as before.
struct MutableMatrixView {
  Shape shape;
  std::byte* data = nullptr;
};

// Views of the caller's own arrays, without a copy. `elements` must hold rows * cols
// elements of `shape.dtype`, whose size must be that of T.
template <typename T>
MatrixView ViewOf(const Shape& shape, const T* elements) {
  return {.shape = shape, .data = reinterpret_cast<const std::byte*>(elements), .owner = nullptr};
}
template <typename T>
MutableMatrixView MutableViewOf(const Shape& shape, T* elements) {
  return {.shape = shape, .data = reinterpret_cast<std::byte*>(elements)};
}

// Owns a matrix. Movable; Clone copies. Different threads may use different
// matrices.
class HostMatrix {
 public:
  // Empty: 0 x 0 and no memory.
  HostMatrix() = default;

  // Undefined content, 64-byte aligned. INVALID_ARGUMENT as in CheckShape;
  // RESOURCE_EXHAUSTED where there is not enough memory.
  static absl::StatusOr<HostMatrix> Allocate(const Shape& shape);

  // From rows * cols values in row-major order, for either `shape.layout`; rounded
  // as in Set. INVALID_ARGUMENT where the number of values differs.
  static absl::StatusOr<HostMatrix> FromDoubles(const Shape& shape,
                                                absl::Span<const double> row_major_values);

  bool empty() const { return data_ == nullptr; }
  const Shape& shape() const { return shape_; }
  uint64_t bytes() const { return empty() ? 0 : shape_.bytes(); }
  const std::byte* data() const { return data_.get(); }
  std::byte* data() { return data_.get(); }

  // Shares ownership of the memory, and stays valid when this object is moved.
  MatrixView view() const { return {.shape = shape_, .data = data_.get(), .owner = data_}; }
  // Borrows the memory from this object.
  MutableMatrixView mutable_view() { return {.shape = shape_, .data = data_.get()}; }

  absl::StatusOr<HostMatrix> Clone() const;

  // One element as a double. Indices must be in range.
  double Get(int64_t row, int64_t col) const;
  // Rounds to the matrix's type, to nearest even; for types of 16 and 8 bits it
  // first rounds to f32. Values beyond the range of a float type become infinite, or
  // NaN for e4m3, which has no infinity. Integers saturate.
  void Set(int64_t row, int64_t col, double value);

  // rows * cols values in row-major order, for either layout.
  std::vector<double> ToDoubles() const;

 private:
  Shape shape_;
  std::shared_ptr<std::byte> data_;
};

// One element at `index` of dense memory, converted as in Get and Set.
double LoadElement(const std::byte* data, int64_t index, DataType type);
void StoreElement(std::byte* data, int64_t index, DataType type, double value);

}  // namespace gemmd::client
