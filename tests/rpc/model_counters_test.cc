#include "server/rpc/inference/model_counters.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Model LinearModel(int number) {
  return {.kind = ModelKind::kLinear,
          .name = absl::StrCat("linear/", number),
          .version = "",
          .weight = {}};
}

TEST(ModelCounters, EachCallerHasItsOwn) {
  ModelCounters counters;
  JobReport report;
  report.m = 7;
  report.phases.total = absl::Milliseconds(9);
  report.phases.queue = absl::Milliseconds(1);
  report.phases.receive = absl::Milliseconds(2);
  report.phases.kernel = absl::Milliseconds(3);
  report.phases.send = absl::Milliseconds(3);
  counters.OnSuccess("anna", LinearModel(1), report);
  counters.OnSuccess("anna", LinearModel(1), report);
  counters.OnFailure("anna", LinearModel(1), absl::Milliseconds(5));
  EXPECT_THAT(counters.ModelsOf("anna"), ElementsAre("linear/1"));
  EXPECT_THAT(counters.ModelsOf("ann"), IsEmpty());
  const inference::ModelStatistics sum = counters.Of("anna", "linear/1");
  EXPECT_EQ(sum.inference_count(), 14);
  EXPECT_EQ(sum.execution_count(), 2);
  const inference::InferStatistics& times = sum.inference_stats();
  EXPECT_EQ(times.success().ns(), 18'000'000);
  EXPECT_EQ(times.queue().ns(), 2'000'000);
  EXPECT_EQ(times.compute_input().ns(), 4'000'000);
  EXPECT_EQ(times.compute_infer().ns(), 6'000'000);
  EXPECT_EQ(times.compute_output().ns(), 6'000'000);
  EXPECT_EQ(times.fail().count(), 1);
  EXPECT_EQ(times.fail().ns(), 5'000'000);
  EXPECT_EQ(counters.Of("mia", "linear/1").inference_count(), 0);
}

TEST(ModelCounters, AFailedRequestMakesNoModelOfANameThatMayNotExist) {
  ModelCounters counters;
  counters.OnFailure("", LinearModel(1), absl::Seconds(1));
  EXPECT_THAT(counters.ModelsOf(""), IsEmpty());
  counters.OnFailure("",
                     {.kind = ModelKind::kMatmul, .name = "matmul", .version = "", .weight = {}},
                     absl::Seconds(1));
  EXPECT_EQ(counters.Of("", "matmul").inference_stats().fail().count(), 1);
}

TEST(ModelCounters, PastTheBoundTheModelWithTheOldestRequestIsForgotten) {
  ModelCounters counters;
  const int most = static_cast<int>(ModelCounters::kMostOfCaller);
  for (int i = 0; i < most; ++i) counters.OnSuccess("anna", LinearModel(i), JobReport());
  counters.OnSuccess("anna", LinearModel(0), JobReport());
  counters.OnSuccess("anna", LinearModel(most), JobReport());
  EXPECT_EQ(counters.ModelsOf("anna").size(), ModelCounters::kMostOfCaller);
  EXPECT_EQ(counters.Of("anna", "linear/0").execution_count(), 2);
  EXPECT_EQ(counters.Of("anna", "linear/1").execution_count(), 0);
}

TEST(ModelCounters, CallersWithManyModelsDoNotPushOutThoseOfOthers) {
  ModelCounters counters;
  counters.OnSuccess("anna", LinearModel(0), JobReport());
  const int callers = static_cast<int>(ModelCounters::kMostModels / ModelCounters::kMostOfCaller);
  size_t models = 0;
  for (int caller = 0; caller < callers; ++caller) {
    for (int i = 0; i < static_cast<int>(ModelCounters::kMostOfCaller); ++i) {
      counters.OnSuccess(absl::StrCat("busy", caller), LinearModel(i), JobReport());
    }
  }
  for (int caller = 0; caller < callers; ++caller) {
    models += counters.ModelsOf(absl::StrCat("busy", caller)).size();
  }
  EXPECT_EQ(counters.Of("anna", "linear/0").execution_count(), 1);
  EXPECT_EQ(models + 1, ModelCounters::kMostModels);
}

TEST(ModelCounters, ACallerWhoseLastModelIsForgottenIsForgotten) {
  ModelCounters counters;
  for (size_t i = 0; i <= ModelCounters::kMostModels; ++i) {
    counters.OnSuccess(absl::StrCat(i), LinearModel(0), JobReport());
  }
  EXPECT_EQ(counters.callers(), ModelCounters::kMostModels);
}

}  // namespace
}  // namespace gemmd
