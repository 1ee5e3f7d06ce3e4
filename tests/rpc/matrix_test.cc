// Resident matrices: upload, whole and split, download, list, delete.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "gtest/gtest.h"
#include "server/process/heap_trimmer.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using gemm::DType;

class MatrixTest : public RpcTest {
 protected:
  explicit MatrixTest(const ServerOptions& options = SmallServer()) : RpcTest(options) {}

  // Bytes [begin, end) of a split upload.
  v1::PutMatrixResponse PutRange(const HostMatrix& matrix, const std::string& upload_id,
                                 size_t begin, size_t end) {
    grpc::ClientContext context;
    v1::PutMatrixResponse response;
    auto call = stub_->PutMatrix(&context, &response);
    v1::PutMatrixRequest request;
    v1::PutMatrixHeader& header = *request.mutable_header();
    *header.mutable_shape() = ProtoShape(matrix.shape);
    header.set_upload_id(upload_id);
    header.mutable_range()->set_offset(begin);
    header.mutable_range()->set_length(end - begin);
    call->Write(request);
    for (size_t offset = begin; offset < end; offset += 10'000) {
      request.mutable_chunk()->set_offset(offset);
      request.mutable_chunk()->set_data(
          matrix.bytes.substr(offset, std::min<size_t>(10'000, end - offset)));
      call->Write(request);
    }
    call->WritesDone();
    const grpc::Status status = call->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.bytes_received(), end - begin);
    return response;
  }

  v1::ListMatricesResponse List(const std::string& prefix, int page_size,
                                const std::string& token) {
    grpc::ClientContext context;
    v1::ListMatricesRequest request;
    v1::ListMatricesResponse response;
    request.set_name_prefix(prefix);
    request.set_page_size(page_size);
    request.set_page_token(token);
    EXPECT_TRUE(stub_->ListMatrices(&context, request, &response).ok());
    return response;
  }
};

TEST_F(MatrixTest, WhatGoesInComesBackOut) {
  for (const bool column_major : {false, true}) {
    for (const DType type : {DType::kF64, DType::kF16}) {
      const HostMatrix matrix = RandomMatrix({301, 503, type, column_major}, 9);
      const std::string id = Put(matrix);
      EXPECT_EQ(Get(id), matrix.bytes);
      Delete(id);
    }
  }
}

TEST_F(MatrixTest, OneElement) {
  const HostMatrix matrix = RandomMatrix({1, 1, DType::kBF16}, 9);
  const std::string id = Put(matrix, "one");
  EXPECT_EQ(Get(id), matrix.bytes);
  Delete(id);
}

class RoomyMatrixTest : public MatrixTest {
 protected:
  RoomyMatrixTest() : MatrixTest(Roomy()) {}
  static ServerOptions Roomy() {
    ServerOptions options = SmallServer();
    options.engine.device_memory_bytes = 128 * kMiB;
    return options;
  }
};

TEST_F(RoomyMatrixTest, CallsThatDoNotHalfCloseHoldNoPayload) {
  const HostMatrix matrix = RandomMatrix({500, 500, DType::kF32}, 9);
  constexpr int kCalls = 48;  // 48 MB
  struct Call {
    grpc::ClientContext context;
    v1::PutMatrixResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::PutMatrixRequest>> writer;
  };
  std::vector<Call> calls(kCalls);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // for which the client would keep what it sent
  const auto stub = v1::GemmService::NewStub(
      grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), arguments));
  // The heap of this process, which is also the server's; 0 under a sanitizer.
  const size_t before = HeapBytesInUse();
  for (Call& call : calls) {
    call.writer = stub->PutMatrix(&call.context, &call.response);
    v1::PutMatrixRequest request;
    *request.mutable_header()->mutable_shape() = ProtoShape(matrix.shape);
    ASSERT_TRUE(call.writer->Write(request));
    *request.mutable_chunk()->mutable_data() = matrix.bytes;
    ASSERT_TRUE(call.writer->Write(request));
  }
  // gRPC's own buffers are part of it: up to 8 MB were seen.
  const size_t bound = before + kCalls * matrix.bytes.size() / 2;
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (HeapBytesInUse() > bound && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_LE(HeapBytesInUse(), bound) << before << " bytes before";
  EXPECT_EQ(List("", 0, "").matrices_size(), 0);
  for (Call& call : calls) {
    call.writer->WritesDone();
    const grpc::Status status = call.writer->Finish();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(call.response.complete());
  }
  EXPECT_EQ(Get(calls.back().response.matrix().id()), matrix.bytes);
  for (const Call& call : calls) Delete(call.response.matrix().id());
}

TEST_F(MatrixTest, GeneratedOnTheServer) {
  const Shape shape = {50, 70, DType::kF32};
  grpc::ClientContext context;
  v1::PutMatrixResponse response;
  auto call = stub_->PutMatrix(&context, &response);
  v1::PutMatrixRequest request;
  *request.mutable_header()->mutable_shape() = ProtoShape(shape);
  *request.mutable_header()->mutable_generator() = GeneratedOperand(shape, 6).generator();
  call->Write(request);
  call->WritesDone();
  ASSERT_TRUE(call->Finish().ok());
  EXPECT_TRUE(response.complete());
  EXPECT_EQ(Get(response.matrix().id()), RandomMatrix(shape, 6).bytes);
  Delete(response.matrix().id());
}

TEST_F(MatrixTest, SplitUploadCompletesWithItsLastRange) {
  const HostMatrix matrix = RandomMatrix({400, 333, DType::kF32}, 9);
  const size_t bytes = matrix.bytes.size();
  std::vector<v1::PutMatrixResponse> responses(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      responses[i] = PutRange(matrix, "upload-1", bytes * i / 4, bytes * (i + 1) / 4);
    });
  }
  for (std::thread& thread : threads) thread.join();
  int complete = 0;
  std::set<std::string> ids;
  for (const v1::PutMatrixResponse& response : responses) {
    complete += response.complete() ? 1 : 0;
    ids.insert(response.matrix().id());
  }
  EXPECT_EQ(complete, 1);
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_EQ(Get(*ids.begin()), matrix.bytes);
  Delete(*ids.begin());
}

