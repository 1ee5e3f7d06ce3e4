// The memory that the elements of a result are received into.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/calls/wire.h"
#include "client/cpp/products/product_plan.h"
#include "client/cpp/transfers/downloads.h"
#include "client/cpp/transfers/uploads.h"
#include "gemmd/client/matrix.h"

namespace gemmd::client {

// Either the caller's memory, or a matrix that is allocated once its shape is known,
// from the plan or else from the report that ends the result. Memory of the caller's that
// overlaps an operand gets a copy of such a matrix in the end. Not thread-safe.
class ResultPlace {
 public:
  // `allocated` receives the matrix where the plan has no memory for it.
  ResultPlace(const ProductPlan& plan, HostMatrix* allocated);

  // Whether elements are expected.
  bool wanted() const { return wanted_; }
  uint64_t bytes() const { return shape_ ? shape_->bytes() : 0; }

  // Memory for a result of this shape. INVALID_ARGUMENT where another shape was
  // expected.
  absl::StatusOr<std::byte*> Prepare(const Shape& shape);

  // Adds the next piece. It stays in its message until the shape is known.
  absl::Status Put(const grpc::ByteBuffer& message, const Piece& piece);
  // Called after the last piece, with the shape that the server reports.
  absl::Status Complete(const Shape& shape);

  // Adds the whole result at once.
  absl::Status PutAll(const Shape& shape, absl::string_view elements);

  // Called once the product has ended well, and nothing of its operands will be read again.
  void HandOver();

 private:
  const bool wanted_;
  std::optional<Shape> shape_;  // expected, then had
  std::optional<MutableMatrixView> into_;
  const bool into_overlaps_;
  HostMatrix* allocated_;
  std::optional<RangeSink> sink_;
  std::vector<std::pair<grpc::ByteBuffer, Piece>> held_back_;
};

}  // namespace gemmd::client
