// Checked products: right, unlikely and wrong ones.
#include "server/engine/job/result_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gemm/catalogue.h"
#include "server/base/clock.h"
#include "server/engine/core/device_losses.h"
#include "server/engine/job/job_impl.h"
#include "server/engine/policy/cost_model.h"
#include "tests/engine/fake_core.h"
#include "tests/engine/recorder.h"
#include "tests/engine/spoiling_device.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kFirst[] = "host_openblas";
constexpr char kSecond[] = "host_reference";

// Remembers the report of the last job.
class LastJob final : public EngineObserver {
 public:
  void OnJobEnd(const JobReport& report, const absl::Status&) override {
    MutexLock lock(mutex_);
    report_ = report;
  }
  void OnTransferEnd(bool, uint64_t, absl::Duration, const absl::Status&) override {}
  JobReport report() {
    MutexLock lock(mutex_);
    return report_;
  }

 private:
  Mutex mutex_;
  JobReport report_ ABSL_GUARDED_BY(mutex_);
};

class ResultCheckTest : public ::testing::Test {
 protected:
  // Products of all 0.5 of 4 columns: each element is k / 4, exactly.
  static constexpr int64_t kRows = 6, kColumns = 4, kDepth = 4096;
  static constexpr double kRight = kDepth / 4;
  // Between the likely bound of such a product and the possible one, and beyond both.
  static constexpr double kUnlikely = kRight + 0.5, kWrong = kRight + 64;

  static JobSpec Product() {
    const FromGenerator half{{.low_or_mean = 0.5, .high_or_stddev = 0.5}};
    JobSpec spec;
    spec.a = {Shape{kRows, kDepth, gemm::DType::kF32}, half};
    spec.b = {Shape{kDepth, kColumns, gemm::DType::kF32}, half};
    spec.verify = Verify::kAlways;
    return spec;
  }

  void Make(EngineOptions options = FakeCore::DefaultOptions()) {
    fake_ = std::make_unique<FakeCore>(options, 0);
    EngineCore& core = fake_->core;
    core.devices.push_back(
        std::make_unique<SpoilingDevice>([this](absl::string_view kernel) -> std::optional<double> {
          const auto found = wrong_.find(std::string(kernel));
          if (found == wrong_.end()) return std::nullopt;
          return found->second;
        }));
    core.schedulers.push_back(std::make_unique<Scheduler>(*core.devices.back(), *core.queue_limit,
                                                          options.max_queue_wait));
    core.costs.push_back(std::make_unique<CostModel>(gemm::Target::kHost));
    core.placed.push_back(std::make_unique<PlacedWork>());
    core.losses = std::make_shared<DeviceLosses>(core);
    core.store =
        std::make_unique<MatrixStore>(1, options.store_bytes, options.max_matrices, *core.timer);
    core.observer = &last_;
  }

  absl::StatusOr<JobResult> Run(JobSpec spec) {
    if (fake_ == nullptr) Make();
    absl::StatusOr<AdmittedJob> admitted = AdmitJob(fake_->core, std::move(spec));
    if (!admitted.ok()) return admitted.status();
    recorder_ = std::make_shared<JobRecorder>();
    auto job = std::make_shared<JobImpl>(fake_->core, *std::move(admitted), recorder_, SteadyNow());
    job->Start();
    absl::StatusOr<JobResult> result = recorder_->Wait(absl::Minutes(5));
    EXPECT_FALSE(recorder_->misused());
    return result;
  }

  float ResultAt(size_t index) {
    float value;
    std::memcpy(&value, recorder_->bytes().data() + index * sizeof(value), sizeof(value));
    return value;
  }

  std::map<std::string, double> wrong_;  // by kernel
  LastJob last_;
  std::unique_ptr<FakeCore> fake_;
  std::shared_ptr<JobRecorder> recorder_;
};

