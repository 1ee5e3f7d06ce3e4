// ModelInfer over the wire, as the protocol's stubs speak it.
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/rpc/inference_fixture.h"
#include "tests/rpc/raw_client.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(InferenceTest, AProductOfEachType) {
  struct Case {
    DType in;
    DType out;
    const char* fp8;
  };
  for (const auto& [in, out, fp8] : {Case{DType::kF64, DType::kF64, ""},
                                     {DType::kF32, DType::kF32, ""},
                                     {DType::kF16, DType::kF16, ""},
                                     {DType::kBF16, DType::kBF16, ""},
                                     {DType::kS8, DType::kS32, ""},
                                     {DType::kE4M3, DType::kF16, "E4M3"},
                                     {DType::kE5M2, DType::kF16, "E5M2"}}) {
    const HostProduct operands = {.a = RandomMatrix({6, 4, in}, 1),
                                  .b = RandomMatrix({4, 5, in}, 2)};
    pb::ModelInferRequest request;
    request.set_model_name("matmul");
    request.set_id("id");
    AddInput(request, "A", operands.a);
    AddInput(request, "B", operands.b);
    if (*fp8 != 0) {
      (*request.mutable_parameters())["a_type"].set_string_param(fp8);
      (*request.mutable_parameters())["b_type"].set_string_param(fp8);
    }
    ASSERT_EQ(Infer(request), StatusCode::OK) << message_;
    EXPECT_EQ(answer_.id(), "id");
    EXPECT_EQ(answer_.model_version(), "1");
    EXPECT_EQ(answer_.outputs(0).name(), "D");
    EXPECT_EQ(answer_.outputs(0).datatype(), DatatypeName(out));
    EXPECT_THAT(answer_.outputs(0).shape(), ElementsAre(6, 5));
    EXPECT_NE(answer_.parameters().at("kernel").string_param(), "");
    ExpectRight(v1::Product(), operands, {6, 5, out});
  }
}

TEST_F(InferenceTest, ParametersSayHow) {
  const HostProduct operands = {.a = RandomMatrix({4, 6, DType::kF32}, 1),
                                .b = RandomMatrix({5, 4, DType::kF32}, 2)};
  pb::ModelInferRequest request;
  request.set_model_name("matmul");
  AddInput(request, "B", operands.b);  // the order is the request's
  AddInput(request, "A", operands.a);
  auto& parameters = *request.mutable_parameters();
  parameters["transpose_a"].set_bool_param(true);
  parameters["transpose_b"].set_bool_param(true);
  parameters["alpha"].set_int64_param(-2);
  parameters["activation"].set_string_param("leaky_relu");
  parameters["leaky_slope"].set_double_param(0.5);
  parameters["compute"].set_string_param("f32");
  parameters["kernel"].set_string_param("host_reference");
  parameters["timeout"].set_int64_param(60'000'000);
  parameters["triton_enable_empty_final_response"].set_bool_param(true);
  parameters["priority"].set_uint64_param(1);
  ASSERT_EQ(Infer(request), StatusCode::OK) << message_;
  EXPECT_EQ(answer_.parameters().at("kernel").string_param(), "host_reference");
  v1::Product product;
  product.set_transpose_a(true);
  product.set_transpose_b(true);
  product.set_alpha(-2);
  product.set_activation(v1::ACTIVATION_LEAKY_RELU);
  product.set_leaky_slope(0.5);
  ExpectRight(product, operands, result_);
  request = Matmul();
  (*request.mutable_parameters())["output_type"].set_string_param("FP64");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "f64");
}

TEST_F(InferenceTest, ElementsByTheirType) {
  pb::ModelInferRequest request = Matmul();
  request.clear_raw_input_contents();
  for (int i = 0; i < 2; ++i) {
    const std::string& bytes = (i == 0 ? operands_.a : operands_.b).bytes;
    std::vector<float> elements(bytes.size() / sizeof(float));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    for (const float element : elements) {
      request.mutable_inputs(i)->mutable_contents()->add_fp32_contents(element);
    }
  }
  ASSERT_EQ(Infer(request), StatusCode::OK) << message_;
  ExpectRight(v1::Product(), operands_, result_);
  request.add_raw_input_contents("");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "raw_input_contents: set beside");
  request.clear_raw_input_contents();
  request.mutable_inputs(0)->mutable_contents()->add_int_contents(1);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "belong into fp32_contents alone");
  request.mutable_inputs(0)->set_datatype("FP16");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "use raw_input_contents");
  request.mutable_inputs(0)->mutable_contents()->Clear();
  request.mutable_inputs(0)->mutable_contents()->add_int_contents(128);
  request.mutable_inputs(0)->set_datatype("INT8");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "128; elements are from -128 to 127");
}

