// A server and a stub of the Open Inference Protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "inference/inference.grpc.pb.h"
#include "server/rpc/inference/tensors.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace pb = inference;
namespace v1 = gemm::v1;
using gemm::DType;
using grpc::StatusCode;

inline void AddInput(pb::ModelInferRequest& request, const std::string& name,
                     const HostMatrix& matrix, std::vector<int64_t> shape = {}) {
  pb::ModelInferRequest::InferInputTensor& input = *request.add_inputs();
  input.set_name(name);
  input.set_datatype(std::string(DatatypeName(matrix.shape.type)));
  if (shape.empty()) shape = {matrix.shape.rows, matrix.shape.cols};
  for (const int64_t extent : shape) input.add_shape(extent);
  request.add_raw_input_contents(matrix.bytes);
}

// One of `count` matrices that are stacked in this one.
inline HostMatrix PartOf(const HostMatrix& matrix, int index, int count) {
  Shape shape = matrix.shape;
  shape.rows /= count;
  const size_t bytes = matrix.bytes.size() / static_cast<size_t>(count);
  return {shape, matrix.bytes.substr(static_cast<size_t>(index) * bytes, bytes)};
}

class InferenceTest : public RpcTest {
 protected:
  using Stub = pb::GRPCInferenceService::Stub;

  explicit InferenceTest(const ServerOptions& options = SmallServer()) : RpcTest(options) {}

  template <typename Request, typename Response>
  StatusCode Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                 const Request& request, Response& response) {
    grpc::ClientContext context;
    response.Clear();
    const grpc::Status status = (inference_.get()->*method)(&context, request, &response);
    message_ = status.error_message();
    return status.error_code();
  }

  StatusCode Infer(const pb::ModelInferRequest& request) {
    return Ask(&Stub::ModelInfer, request, answer_);
  }

  pb::ModelInferRequest Matmul() const {
    pb::ModelInferRequest request;
    request.set_model_name("matmul");
    request.set_id("one");
    AddInput(request, "A", operands_.a);
    AddInput(request, "B", operands_.b);
    return request;
  }

  // That answer_ is act(alpha * op(A) * op(B)) as `product` says.
  void ExpectRight(const v1::Product& product, const HostProduct& operands, const Shape& result) {
    ASSERT_EQ(answer_.raw_output_contents_size(), 1);
    ASSERT_EQ(answer_.raw_output_contents(0).size(), result.dense_bytes());
    EXPECT_LE(WorstError(product, operands, {result, answer_.raw_output_contents(0)}), 1);
  }

  // The only one of the model.
  pb::ModelStatistics Statistics(const std::string& model) {
    pb::ModelStatisticsRequest request;
    request.set_name(model);
    pb::ModelStatisticsResponse response;
    EXPECT_EQ(Ask(&Stub::ModelStatistics, request, response), StatusCode::OK) << message_;
    return response.model_stats_size() == 1 ? response.model_stats(0) : pb::ModelStatistics();
  }

  void ExpectRefused(const pb::ModelInferRequest& request, StatusCode code, const char* sentence) {
    EXPECT_EQ(Infer(request), code) << sentence;
    EXPECT_THAT(message_, ::testing::HasSubstr(sentence));
  }

  const std::unique_ptr<Stub> inference_ = pb::GRPCInferenceService::NewStub(channel_);
  const HostProduct operands_ = {.a = RandomMatrix({6, 4, DType::kF32}, 1),
                                 .b = RandomMatrix({4, 5, DType::kF32}, 2)};
  const Shape result_ = {6, 5, DType::kF32};
  pb::ModelInferResponse answer_;
  std::string message_;
};

}  // namespace gemmd
