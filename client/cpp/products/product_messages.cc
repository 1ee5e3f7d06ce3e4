#include "client/cpp/products/product_messages.h"

#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/wire.h"

namespace gemmd::client {

using ::gemm::v1::MultiplyRequest;
using ::gemm::v1::MultiplyUnaryRequest;
using ::gemm::v1::MultiplyUnaryResponse;

MultiplyUnaryRequest UnaryRequest(const ProductPlan& plan) {
  MultiplyUnaryRequest request;
  *request.mutable_product() = plan.product;
  for (const SentOperand& sent : plan.sent) {
    if (sent.striped) continue;
    MutableOperand(*request.mutable_product(), sent.role)
        ->set_data(sent.view.data, sent.view.shape.bytes());
  }
  return request;
}

absl::Status TakeUnaryResponse(MultiplyUnaryResponse& response, ResultPlace& place,
                               ProductResult& result) {
  result.report = std::move(*response.mutable_report());
  if (response.has_kept()) result.kept = std::move(*response.mutable_kept());
  if (!place.wanted()) return absl::OkStatus();
  return place.PutAll(FromProto(result.report.result_shape()), response.data());
}

JobSource::JobSource(uint64_t job_id, const ProductPlan& plan, Task& task) : job_id_(job_id) {
  MultiplyRequest first;
  first.mutable_header()->set_job_id(job_id);
  *first.mutable_header()->mutable_product() = plan.product;
  for (const SentOperand& sent : plan.sent) {
    if (sent.striped) continue;
    MutableOperand(*first.mutable_header()->mutable_product(), sent.role)->mutable_payload();
    operands_.push_back(
        {sent.role, ChunkSource(sent.view.data, task.Lease(sent.view), 0, sent.view.shape.bytes(),
                                task.connection().chunk_bytes())});
  }
  header_ = Serialize(first);
}

void JobSource::Next(Task& task, grpc::ByteBuffer* message) {
  if (!std::exchange(header_sent_, true)) {
    *message = std::exchange(header_, grpc::ByteBuffer());
    return;
  }
  auto& [role, source] = operands_.front();
  const ChunkSource::Chunk chunk = source.Next();
  *message = OperandChunkMessage(job_id_, role, chunk.offset, chunk.payload);
  task.AddDone(chunk.payload.size());
  if (source.done()) operands_.pop_front();
}

}  // namespace gemmd::client
