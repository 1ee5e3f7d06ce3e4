#include "client/cpp/products/result_place.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace gemmd::client {

ResultPlace::ResultPlace(const ProductPlan& plan, HostMatrix* allocated)
    // A striped result comes by Download, which calls Prepare alone.
    : wanted_(plan.fetch && !plan.striped_result),
      shape_(plan.fetch ? plan.result_shape : std::nullopt),
      into_(plan.into),
      into_overlaps_(plan.into_overlaps),
      allocated_(allocated) {}

absl::StatusOr<std::byte*> ResultPlace::Prepare(const Shape& shape) {
  if (shape_ && !(*shape_ == shape)) {
    return absl::InvalidArgumentError(absl::StrCat("the result was expected to be ",
                                                   ToString(*shape_), "; it is ", ToString(shape)));
  }
  shape_ = shape;
  if (into_ && !into_overlaps_) return into_->data;
  absl::StatusOr<HostMatrix> matrix = HostMatrix::Allocate(shape);
  if (!matrix.ok()) return matrix.status();
  *allocated_ = *std::move(matrix);
  return allocated_->data();
}

absl::Status ResultPlace::Put(const grpc::ByteBuffer& message, const Piece& piece) {
  if (!wanted_) return absl::InternalError("the server sent a result that was not asked for");
  if (!shape_) {
    held_back_.emplace_back(message, piece);
    return absl::OkStatus();
  }
  if (!sink_) {
    absl::StatusOr<std::byte*> data = Prepare(*shape_);
    if (!data.ok()) return data.status();
    sink_.emplace(*data, 0, shape_->bytes());
  }
  return sink_->Take(message, piece);
}

absl::Status ResultPlace::Complete(const Shape& shape) {
  if (!wanted_) return absl::OkStatus();
  if (shape_ && !(*shape_ == shape)) return Prepare(shape).status();
  if (absl::Status status = CheckShape(shape, "report.result_shape"); !status.ok()) {
    return absl::InternalError(absl::StrCat("the server's ", status.message()));
  }
  shape_ = shape;
  for (const auto& [message, piece] : held_back_) {
    if (absl::Status status = Put(message, piece); !status.ok()) return status;
  }
  held_back_.clear();
  if (sink_) return sink_->CheckComplete();
  return absl::InternalError("the server sent a report without the result");
}

absl::Status ResultPlace::PutAll(const Shape& shape, absl::string_view elements) {
  absl::StatusOr<std::byte*> data = Prepare(shape);
  if (!data.ok()) return data.status();
  if (elements.size() != shape.bytes()) {
    return absl::InternalError(absl::StrCat("the server sent ", elements.size(),
                                            " bytes; the result has ", shape.bytes()));
  }
  std::memcpy(*data, elements.data(), elements.size());
  return absl::OkStatus();
}

void ResultPlace::HandOver() {
  if (!into_overlaps_ || allocated_->empty()) return;
  std::memcpy(into_->data, allocated_->data(), allocated_->bytes());
  *allocated_ = HostMatrix();
}

}  // namespace gemmd::client