TEST_F(ResultCheckTest, ARightProductPasses) {
  const auto result = Run(Product());
  ASSERT_TRUE(result.ok()) << result.status();
  const CheckReport& check = result->report.check;
  EXPECT_EQ(check.result, CheckResult::kPassed);
  EXPECT_LE(check.of_bound, 1);
  EXPECT_EQ(check.failed_kernel, "");
  EXPECT_EQ(result->report.kernel, kFirst);
  EXPECT_GT(result->report.phases.check, absl::ZeroDuration());
  EXPECT_EQ(ResultAt(0), kRight);
}

// The bound of a job's memory leaves room for the product, and none for its check.
TEST_F(ResultCheckTest, APolicyRefusesNoProductForTheRoomOfItsCheck) {
  EngineOptions options = FakeCore::DefaultOptions();
  options.verify = Verify::kAlways;
  constexpr int64_t kBytes =
      sizeof(float) * (kRows * kDepth + kDepth * kColumns + kRows * kColumns);
  options.max_job_bytes = kBytes + kRows * gemm::kRowAlignment;
  Make(options);
  JobSpec spec = Product();
  spec.verify = Verify::kOff;
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.check.result, CheckResult::kNone);
  EXPECT_THAT(result->report.check.why_not, HasSubstr("no device memory for the check"));
  EXPECT_EQ(ResultAt(0), kRight);
  EXPECT_EQ(Run(Product()).status().code(), absl::StatusCode::kResourceExhausted)
      << "who asks for a check gets no product without one";
}

TEST_F(ResultCheckTest, NothingIsCheckedUnlessAskedFor) {
  JobSpec spec = Product();
  spec.verify = Verify::kOff;
  wrong_[kFirst] = kWrong;
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.check.result, CheckResult::kNone);
  EXPECT_EQ(result->report.phases.check, absl::ZeroDuration());
  EXPECT_EQ(ResultAt(0), kWrong);
}

TEST_F(ResultCheckTest, AWrongProductIsReplacedByAnotherKernels) {
  wrong_[kFirst] = kWrong;
  const auto result = Run(Product());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.check.result, CheckResult::kWrong);
  EXPECT_EQ(result->report.check.failed_kernel, kFirst);
  EXPECT_GT(result->report.check.failed_of_bound, 1);
  EXPECT_LE(result->report.check.of_bound, 1);
  EXPECT_EQ(result->report.kernel, kSecond);
  EXPECT_THAT(result->report.reason, HasSubstr("failed its check"));
  EXPECT_EQ(ResultAt(0), kRight);
}

TEST_F(ResultCheckTest, AnUnlikelyProductIsReplacedToo) {
  wrong_[kFirst] = kUnlikely;
  const auto result = Run(Product());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.check.result, CheckResult::kSuspect);
  EXPECT_EQ(ResultAt(0), kRight);
}

TEST_F(ResultCheckTest, TwoUnlikelyProductsAreOfUnusualOperands) {
  wrong_ = {{kFirst, kUnlikely}, {kSecond, kUnlikely}};
  const auto result = Run(Product());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.check.result, CheckResult::kUnusual);
  EXPECT_GT(result->report.check.of_bound, 1);
  EXPECT_EQ(ResultAt(0), kUnlikely);
}

// OpenBLAS sums up in f32, the reference in f64.
TEST_F(ResultCheckTest, AKernelThatMayOverflowOnItsWayIsNotSuspect) {
  JobSpec spec = Product();
  spec.a = {Shape{kRows, kDepth, gemm::DType::kF32},
            FromGenerator{{.low_or_mean = 1e38, .high_or_stddev = 1e38}}};
  spec.alpha = 2.0 / kDepth;
  const auto result = Run(std::move(spec));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.check.result, CheckResult::kUnusual);
  EXPECT_EQ(result->report.check.failed_kernel, kFirst);
  EXPECT_NEAR(ResultAt(0) / 1e38f, 1, 1e-6);
}

