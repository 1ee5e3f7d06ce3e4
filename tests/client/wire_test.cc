// Messages written and read by hand, against protobuf's own.

#include "client/cpp/calls/wire.h"

#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

using ::gemm::v1::GetMatrixResponse;
using ::gemm::v1::MultiplyRequest;
using ::gemm::v1::MultiplyResponse;
using ::gemm::v1::PutMatrixRequest;

std::string Flat(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// The message in slices of `slice_bytes`, as a transport may hand it over.
grpc::ByteBuffer Cut(const std::string& bytes, size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    slices.emplace_back(bytes.substr(at, slice_bytes));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Payload(size_t bytes) {
  std::string payload(bytes, '\0');
  std::iota(payload.begin(), payload.end(), '\0');
  return payload;
}

TEST(Wire, OperandChunkIsWhatProtobufReads) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
    const std::string payload = Payload(300);
    MultiplyRequest request;
    ASSERT_TRUE(request.ParseFromString(
        Flat(OperandChunkMessage(7, ::gemm::v1::OPERAND_ROLE_B, offset, grpc::Slice(payload)))));
    ASSERT_TRUE(request.has_chunk());
    EXPECT_EQ(request.chunk().job_id(), 7);
    EXPECT_EQ(request.chunk().operand(), ::gemm::v1::OPERAND_ROLE_B);
    EXPECT_EQ(request.chunk().offset(), offset);
    EXPECT_EQ(request.chunk().data(), payload);
  }
}

TEST(Wire, MatrixChunkIsWhatProtobufReads) {
  const std::string payload = Payload(5);
  PutMatrixRequest request;
  ASSERT_TRUE(request.ParseFromString(Flat(MatrixChunkMessage(77, grpc::Slice(payload)))));
  EXPECT_EQ(request.chunk().offset(), 77u);
  EXPECT_EQ(request.chunk().data(), payload);
}

