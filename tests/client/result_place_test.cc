// A result lands where it belongs, or the error says what the server did wrong.

#include "client/cpp/products/result_place.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Shape kShape{.rows = 2, .cols = 3};
constexpr Shape kOther{.rows = 3, .cols = 2};
const std::string kElements(24, 'e');

ProductPlan PlanOf(std::optional<Shape> shape, bool fetch = true) {
  ProductPlan plan;
  plan.fetch = fetch;
  plan.result_shape = shape;
  return plan;
}

// A chunk as it comes, with its piece.
std::pair<grpc::ByteBuffer, Piece> Chunk(uint64_t offset, const std::string& bytes) {
  ::gemm::v1::MultiplyResponse response;
  response.mutable_chunk()->set_job_id(kJobId);
  response.mutable_chunk()->set_offset(offset);
  response.mutable_chunk()->set_data(bytes);
  const grpc::ByteBuffer message = Serialize(response);
  ::gemm::v1::MultiplyResponse other;
  const auto piece = ParseMultiplyResponse(message, &other);
  EXPECT_TRUE(piece.ok() && piece->has_value()) << piece.status();
  return {message, **piece};
}

absl::Status PutChunk(ResultPlace& place, uint64_t offset, const std::string& bytes) {
  const auto [message, piece] = Chunk(offset, bytes);
  return place.Put(message, piece);
}

std::string Content(const HostMatrix& matrix) {
  return {reinterpret_cast<const char*>(matrix.data()), matrix.bytes()};
}

TEST(ResultPlace, OfUnknownShapeItWaitsForTheReport) {
  const ProductPlan plan = PlanOf(std::nullopt);
  HostMatrix matrix;
  ResultPlace place(plan, &matrix);
  EXPECT_EQ(place.bytes(), 0u);
  ASSERT_TRUE(PutChunk(place, 0, kElements.substr(0, 16)).ok());
  ASSERT_TRUE(PutChunk(place, 16, kElements.substr(16)).ok());
  EXPECT_TRUE(matrix.empty());
  ASSERT_TRUE(place.Complete(kShape).ok());
  EXPECT_EQ(matrix.shape(), kShape);
  EXPECT_EQ(Content(matrix), kElements);
}

TEST(ResultPlace, WhatWaitedMustFitTheReport) {
  const ProductPlan plan = PlanOf(std::nullopt);
  HostMatrix matrix;
  ResultPlace longer(plan, &matrix);
  ASSERT_TRUE(PutChunk(longer, 0, kElements + "x").ok());
  EXPECT_THAT(std::string(longer.Complete(kShape).message()),
              HasSubstr("the server sent bytes 0 to 25; bytes 0 to at most 24"));
  ResultPlace shorter(plan, &matrix);
  ASSERT_TRUE(PutChunk(shorter, 0, kElements.substr(0, 20)).ok());
  EXPECT_THAT(std::string(shorter.Complete(kShape).message()), HasSubstr("from 20 are missing"));
}

TEST(ResultPlace, AReportWithAShapeThatNoMatrixHasIsTheServersError) {
  const ProductPlan plan = PlanOf(std::nullopt);
  HostMatrix matrix;
  ResultPlace place(plan, &matrix);
  const absl::Status status = place.Complete({.rows = 0, .cols = 3});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the server's report.result_shape.rows"));
}

TEST(ResultPlace, AReportWithoutTheResultIsTheServersError) {
  const ProductPlan plan = PlanOf(kShape);
  HostMatrix matrix;
  ResultPlace place(plan, &matrix);
  EXPECT_EQ(place.Complete(kShape),
            absl::InternalError("the server sent a report without the result"));
}

TEST(ResultPlace, AnotherShapeThanExpectedIsRefused) {
  const ProductPlan plan = PlanOf(kShape);
  HostMatrix matrix;
  ResultPlace place(plan, &matrix);
  ASSERT_TRUE(PutChunk(place, 0, kElements).ok());
  for (const absl::Status& status :
       {place.Complete(kOther), place.PutAll(kOther, kElements), place.Prepare(kOther).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("expected to be 2x3 f32 row-major"),
                                                     HasSubstr("it is 3x2 f32 row-major")));
  }
}

TEST(ResultPlace, ElementsThatNobodyAskedForAreTheServersError) {
  const ProductPlan plan = PlanOf(kShape, /*fetch=*/false);
  HostMatrix matrix;
  ResultPlace place(plan, &matrix);
  EXPECT_FALSE(place.wanted());
  EXPECT_EQ(PutChunk(place, 0, kElements),
            absl::InternalError("the server sent a result that was not asked for"));
  EXPECT_TRUE(place.Complete(kShape).ok());
  EXPECT_TRUE(matrix.empty());
}

TEST(ResultPlace, OfOneMessageEveryByteIsNeeded) {
  const ProductPlan plan = PlanOf(std::nullopt);
  HostMatrix matrix;
  ResultPlace place(plan, &matrix);
  EXPECT_EQ(place.PutAll(kShape, kElements.substr(1)),
            absl::InternalError("the server sent 23 bytes; the result has 24"));
  EXPECT_EQ(place.PutAll(kShape, kElements), absl::OkStatus());
  EXPECT_EQ(Content(matrix), kElements);
}

TEST(ResultPlace, TheCallersMemoryIsWrittenAsItComes) {
  std::vector<char> memory(24 + 1, '-');
  ProductPlan plan = PlanOf(kShape);
  plan.into = MutableViewOf(kShape, memory.data());
  HostMatrix matrix;
  ResultPlace place(plan, &matrix);
  ASSERT_TRUE(PutChunk(place, 0, kElements.substr(0, 8)).ok());
  EXPECT_EQ(std::string(memory.data(), 9), "eeeeeeee-");
  ASSERT_TRUE(PutChunk(place, 8, kElements.substr(8)).ok());
  EXPECT_TRUE(place.Complete(kShape).ok());
  EXPECT_EQ(std::string(memory.data(), memory.size()), kElements + "-");
  EXPECT_TRUE(matrix.empty());
}

TEST(ResultPlace, MemoryThatAnOperandOverlapsIsWrittenInTheEnd) {
  const std::string before(24, '-');
  std::string memory = before;
  ProductPlan plan = PlanOf(kShape);
  plan.into = MutableViewOf(kShape, memory.data());
  plan.into_overlaps = true;
  HostMatrix matrix;
  ResultPlace place(plan, &matrix);
  ASSERT_TRUE(PutChunk(place, 0, kElements).ok());
  EXPECT_TRUE(place.Complete(kShape).ok());
  EXPECT_EQ(memory, before);
  place.HandOver();
  EXPECT_EQ(memory, kElements);
  EXPECT_TRUE(matrix.empty());
}

}  // namespace
}  // namespace gemmd::client