TEST_F(ResultCheckTest, TwoWrongProductsFailTheJob) {
  wrong_ = {{kFirst, kWrong}, {kSecond, kWrong}};
  const auto result = Run(Product());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("failed its check twice on host:0"), HasSubstr(kFirst),
                    HasSubstr(kSecond), HasSubstr("row 0")));
  EXPECT_TRUE(recorder_->bytes().empty());
  EXPECT_EQ(last_.report().check.result, CheckResult::kLost);
  EXPECT_EQ(last_.report().check.failed_kernel, kFirst);
}

TEST_F(ResultCheckTest, AProductThatIsKeptIsCheckedAsWell) {
  wrong_ = {{kFirst, kWrong}, {kSecond, kWrong}};
  JobSpec spec = Product();
  spec.stream_result = false;
  spec.keep_result = KeepSpec{};
  EXPECT_EQ(Run(spec).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(fake_->core.store->count(), 0);
  wrong_.erase(kSecond);
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->kept.has_value());
  EXPECT_EQ(result->report.check.result, CheckResult::kWrong);
}

TEST_F(ResultCheckTest, EverythingIsGivenBack) {
  for (const bool lost : {false, true}) {
    wrong_[kFirst] = kWrong;
    if (lost) wrong_[kSecond] = kWrong;
    EXPECT_EQ(Run(Product()).ok(), !lost);
    // The completion thread releases the stream right after the job's end.
    fake_->core.admission->WaitIdle(absl::InfiniteFuture());
    EXPECT_EQ(fake_->core.devices[0]->memory().used(), 0u);
    EXPECT_EQ(fake_->core.admission->admitted_bytes().used, 0);
  }
}

TEST_F(ResultCheckTest, WithAnActivationTheAccumulatorsAreChecked) {
  for (const gemm::Activation activation :
       {gemm::Activation::kRelu, gemm::Activation::kGelu, gemm::Activation::kLeakyRelu}) {
    JobSpec spec = Product();
    spec.activation = activation;
    spec.alpha = -1;
    spec.leaky_slope = 0.5;
    wrong_ = {};
    auto result = Run(spec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->report.check.result, CheckResult::kPassed);
    EXPECT_TRUE(result->report.check.before_activation);
    EXPECT_EQ(ResultAt(0), activation == gemm::Activation::kLeakyRelu ? -kRight / 2 : 0);
    // An error that a relu would hide is found.
    wrong_[kFirst] = kWrong;
    result = Run(spec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->report.check.result, CheckResult::kWrong);
    EXPECT_EQ(ResultAt(0), activation == gemm::Activation::kLeakyRelu ? -kRight / 2 : 0);
  }
}

TEST_F(ResultCheckTest, TheJobsOwnCIsReadAgainByTheSecondKernel) {
  JobSpec spec = Product();
  spec.beta = 2;
  spec.c = {Shape{kRows, kColumns, gemm::DType::kF32},
            FromGenerator{{.low_or_mean = 8, .high_or_stddev = 8}}};
  wrong_[kFirst] = kWrong;
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.check.result, CheckResult::kWrong);
  for (size_t i = 0; i < kRows * kColumns; ++i) EXPECT_EQ(ResultAt(i), kRight + 16) << i;
}

TEST_F(ResultCheckTest, WithoutAProductThereIsNothingToCheck) {
  JobSpec spec = Product();
  spec.alpha = 0;
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.check.result, CheckResult::kNone);
  EXPECT_THAT(result->report.check.why_not, HasSubstr("alpha is 0"));
}

TEST_F(ResultCheckTest, ABatchIsRefusedWhereItsRequestAsksForACheck) {
  JobSpec spec = Product();
  spec.batch = kRows;
  spec.shared[Role::kB] = true;
  const auto refused = Run(spec);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("verify is always"), HasSubstr("batches are not checked"),
                    HasSubstr("batch_count is " + std::to_string(kRows))));

  const auto decision = PlanCheck({.wanted = true}, {}, Form::kBatch,
                                  {.m = 1, .n = 1, .k = 1, .batch = 2}, {}, gemm::DeviceCaps());
  ASSERT_TRUE(decision.ok()) << "the server's policy refuses nothing";
  EXPECT_FALSE(decision->plan.has_value());
  EXPECT_THAT(decision->why_not, HasSubstr("batch_count is 2"));
}

