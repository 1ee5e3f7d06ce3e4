// The messages of a product: as one each way, and as a stream.
#pragma once

#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "client/cpp/product_plan.h"
#include "client/cpp/result_place.h"
#include "client/cpp/task.h"
#include "client/cpp/transfer.h"
#include "gemm/v1/gemm.pb.h"
#include "gemmd/client/product.h"
#include "grpcpp/support/byte_buffer.h"

namespace gemmd::client {

// The request of a product that goes as one message: the elements are in it.
::gemm::v1::MultiplyUnaryRequest UnaryRequest(const ProductPlan& plan);

absl::Status TakeUnaryResponse(::gemm::v1::MultiplyUnaryResponse& response, ResultPlace& place,
                               ProductResult& result);

// The messages of a product's stream: its header, then the chunks of each operand in turn.
class StreamSource {
 public:
  StreamSource(const ProductPlan& plan, Task& task);

  // Whether another message follows.
  bool Next(Task& task, grpc::ByteBuffer* message);

 private:
  bool header_sent_ = false;
  grpc::ByteBuffer header_;
  std::deque<std::pair<::gemm::v1::OperandRole, ChunkSource>> operands_;
};

}  // namespace gemmd::client