TEST_F(MatrixTest, DownloadsARange) {
  const HostMatrix matrix = RandomMatrix({400, 333, DType::kF32}, 9);
  const std::string id = Put(matrix, "ranged");
  grpc::ClientContext context;
  v1::GetMatrixRequest request;
  request.mutable_matrix()->set_name("ranged");
  request.mutable_range()->set_offset(12'345);
  request.mutable_range()->set_length(300'001);
  auto call = stub_->GetMatrix(&context, request);
  v1::GetMatrixResponse response;
  ASSERT_TRUE(call->Read(&response));
  EXPECT_EQ(response.matrix().id(), id);
  EXPECT_EQ(response.data(), "");
  std::string bytes;
  while (call->Read(&response)) {
    EXPECT_EQ(response.offset(), 12'345 + bytes.size());
    bytes += response.data();
  }
  ASSERT_TRUE(call->Finish().ok());
  EXPECT_EQ(bytes, matrix.bytes.substr(12'345, 300'001));
  Delete(id);
}

TEST_F(MatrixTest, ListsByPageAndPrefix) {
  std::vector<std::string> ids;
  for (const char* name : {"x/1", "x/2", "y/1"}) {
    ids.push_back(Put(RandomMatrix({2, 3, DType::kF32}, 1), name));
  }
  v1::ListMatricesResponse page = List("x/", 1, "");
  ASSERT_EQ(page.matrices_size(), 1);
  const std::string first = page.matrices(0).name();
  EXPECT_EQ(page.matrices(0).bytes(), 24u);
  EXPECT_EQ(page.matrices(0).resident_bytes(), 32u);
  EXPECT_EQ(page.matrices(0).shape().rows(), 2);
  EXPECT_GT(page.matrices(0).created().seconds(), 1'600'000'000);
  EXPECT_FALSE(page.matrices(0).has_expires());
  page = List("x/", 1, page.next_page_token());
  ASSERT_EQ(page.matrices_size(), 1);
  EXPECT_NE(page.matrices(0).name(), first);
  EXPECT_EQ(List("", 0, "").matrices_size(), 3);
  for (const std::string& id : ids) Delete(id);
}

TEST_F(MatrixTest, TimeToLiveRunsOut) {
  grpc::ClientContext context;
  v1::PutMatrixResponse response;
  auto call = stub_->PutMatrix(&context, &response);
  v1::PutMatrixRequest request;
  const Shape shape = {5, 7, DType::kF32};
  *request.mutable_header()->mutable_shape() = ProtoShape(shape);
  *request.mutable_header()->mutable_generator() = GeneratedOperand(shape, 6).generator();
  request.mutable_header()->mutable_keep()->mutable_ttl()->set_nanos(50'000'000);
  call->Write(request);
  call->WritesDone();
  ASSERT_TRUE(call->Finish().ok());
  EXPECT_TRUE(response.matrix().has_expires());
  ExpectHolds(before_);
}

TEST_F(MatrixTest, CancelledTransfersLeaveNothing) {
  const HostMatrix matrix = RandomMatrix({1000, 1000, DType::kF32}, 9);
  {
    grpc::ClientContext context;
    v1::PutMatrixResponse response;
    auto call = stub_->PutMatrix(&context, &response);
    v1::PutMatrixRequest request;
    *request.mutable_header()->mutable_shape() = ProtoShape(matrix.shape);
    call->Write(request);
    request.mutable_chunk()->set_data(matrix.bytes.substr(0, 100'000));
    call->Write(request);
    AwaitMatrices(before_.matrices + 1);
    context.TryCancel();
    EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  ExpectHolds(before_);
  const std::string id = Put(matrix);
  const Held with_matrix = HeldNow();
  {
    grpc::ClientContext context;
    v1::GetMatrixRequest request;
    request.mutable_matrix()->set_id(id);
    auto call = stub_->GetMatrix(&context, request);
    v1::GetMatrixResponse response;
    ASSERT_TRUE(call->Read(&response));
    ASSERT_TRUE(call->Read(&response));
    context.TryCancel();
    while (call->Read(&response)) {
    }
    EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  ExpectHolds(with_matrix);
  EXPECT_EQ(Get(id), matrix.bytes);
  Delete(id);
}

}  // namespace
}  // namespace gemmd