TEST_F(ResultCheckTest, AGroupIsRefusedWhereItsRequestAsksForACheck) {
  JobSpec spec = Product();
  const int64_t n = spec.b.shape->cols, k = spec.a.shape->cols;
  spec.group = {{1, n, k}, {kRows - 1, n, k}};
  spec.shared[Role::kB] = true;
  const auto refused = Run(spec);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("verify is always"), HasSubstr("groups are not checked"),
                    HasSubstr("group has 2 products")));

  const int64_t extents[] = {1, 0, 3};
  const gemm::Problem problem = {
      .m = 4, .n = 1, .k = 1, .grouped = gemm::GroupedBy::kM, .extents = extents};
  const auto decision =
      PlanCheck({.wanted = true}, {}, Form::kGroup, problem, {}, gemm::DeviceCaps());
  ASSERT_TRUE(decision.ok()) << "the server's policy refuses nothing";
  EXPECT_FALSE(decision->plan.has_value());
  EXPECT_THAT(decision->why_not, HasSubstr("group has 3 products"));
}

TEST_F(ResultCheckTest, TheMemoryOfACheckCountsAtAdmission) {
  Make();
  JobSpec spec = Product();
  const auto checked = AdmitJob(fake_->core, spec);
  spec.verify = Verify::kOff;
  const auto unchecked = AdmitJob(fake_->core, spec);
  ASSERT_TRUE(checked.ok() && unchecked.ok());
  const size_t bytes = checked->check.plan->bytes();
  EXPECT_GE(bytes, gemm::CheckScratchBytes(checked->plan.problem));
  EXPECT_GE(checked->holdings->check_memory.bytes(), bytes);
  EXPECT_FALSE(unchecked->check.plan.has_value());
  EXPECT_EQ(unchecked->holdings->check_memory.data(), nullptr);
}

// A checked result does not replace C, which a second try may need.
TEST_F(ResultCheckTest, AllTheMemoryOfACheckedJobCountsAtAdmission) {
  Make();
  JobSpec spec = Product();
  spec.beta = 1;
  const Shape shape_of_c{kRows, kColumns, gemm::DType::kF32};
  spec.c = {shape_of_c, FromGenerator{{.low_or_mean = 0.5, .high_or_stddev = 0.5}}};
  const uint64_t operands = spec.a.shape->pitched_bytes() + spec.b.shape->pitched_bytes();
  const auto checked = AdmitJob(fake_->core, spec);
  ASSERT_TRUE(checked.ok()) << checked.status();
  ASSERT_TRUE(checked->check.plan.has_value());
  const CheckPlan& plan = *checked->check.plan;
  EXPECT_EQ(static_cast<uint64_t>(fake_->core.admission->admitted_bytes().used),
            operands + 2 * shape_of_c.pitched_bytes() + plan.workspace_bytes + plan.bytes());
}

// Kernels that compute D and cannot leave its accumulators are a GPU's. One of the host that is
// asked for on a GPU stands for them.
TEST(PlanCheck, AKernelWithoutAccumulatorsIsUncheckedUnlessTheRequestInsists) {
  constexpr gemm::DeviceCaps kHost{gemm::Target::kHost, 0}, kGpu{gemm::Target::kCuda, 90};
  const gemm::Problem problem{
      .m = 8,
      .n = 8,
      .k = 8,
      .types = {gemm::DType::kF16, gemm::DType::kF16, gemm::DType::kF16, gemm::Compute::kF32},
      .activation = gemm::Activation::kRelu};
  const KernelRequest named{.name = kFirst};
  const auto pick = PickKernelByRank(named, {.types = problem.types}, kHost);
  ASSERT_TRUE(pick.ok()) << pick.status();
  const auto by_policy = PlanCheck({.wanted = true}, named, Form::kSingle, problem, *pick, kGpu);
  ASSERT_TRUE(by_policy.ok()) << by_policy.status();
  EXPECT_FALSE(by_policy->plan.has_value());
  EXPECT_THAT(by_policy->why_not, HasSubstr("needs the accumulators"));
  const auto refused =
      PlanCheck({.wanted = true, .by_request = true}, named, Form::kSingle, problem, *pick, kGpu);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("verify is always"), HasSubstr("choose another kernel")));
}

