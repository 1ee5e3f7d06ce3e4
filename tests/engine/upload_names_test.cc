// Uploads that replace a matrix, whole and split.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/engine/transfer/upload_impl.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_core.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

class UploadNamesTest : public ::testing::Test {
 protected:
  using UploadPtr = std::shared_ptr<UploadGroup>;

  // 256 bytes, under the name x.
  static UploadSpec Upload(const std::string& upload_id, bool replace = true) {
    UploadSpec spec;
    spec.shape = {4, 16, gemm::DType::kF32};
    spec.keep = {.name = "x", .replace = replace};
    spec.upload_id = upload_id;
    return spec;
  }
  UploadPtr Join(const UploadSpec& spec, ByteSpan range = {0, 256}) {
    absl::StatusOr<UploadPtr> group = fake_.core.uploads->Join(spec, range);
    EXPECT_TRUE(group.ok()) << group.status();
    return group.value_or(nullptr);
  }
  MatrixRecord PutWhole(bool replace) {
    const absl::StatusOr<UploadResult> put = Join(Upload("", replace))->Land({0, 256});
    EXPECT_TRUE(put.ok()) << put.status();
    return put.ok() ? put->matrix : MatrixRecord();
  }
  std::string Named() {
    const absl::StatusOr<MatrixPin> pin = store().Pin({.name = "x"});
    return pin.ok() ? pin->matrix().record.id : "";
  }
  MatrixStore& store() { return *fake_.core.store; }
  void ExpectOneMatrix() {
    EXPECT_EQ(store().count(), 1);
    EXPECT_EQ(store().used_bytes(0), 256u);
    EXPECT_EQ(fake_.device().memory().used(), Arena::kAlignment);
  }

  TestClock clock_;
  FakeCore fake_;
};

TEST_F(UploadNamesTest, ReplaceWithTheirLastRange) {
  const MatrixRecord old = PutWhole(/*replace=*/false);
  const UploadPtr group = Join(Upload("u"), {0, 100});
  Join(Upload("u"), {100, 156});
  const absl::StatusOr<UploadResult> first = group->Land({100, 156});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->matrix.version, 0u) << "it is not complete";
  EXPECT_EQ(Named(), old.id);
  const absl::StatusOr<UploadResult> last = group->Land({0, 100});
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(Named(), last->matrix.id);
  EXPECT_GT(last->matrix.version, old.version);
  ExpectOneMatrix();
  const MatrixRecord whole = PutWhole(/*replace=*/true);
  EXPECT_EQ(Named(), whole.id);
  ExpectOneMatrix();
}

TEST_F(UploadNamesTest, CallsOfOneUploadAgreeOnWhatTheyReplace) {
  const UploadPtr group = Join(Upload("u"), {0, 100});
  UploadSpec conditional = Upload("u");
  conditional.keep.if_version = 0;
  for (const UploadSpec& differs : {Upload("u", /*replace=*/false), conditional}) {
    EXPECT_EQ(fake_.core.uploads->Join(differs, {100, 156}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(UploadNamesTest, LeaveTheOldOneWhereTheyFail) {
  const MatrixRecord old = PutWhole(/*replace=*/false);
  Join(Upload("u"), {0, 100})->Fail(absl::CancelledError("the caller left"));
  EXPECT_EQ(Named(), old.id);
  ExpectOneMatrix();
  const UploadPtr silent = Join(Upload("v"), {0, 100});
  clock_.Advance(fake_.core.options.upload_timeout);
  RunDue(*fake_.core.timer);
  EXPECT_EQ(silent->Land({0, 100}).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Named(), old.id);
  ExpectOneMatrix();
}

TEST_F(UploadNamesTest, EndWhereTheVersionChangedMeanwhile) {
  const MatrixRecord old = PutWhole(/*replace=*/false);
  UploadSpec conditional = Upload("u");
  conditional.keep.if_version = old.version;
  const UploadPtr group = Join(conditional, {0, 100});
  Join(conditional, {100, 156});
  ASSERT_TRUE(group->Land({0, 100}).ok());
  const MatrixRecord other = PutWhole(/*replace=*/true);
  const absl::Status refused = group->Land({100, 156}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(refused.message(), HasSubstr("keep.if_version"));
  EXPECT_EQ(Named(), other.id);
  ExpectOneMatrix();
  conditional.keep.if_version = other.version;
  EXPECT_NE(Join(conditional, {0, 100}), group) << "the upload id is free again";
}

}  // namespace
}  // namespace gemmd
