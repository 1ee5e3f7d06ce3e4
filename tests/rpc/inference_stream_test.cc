// ModelStreamInfer over the wire.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/engine/faulty_device.h"
#include "tests/rpc/inference_fixture.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/raw_http2.h"

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

TEST_F(StreamInferTest, TooManyEntriesEndTheStream) {
  pb::ModelInferRequest request = Matmul();
  for (int i = 0; i < 1024; ++i) request.add_inputs();
  ASSERT_TRUE(stream_->Write(request));
  const grpc::Status status = stream_->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("more than 1024 entries"));
}

TEST_F(StreamInferTest, AMessageThatIsTooLongIsNotParsed) {
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
  RawCall raw(channel_, "/inference.GRPCInferenceService/ModelStreamInfer");
  ASSERT_TRUE(raw.Write(std::string(kMiB + 1, '\xff')));
  std::string bytes;
  ASSERT_TRUE(raw.Read(bytes));
  pb::ModelStreamInferResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  EXPECT_THAT(response.error_message(), HasSubstr("a message of 1048577 bytes"));
  raw.WritesDone();
  EXPECT_TRUE(raw.Finish().ok());
}

TEST_F(InferenceTest, AnswersThatNobodyReadsAreFew) {
  // Each answer has half a message: the next request is not read before it is.
  pb::ModelInferRequest request;
  request.set_model_name("matmul");
  AddInput(request, "A", RandomMatrix({360, 1, DType::kF32}, 1));
  AddInput(request, "B", RandomMatrix({1, 360, DType::kF32}, 2));
  const std::string message = request.SerializeAsString();
  RawHttp2 client(server_->port(), 0);
  constexpr int kRequests = 6;
  client.Call(1, "/inference.GRPCInferenceService/ModelStreamInfer", message, false);
  for (int i = 1; i < kRequests; ++i) client.Write(1, message, i == kRequests - 1);
  const auto products = [this] { return Statistics("matmul").inference_stats().success().count(); };
  while (products() == 0) absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_EQ(products(), 1);
  client.Grant(1, 8 * kMiB);
  EXPECT_TRUE(client.Await("grpc-status", 30));
  EXPECT_EQ(products(), kRequests);
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

ServerOptions AgedStreams() {
  static const bool added = [] {
    AddFaultyDeviceKinds();
    return true;
  }();
  EXPECT_TRUE(added);
  ServerOptions options = SmallServer();
  options.engine.devices = "faulty:1";
  options.rpc.max_connection_age = absl::Seconds(2);
  options.rpc.send_timeout = absl::Milliseconds(200);  // so the age is looked at every 6 ms
  return options;
}

class AgedStreamTest : public InferenceTest {
 protected:
  AgedStreamTest() : InferenceTest(AgedStreams()) {}
};

TEST_F(AgedStreamTest, ARequestThatWasBeingReadBeginsNoProduct) {
  auto& device = static_cast<FaultyDevice&>(*server_->engine().devices()[0]);
  device.Inject({.fault = Fault::kHung, .operation = Operation::kLaunch});
  grpc::ClientContext context;
  const auto stream = inference_->ModelStreamInfer(&context);
  ASSERT_TRUE(stream->Write(Matmul()));
  while (!device.hung()) absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Seconds(3));  // the stream grows old, and its read stays under way
  ASSERT_TRUE(stream->Write(Matmul()));
  stream->WritesDone();
  absl::SleepFor(absl::Milliseconds(100));
  device.Release();
  pb::ModelStreamInferResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error_message(), "");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_THAT(response.error_message(), HasSubstr("--max-connection-age"));
  EXPECT_FALSE(stream->Read(&response));
  stream->Finish();
}

}  // namespace
}  // namespace gemmd
