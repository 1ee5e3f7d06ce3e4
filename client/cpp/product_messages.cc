#include "client/cpp/product_messages.h"

#include "client/cpp/connection.h"
#include "client/cpp/wire.h"

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

StreamSource::StreamSource(const ProductPlan& plan, Task& task) {
  MultiplyRequest first;
  first.mutable_header()->set_job_id(kJobId);
  *first.mutable_header()->mutable_product() = plan.product;
  for (const SentOperand& sent : plan.sent) {
    if (sent.striped) continue;
    MutableOperand(*first.mutable_header()->mutable_product(), sent.role)->mutable_payload();
    operands_.push_back(
        {sent.role, ChunkSource(sent.view.data, task.Lease(sent.view), 0, sent.view.shape.bytes(),
                                task.connection().chunk_bytes())});
    task.AddTotal(sent.view.shape.bytes());
  }
  header_ = Serialize(first);
}

bool StreamSource::Next(Task& task, grpc::ByteBuffer* message) {
  if (!std::exchange(header_sent_, true)) {
    *message = std::exchange(header_, grpc::ByteBuffer());
    return !operands_.empty();
  }
  auto& [role, source] = operands_.front();
  const ChunkSource::Chunk chunk = source.Next();
  *message = OperandChunkMessage(role, chunk.offset, chunk.payload);
  task.AddDone(chunk.payload.size());
  if (source.done()) operands_.pop_front();
  return !operands_.empty();
}

}  // namespace gemmd::client