TEST(Wire, WrappedMemoryIsNotCopiedAndIsLetGo) {
  auto memory = std::make_shared<std::vector<std::byte>>(1000);
  std::weak_ptr<std::vector<std::byte>> watch = memory;
  {
    const grpc::Slice slice = WrapMemory(memory->data() + 10, 500, memory);
    EXPECT_EQ(static_cast<const void*>(slice.begin()), memory->data() + 10);
    const grpc::ByteBuffer message = MatrixChunkMessage(0, slice);
    memory.reset();
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Wire, ResultChunkIsReadFromAnySlices) {
  MultiplyResponse response;
  response.mutable_chunk()->set_job_id(kJobId);
  response.mutable_chunk()->set_offset(1 << 20);
  response.mutable_chunk()->set_data(Payload(700));
  const std::string bytes = response.SerializeAsString();
  for (const size_t slice : {size_t{1}, size_t{3}, size_t{64}, bytes.size()}) {
    const grpc::ByteBuffer message = Cut(bytes, slice);
    MultiplyResponse other;
    const auto piece = ParseMultiplyResponse(message, &other);
    ASSERT_TRUE(piece.ok()) << piece.status();
    ASSERT_TRUE(piece->has_value());
    EXPECT_EQ((*piece)->job_id, kJobId);
    EXPECT_EQ((*piece)->offset, uint64_t{1} << 20);
    ASSERT_EQ((*piece)->bytes, 700u);
    std::string copied(700, 'x');
    ASSERT_TRUE(CopyPiece(message, **piece, reinterpret_cast<std::byte*>(copied.data())).ok());
    EXPECT_EQ(copied, Payload(700));
  }
}

TEST(Wire, OtherResponsesComeWhole) {
  MultiplyResponse response;
  response.mutable_error()->set_job_id(kJobId);
  response.mutable_error()->set_code(3);
  response.mutable_error()->set_message("a.rows is 0; it must be at least 1");
  MultiplyResponse other;
  const auto piece = ParseMultiplyResponse(Cut(response.SerializeAsString(), 5), &other);
  ASSERT_TRUE(piece.ok()) << piece.status();
  EXPECT_FALSE(piece->has_value());
  EXPECT_EQ(other.error().message(), response.error().message());
}

TEST(Wire, GetMatrixResponseIsReadFromAnySlices) {
  GetMatrixResponse response;
  response.mutable_matrix()->set_id("m1");
  response.mutable_matrix()->mutable_shape()->set_rows(9);
  response.set_offset(12345);
  response.set_data(Payload(400));
  const std::string bytes = response.SerializeAsString();
  for (const size_t slice : {size_t{1}, size_t{7}, bytes.size()}) {
    const grpc::ByteBuffer message = Cut(bytes, slice);
    GetMatrixResponse fields;
    const auto piece = ParseGetMatrixResponse(message, &fields);
    ASSERT_TRUE(piece.ok()) << piece.status();
    EXPECT_EQ(fields.matrix().id(), "m1");
    EXPECT_EQ(fields.matrix().shape().rows(), 9);
    EXPECT_EQ(piece->offset, 12345u);
    ASSERT_EQ(piece->bytes, 400u);
    std::string copied(400, 'x');
    ASSERT_TRUE(CopyPiece(message, *piece, reinterpret_cast<std::byte*>(copied.data())).ok());
    EXPECT_EQ(copied, Payload(400));
  }
}

TEST(Wire, EveryCutOfAChunkIsRefusedOrShorter) {
  MultiplyResponse response;
  response.mutable_chunk()->set_offset(300);
  response.mutable_chunk()->set_data(Payload(50));
  const std::string bytes = response.SerializeAsString();
  for (size_t length = 1; length < bytes.size(); ++length) {
    MultiplyResponse other;
    EXPECT_FALSE(ParseMultiplyResponse(Cut(bytes.substr(0, length), 8), &other).ok()) << length;
  }
}

TEST(Wire, EveryCutOfADownloadIsRefusedOrShorter) {
  GetMatrixResponse response;
  response.mutable_matrix()->set_id("m1");
  response.set_offset(300);
  response.set_data(Payload(50));
  const std::string bytes = response.SerializeAsString();
  for (size_t length = 1; length < bytes.size(); ++length) {
    const grpc::ByteBuffer message = Cut(bytes.substr(0, length), 8);
    GetMatrixResponse fields;
    const auto piece = ParseGetMatrixResponse(message, &fields);
    // Between two fields it is a message with fewer of them.
    if (!piece.ok()) continue;
    EXPECT_EQ(piece->bytes, 0u) << length;
    EXPECT_EQ(fields.matrix().id(), "m1") << length;
  }
}

TEST(Wire, UnknownFieldsArePassedOver) {
  GetMatrixResponse response;
  response.set_offset(7);
  response.set_data(Payload(20));
  // Fields 100 to 102: a varint, 4 bytes, 8 bytes.
  const std::string unknown(
      "\xa0\x06\x05"
      "\xad\x06"
      "abcd"
      "\xb1\x06"
      "abcdefgh",
      19);
  GetMatrixResponse fields;
  const auto piece =
      ParseGetMatrixResponse(Cut(unknown + response.SerializeAsString(), 5), &fields);
  ASSERT_TRUE(piece.ok()) << piece.status();
  EXPECT_EQ(piece->offset, 7u);
  EXPECT_EQ(piece->bytes, 20u);
  // A group that nothing ends.
  EXPECT_FALSE(ParseGetMatrixResponse(Cut("\xa3\x06", 5), &fields).ok());
}

TEST(Wire, AChunkThatDoesNotFillItsMessageIsRefused) {
  MultiplyResponse response;
  response.mutable_chunk()->set_data(Payload(50));
  MultiplyResponse other;
  const absl::Status status =
      ParseMultiplyResponse(Cut(response.SerializeAsString() + "more", 8), &other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("not of gemm.v1"));
}

TEST(Wire, APieceBeyondItsMessageIsRefused) {
  std::byte memory[16];
  const grpc::ByteBuffer message = Cut(Payload(10), 4);
  EXPECT_FALSE(CopyPiece(message, {.bytes = 1, .position = 11}, memory).ok());
  EXPECT_FALSE(CopyPiece(message, {.bytes = 5, .position = 6}, memory).ok());
  EXPECT_TRUE(CopyPiece(message, {.bytes = 5, .position = 5}, memory).ok());
}

TEST(Wire, GarbageIsAnError) {
  MultiplyResponse other;
  EXPECT_EQ(ParseMultiplyResponse(Cut(std::string(40, '\xff'), 8), &other).status().code(),
            absl::StatusCode::kInternal);
  GetMatrixResponse fields;
  EXPECT_EQ(ParseGetMatrixResponse(Cut(std::string(40, '\xff'), 8), &fields).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace gemmd::client
