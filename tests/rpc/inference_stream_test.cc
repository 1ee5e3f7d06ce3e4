// ModelStreamInfer over the wire.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/rpc/inference_fixture.h"
#include "tests/rpc/raw_client.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

class StreamInferTest : public InferenceTest {
 protected:
  pb::ModelStreamInferResponse Read() {
    pb::ModelStreamInferResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }

  grpc::ClientContext context_;
  const std::unique_ptr<
      grpc::ClientReaderWriter<pb::ModelInferRequest, pb::ModelStreamInferResponse>>
      stream_ = inference_->ModelStreamInfer(&context_);
};

TEST_F(StreamInferTest, AnswersComeInTheOrderOfTheRequests) {
  constexpr int kRequests = 12;  // more than are under way at once
  for (int i = 0; i < kRequests; ++i) {
    pb::ModelInferRequest request = Matmul();
    request.set_id(absl::StrCat(i));
    if (i == 5) request.set_model_name("resnet50");
    ASSERT_TRUE(stream_->Write(request));
  }
  stream_->WritesDone();
  for (int i = 0; i < kRequests; ++i) {
    const pb::ModelStreamInferResponse response = Read();
    answer_ = response.infer_response();
    EXPECT_EQ(answer_.id(), absl::StrCat(i));
    EXPECT_EQ(answer_.parameters().count("triton_final_response"), i == 5 ? 0 : 1);
    if (i == 5) {
      EXPECT_THAT(response.error_message(), HasSubstr("the models are matmul"));
      EXPECT_EQ(answer_.outputs_size(), 0);
    } else {
      EXPECT_EQ(response.error_message(), "");
      ExpectRight(v1::Product(), operands_, result_);
    }
  }
  pb::ModelStreamInferResponse none;
  EXPECT_FALSE(stream_->Read(&none));
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_EQ(Statistics("matmul").inference_stats().success().count(), kRequests - 1);
}

TEST_F(StreamInferTest, AnIdThatIsTooLongIsNotRepeated) {
  pb::ModelInferRequest request = Matmul();
  request.set_id(std::string(1025, 'x'));
  ASSERT_TRUE(stream_->Write(request));
  const pb::ModelStreamInferResponse response = Read();
  EXPECT_THAT(response.error_message(), HasSubstr("id: 1025 bytes; at most 1024"));
  EXPECT_EQ(response.infer_response().id(), "");
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(StreamInferTest, ARequestThatDoesNotParseEndsTheStream) {
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
  RawCall raw(channel_, "/inference.GRPCInferenceService/ModelStreamInfer");
  ASSERT_TRUE(raw.Write("\xff\xff"));
  const grpc::Status status = raw.Finish();
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("2 bytes is not a ModelInferRequest"));
}

TEST_F(StreamInferTest, ACancelledStreamLeavesNothing) {
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(stream_->Write(Matmul()));
  Read();
  context_.TryCancel();
  EXPECT_EQ(stream_->Finish().error_code(), StatusCode::CANCELLED);
}

TEST_F(StreamInferTest, ADrainEndsTheStream) {
  ASSERT_TRUE(stream_->Write(Matmul()));
  Read();
  server_->Stop(absl::Seconds(5));
  pb::ModelStreamInferResponse none;
  EXPECT_FALSE(stream_->Read(&none));
  EXPECT_EQ(stream_->Finish().error_code(), StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace gemmd
