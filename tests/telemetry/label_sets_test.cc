#include "server/telemetry/label_sets.h"

#include "gemm/dtype.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

TEST(LabelSetTest, KnownValuesKeepTheirIndexAndOthersFallBack) {
  const LabelSet set({"x", "y"}, "none");
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set[set.IndexOf("x")], "x");
  EXPECT_EQ(set[set.IndexOf("y")], "y");
  EXPECT_EQ(set[set.IndexOf("z")], "none");
  EXPECT_EQ(set[set.IndexOf("")], "none");
}

TEST(LabelSetTest, OutcomesAreCanonicalNamesByNumber) {
  const LabelSet outcomes = OutcomeLabels();
  EXPECT_EQ(outcomes[OutcomeIndex(absl::StatusCode::kOk)], "OK");
  EXPECT_EQ(outcomes[OutcomeIndex(absl::StatusCode::kResourceExhausted)], "RESOURCE_EXHAUSTED");
  EXPECT_EQ(outcomes[OutcomeIndex(absl::StatusCode::kUnauthenticated)], "UNAUTHENTICATED");
  EXPECT_EQ(outcomes[OutcomeIndex(static_cast<absl::StatusCode>(17))], "UNRECOGNIZED");
  EXPECT_EQ(outcomes[OutcomeIndex(static_cast<absl::StatusCode>(-1))], "UNRECOGNIZED");
}

TEST(LabelSetTest, DTypesStandAtTheirNumber) {
  const LabelSet dtypes = DTypeLabels();
  EXPECT_EQ(dtypes[static_cast<size_t>(gemm::DType::kF64)], "f64");
  EXPECT_EQ(dtypes[static_cast<size_t>(gemm::DType::kBF16)], "bf16");
  EXPECT_EQ(dtypes[dtypes.fallback()], "none");
}

}  // namespace
}  // namespace gemmd
