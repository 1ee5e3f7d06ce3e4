// Callers by token whose line changes while they call.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/net/loopback.h"
#include "tests/rpc/callers_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// How the job ends that this stream begins.
StatusCode RunJob(RawCall& stream, uint64_t job_id) {
  v1::MultiplyRequest request;
  request.mutable_header()->set_job_id(job_id);
  *request.mutable_header()->mutable_product() = WholeProduct();
  stream.Write(request.SerializeAsString());
  std::string bytes;
  v1::MultiplyResponse response;
  while (stream.Read(bytes) && response.ParseFromString(bytes)) {
    if (response.has_result()) return StatusCode::OK;
    if (response.has_error()) return static_cast<StatusCode>(response.error().code());
  }
  return StatusCode::UNKNOWN;
}

TEST_F(CallersRpcTest, FilesThatAreNotInForceAreShown) {
  const auto metrics = [this] { return HttpGet(server_->metrics_address(), "/metrics"); };
  EXPECT_THAT(metrics(), HasSubstr("gemmd_identity_current{what=\"callers\"} 1"));
  Install("nonsense\n");
  EXPECT_THAT(metrics(), HasSubstr("gemmd_identity_current{what=\"callers\"} 0"));
  EXPECT_THAT(metrics(),
              HasSubstr("gemmd_identity_reloads_total{taken=\"false\",what=\"callers\"} 1"));
  Install(Line("root", "all"));
  EXPECT_THAT(metrics(), HasSubstr("gemmd_identity_current{what=\"callers\"} 1"));
}

TEST_F(CallersRpcTest, AGeneratedUploadBeginsNothingForATokenThatIsGone) {
  RawCall upload(channel_, absl::StrCat(kServicePath, "PutMatrix"), "alice-token");
  v1::PutMatrixRequest put;
  *put.mutable_header()->mutable_shape() = ProtoShape({8, 8, gemm::DType::kF32});
  *put.mutable_header()->mutable_generator() = Generated().generator();
  upload.Write(put.SerializeAsString());
  // The header came before these on the same connection, so it has been handled.
  for (int i = 0; i < 20; ++i) EXPECT_THAT(List("alice"), IsEmpty());
  Install(Line("root", "all"));
  upload.WritesDone();
  EXPECT_EQ(upload.Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(List("root", false, /*every_owner=*/true), IsEmpty());
}

// The same token, with another name.
TEST_F(CallersRpcTest, AGeneratedUploadIsNotGivenToWhoHadTheTokenBefore) {
  RawCall upload(channel_, absl::StrCat(kServicePath, "PutMatrix"), "alice-token");
  v1::PutMatrixRequest put;
  *put.mutable_header()->mutable_shape() = ProtoShape({8, 8, gemm::DType::kF32});
  *put.mutable_header()->mutable_generator() = Generated().generator();
  upload.Write(put.SerializeAsString());
  for (int i = 0; i < 20; ++i) EXPECT_THAT(List("alice"), IsEmpty());
  const std::string line = Line("alice", "all");
  Install("zoe" + line.substr(line.find(' ')) + Line("root", "all"));
  upload.WritesDone();
  EXPECT_EQ(upload.Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(List("root", false, /*every_owner=*/true), IsEmpty());
}

TEST_F(CallersRpcTest, AnOpenStreamBeginsNothingForATokenThatIsGone) {
  RawCall upload(channel_, absl::StrCat(kServicePath, "PutMatrix"), "alice-token");
  RawCall stream(channel_, absl::StrCat(kServicePath, "Multiply"), "carol-token");
  EXPECT_EQ(RunJob(stream, 1), StatusCode::OK);
  Install(Line("carol", "metrics"));
  EXPECT_EQ(RunJob(stream, 2), StatusCode::PERMISSION_DENIED);
  Install(Line("root", "all"));
  EXPECT_EQ(RunJob(stream, 3), StatusCode::UNAUTHENTICATED);
  v1::PutMatrixRequest put;
  *put.mutable_header()->mutable_shape() = ProtoShape({8, 8, gemm::DType::kF32});
  *put.mutable_header()->mutable_generator() = Generated().generator();
  upload.Write(put.SerializeAsString());
  upload.WritesDone();
  EXPECT_EQ(upload.Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(List("root", false, /*every_owner=*/true), IsEmpty());
  Install(Line("carol", "call"));
  EXPECT_EQ(RunJob(stream, 4), StatusCode::OK) << "the stream is still open";
  stream.WritesDone();
  EXPECT_TRUE(stream.Finish().ok());
}

}  // namespace
}  // namespace gemmd
