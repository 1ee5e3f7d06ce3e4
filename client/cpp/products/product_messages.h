// The messages of a product: as one each way, and as a stream.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "client/cpp/calls/task.h"
#include "client/cpp/products/product_plan.h"
#include "client/cpp/products/result_place.h"
#include "client/cpp/transfers/downloads.h"
#include "client/cpp/transfers/uploads.h"
#include "gemm/v1/gemm.pb.h"
#include "gemmd/client/product.h"
#include "grpcpp/support/byte_buffer.h"

namespace gemmd::client {

// The request of a product that goes as one message: the elements are in it.
::gemm::v1::MultiplyUnaryRequest UnaryRequest(const ProductPlan& plan);

absl::Status TakeUnaryResponse(::gemm::v1::MultiplyUnaryResponse& response, ResultPlace& place,
                               ProductResult& result);

// The messages of a job on a stream: its header, then the chunks of each operand in turn.
class JobSource {
 public:
  JobSource(uint64_t job_id, const ProductPlan& plan, Task& task);

  bool done() const { return header_sent_ && operands_.empty(); }
  // Must not be called when done.
  void Next(Task& task, grpc::ByteBuffer* message);

 private:
  const uint64_t job_id_;
  bool header_sent_ = false;
  grpc::ByteBuffer header_;
  std::deque<std::pair<::gemm::v1::OperandRole, ChunkSource>> operands_;
};

}  // namespace gemmd::client
