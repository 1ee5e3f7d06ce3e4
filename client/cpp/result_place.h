// Where the elements of a result go as they come.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/matrix.h"
#include "client/cpp/product_plan.h"
#include "client/cpp/transfer.h"
#include "client/cpp/wire.h"

namespace gemmd::client {

// Into memory of the caller's, or into a matrix that is allocated once its
// shape is known: by the plan, or else by the report that ends the result.
// Not thread-safe.
class ResultPlace {
 public:
  // `allocated` receives the matrix, where the plan brings no memory.
  ResultPlace(const ProductPlan& plan, HostMatrix* allocated);

  // Whether any elements are to come.
  bool wanted() const { return wanted_; }
  uint64_t bytes() const { return shape_ ? shape_->bytes() : 0; }

  // Memory for a result of this shape. INVALID_ARGUMENT where another was
  // expected.
  absl::StatusOr<std::byte*> Prepare(const Shape& shape);

  // The next piece. Held back in its message while the shape is not known.
  absl::Status Put(const grpc::ByteBuffer& message, const Piece& piece);
  // After the last piece, with the shape that the server reports.
  absl::Status Complete(const Shape& shape);

  // The whole result at once.
  absl::Status PutAll(const Shape& shape, absl::string_view elements);

 private:
  const bool wanted_;
  std::optional<Shape> shape_;  // expected, then had
  std::optional<MutableMatrixView> into_;
  HostMatrix* allocated_;
  std::optional<RangeSink> sink_;
  std::vector<std::pair<grpc::ByteBuffer, Piece>> held_back_;
};

}  // namespace gemmd::client