TEST_F(InferenceTest, WhatIsWrongIsNamed) {
  pb::ModelInferRequest request = Matmul();
  request.set_model_name("resnet50");
  ExpectRefused(request, StatusCode::NOT_FOUND, "the models are matmul");
  request = Matmul();
  request.set_model_version("3");
  ExpectRefused(request, StatusCode::NOT_FOUND, "has no version \"3\"");
  for (const char* version : {"100000000000000000000", "                    1"}) {
    request.set_model_version(version);
    ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "model_version: 21 bytes; at most 20");
  }
  request = Matmul();
  request.set_id(std::string(1025, 'x'));
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "id: 1025 bytes");
  request = Matmul();
  request.mutable_inputs(1)->set_name("W");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "B is missing");
  request = Matmul();
  AddInput(request, "C", operands_.a);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "inputs: 3 of them");
  request = Matmul();
  request.mutable_raw_input_contents()->RemoveLast();
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "1 of them for 2 inputs");
  request = Matmul();
  request.mutable_raw_input_contents(0)->pop_back();
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "inputs.A: 95 bytes of elements");
  request = Matmul();
  request.mutable_inputs(0)->set_shape(0, -6);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "inputs.A.shape");
  request = Matmul();
  request.mutable_inputs(0)->add_shape(1);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "matmul has 2 dimensions");
  request = Matmul();
  request.mutable_inputs(0)->set_datatype("BYTES");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "inputs.A.datatype: \"BYTES\"");
  request = Matmul();
  request.mutable_inputs(0)->set_datatype("UINT8");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "parameters.a_type: not set");
  request = Matmul();
  request.add_outputs()->set_name("C");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "the model's output is D");
  request = Matmul();
  auto& output = *request.add_outputs();
  output.set_name("D");
  (*output.mutable_parameters())["shared_memory_region"].set_string_param("r");
  ExpectRefused(request, StatusCode::UNIMPLEMENTED, "in messages alone");
  request = Matmul();
  (*request.mutable_parameters())["beta"].set_double_param(1);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "parameters.beta: the model has no such");
  request = Matmul();
  (*request.mutable_parameters())["alpha"].set_string_param("1");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "parameters.alpha: it must be a number");
  request = Matmul();
  (*request.mutable_parameters())["kernel"].set_string_param("none");
  ExpectRefused(request, StatusCode::NOT_FOUND, "none");
  EXPECT_EQ(Infer(Matmul()), StatusCode::OK) << message_;
}

TEST_F(InferenceTest, EmptyEntriesAreCountedBeforeTheyAreParsed) {
  // Each parses: without their bound the first error is that of the inputs.
  pb::ModelInferRequest many = Matmul();
  for (int i = 0; i < 1024; ++i) many.add_inputs();
  pb::ModelInferRequest numbers = Matmul();
  for (int i = 0; i < 1024; ++i) {
    numbers.mutable_inputs(0)->mutable_contents()->add_int64_contents(0);
  }
  pb::ModelInferRequest texts = Matmul();
  for (int i = 0; i < 1024; ++i) texts.mutable_inputs(0)->mutable_contents()->add_bytes_contents();
  pb::ModelInferRequest parameters = Matmul();
  for (int i = 0; i < 512; ++i) {
    (*parameters.mutable_inputs(0)->mutable_parameters())[absl::StrCat(i)];
  }
  for (const pb::ModelInferRequest& request : {many, numbers, texts, parameters}) {
    ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "request: more than 1024 entries");
  }
  // Texts and numbers that the message has not, and groups.
  for (const std::string& field :
       {std::string("\x52\0", 2), std::string("\x50\0", 2), std::string("\x53\x54")}) {
    std::string bytes;
    for (int i = 0; i < 1025; ++i) bytes += field;
    std::string answer;
    const grpc::Status status =
        CallUnary(channel_, "/inference.GRPCInferenceService/ModelInfer", bytes, answer);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("more than 1024 entries"));
  }
}

TEST_F(InferenceTest, AMessageThatIsTooLongIsNotParsed) {
  std::string answer;
  const grpc::Status status = CallUnary(channel_, "/inference.GRPCInferenceService/ModelInfer",
                                        std::string(kMiB + 1, '\xff'), answer);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("a message of 1048577 bytes"));
}

TEST_F(InferenceTest, AnOutputMayBeNamed) {
  pb::ModelInferRequest request = Matmul();
  request.add_outputs()->set_name("D");
  request.add_outputs()->set_name("D");
  ASSERT_EQ(Infer(request), StatusCode::OK) << message_;
  EXPECT_EQ(answer_.outputs_size(), 1);
  ExpectRight(v1::Product(), operands_, result_);
}