TEST(PlanCheck, ABlockOfRowsKeepsTheKernelOfItsProduct) {
  constexpr gemm::DeviceCaps kHost{gemm::Target::kHost, 0};
  const gemm::Problem problem{
      .m = 8,
      .n = 8,
      .k = 8,
      .types = {gemm::DType::kF32, gemm::DType::kF32, gemm::DType::kF32, gemm::Compute::kF32},
      .activation = gemm::Activation::kRelu};
  const auto pick = PickKernelByRank({.name = kSecond}, {.types = problem.types}, kHost);
  ASSERT_TRUE(pick.ok()) << pick.status();
  const auto check = [&](bool by_request, const KernelPick& of, Form form) {
    return PlanCheck({.wanted = true, .by_request = by_request}, {}, form, problem, of, kHost);
  };
  const auto whole = check(false, *pick, Form::kSingle);
  ASSERT_TRUE(whole.ok() && whole->plan.has_value());
  const KernelPick& own = whole->plan->first;
  ASSERT_NE(own.kernel, pick->kernel) << "the rank's, which a check takes by itself";
  EXPECT_TRUE(check(false, own, Form::kRowBlock)->plan.has_value());
  const auto block = check(false, *pick, Form::kRowBlock);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_FALSE(block->plan.has_value());
  EXPECT_THAT(block->why_not, HasSubstr("all blocks of rows have kernel"));
  const auto insisted = check(true, *pick, Form::kRowBlock);
  ASSERT_TRUE(insisted.ok() && insisted->plan.has_value()) << "as all other blocks";
  EXPECT_EQ(insisted->plan->first.kernel, own.kernel);
}

TEST_F(ResultCheckTest, TheStricterOfRequestAndPolicyCounts) {
  EngineOptions policy;
  policy.verify_sample_rate = 0;
  const auto wanted = [&](Verify request, Verify server) {
    policy.verify = server;
    return WishFor(request, policy).wanted;
  };
  EXPECT_FALSE(wanted(Verify::kOff, Verify::kOff));
  EXPECT_TRUE(wanted(Verify::kOff, Verify::kAlways));
  EXPECT_TRUE(wanted(Verify::kAlways, Verify::kOff));
  EXPECT_TRUE(wanted(Verify::kSampled, Verify::kAlways));
  EXPECT_TRUE(wanted(Verify::kAlways, Verify::kSampled));
  EXPECT_FALSE(wanted(Verify::kSampled, Verify::kOff));  // at a rate of 0
  policy.verify_sample_rate = 1;
  EXPECT_TRUE(wanted(Verify::kSampled, Verify::kOff));
  EXPECT_TRUE(wanted(Verify::kOff, Verify::kSampled));
}

TEST_F(ResultCheckTest, ASampleIsTheShareThatTheRateSays) {
  EngineOptions policy;
  policy.verify = Verify::kSampled;
  policy.verify_sample_rate = 0.25;
  int wanted = 0;
  for (int i = 0; i < 4000; ++i) wanted += WishFor(Verify::kOff, policy).wanted ? 1 : 0;
  EXPECT_GT(wanted, 800);  // 1000, and seven standard deviations either way
  EXPECT_LT(wanted, 1200);
}

TEST_F(ResultCheckTest, SeedsDiffer) {
  EngineOptions policy;
  EXPECT_NE(WishFor(Verify::kAlways, policy).seed, WishFor(Verify::kAlways, policy).seed);
}

}  // namespace
}  // namespace gemmd