TEST_F(InferenceTest, ABatch) {
  const HostProduct operands = {.a = RandomMatrix({3 * 6, 4, DType::kF32}, 1),
                                .b = RandomMatrix({3 * 4, 5, DType::kF32}, 2)};
  pb::ModelInferRequest request;
  request.set_model_name("matmul_batched");
  AddInput(request, "A", operands.a, {3, 6, 4});
  AddInput(request, "B", operands.b, {3, 4, 5});
  ASSERT_EQ(Infer(request), StatusCode::OK) << message_;
  EXPECT_THAT(answer_.outputs(0).shape(), ElementsAre(3, 6, 5));
  ASSERT_EQ(answer_.raw_output_contents(0).size(), 3 * 6 * 5 * sizeof(float));
  for (int i = 0; i < 3; ++i) {
    const HostProduct one = {.a = PartOf(operands.a, i, 3), .b = PartOf(operands.b, i, 3)};
    const HostMatrix all = {{3 * 6, 5, DType::kF32}, answer_.raw_output_contents(0)};
    EXPECT_LE(WorstError(v1::Product(), one, PartOf(all, i, 3)), 1) << i;
  }
  EXPECT_EQ(Statistics("matmul_batched").inference_count(), 3);
  EXPECT_EQ(Statistics("matmul_batched").execution_count(), 1);
  request.mutable_inputs(1)->set_shape(0, 2);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "a batch of 2, but A has one of 3");
  for (const int64_t batch : {int64_t{0}, int64_t{65536}, INT64_MAX}) {
    request.mutable_inputs(0)->set_shape(0, batch);
    ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "it must be 1 to 65535");
  }
  request.mutable_inputs(0)->set_shape(0, 65535);
  request.mutable_inputs(0)->set_shape(1, int64_t{1} << 50);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "inputs.A.shape");
}

TEST_F(InferenceTest, AResidentMatrixTimesX) {
  const std::string id = Put(operands_.b, "w");
  pb::ModelInferRequest request;
  request.set_model_name("linear/w");
  AddInput(request, "X", operands_.a);
  ASSERT_EQ(Infer(request), StatusCode::OK) << message_;
  EXPECT_EQ(answer_.outputs(0).name(), "Y");
  EXPECT_THAT(answer_.outputs(0).shape(), ElementsAre(6, 5));
  ExpectRight(v1::Product(), operands_, result_);
  const std::string version = Statistics("linear/w").version();
  EXPECT_EQ(answer_.model_version(), version) << "though the request names none";
  request.set_model_version(absl::StrCat(" 0", version));
  ASSERT_EQ(Infer(request), StatusCode::OK) << message_;
  EXPECT_EQ(answer_.model_version(), version);
  request.set_model_version("7");
  ExpectRefused(request, StatusCode::ABORTED, "has version");
  const pb::ModelStatistics statistics = Statistics("linear/w");
  EXPECT_EQ(statistics.inference_count(), 2 * 6);
  EXPECT_EQ(statistics.inference_stats().success().count(), 2);
  EXPECT_EQ(statistics.inference_stats().fail().count(), 1);
  Delete(id);
  request.clear_model_version();
  ExpectRefused(request, StatusCode::NOT_FOUND, "no matrix has name \"w\"");
}

TEST_F(InferenceTest, AWeightThatIsStoredTransposed) {
  const HostMatrix w = RandomMatrix({5, 4, DType::kF32}, 2);
  const std::string id = Put(w, "w");
  pb::ModelInferRequest request;
  request.set_model_name("linear/w");
  AddInput(request, "X", operands_.a);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "the inner dimensions differ");
  (*request.mutable_parameters())["transpose_w"].set_bool_param(true);
  ASSERT_EQ(Infer(request), StatusCode::OK) << message_;
  v1::Product product;
  product.set_transpose_b(true);
  ExpectRight(product, {.a = operands_.a, .b = w}, result_);
  Delete(id);
}

TEST_F(InferenceTest, AnAnswerThatFitsNoMessageIsRefused) {
  // 32 KiB of operands, and 16 MiB of a result.
  const HostMatrix column = RandomMatrix({2048, 1, DType::kF32}, 1);
  const HostMatrix row = RandomMatrix({1, 2048, DType::kF32}, 2);
  pb::ModelInferRequest request;
  request.set_model_name("matmul");
  AddInput(request, "A", column);
  AddInput(request, "B", row);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, "outputs: 16777216 bytes of result");
}

TEST_F(InferenceTest, StatisticsAddUp) {
  const pb::ModelStatistics none = Statistics("matmul");
  EXPECT_EQ(none.inference_stats().success().count(), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Infer(Matmul()), StatusCode::OK) << message_;
  pb::ModelInferRequest bad = Matmul();
  bad.mutable_inputs(0)->set_shape(1, 3);
  EXPECT_EQ(Infer(bad), StatusCode::INVALID_ARGUMENT);
  const pb::ModelStatistics some = Statistics("matmul");
  EXPECT_EQ(some.inference_count(), 3);
  EXPECT_GT(some.last_inference(), 0);
  const pb::InferStatistics& times = some.inference_stats();
  EXPECT_EQ(times.success().count(), 3);
  EXPECT_EQ(times.fail().count(), 1);
  EXPECT_EQ(times.compute_infer().count(), 3);
  EXPECT_GT(times.compute_infer().ns(), 0);
  EXPECT_LE(times.queue().ns() + times.compute_infer().ns() + times.compute_output().ns(),
            times.success().ns());
  pb::ModelStatisticsResponse all;
  ASSERT_EQ(Ask(&Stub::ModelStatistics, {}, all), StatusCode::OK) << message_;
  EXPECT_EQ(all.model_stats_size(), 2);
  pb::ModelStatisticsRequest unknown;
  unknown.set_name("linear/none");
  EXPECT_EQ(Ask(&Stub::ModelStatistics, unknown, all), StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace gemmd
