// Idle tuning beside an engine's own jobs, and beside benchmarks of others, on the host.
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/benchmark/benchmarks.h"
#include "server/benchmark/idle_tuner.h"
#include "tests/base/temporary_folder.h"
#include "tests/base/test_clock.h"
#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;

// Passes everything on, and calls `on_step` before each step.
class Watched final : public BenchmarkListener {
 public:
  Watched(std::shared_ptr<BenchmarkListener> next, std::function<void(const std::string&)> on_step)
      : next_(std::move(next)), on_step_(std::move(on_step)) {}
  void OnOutline(const BenchmarkOutline& outline) override { next_->OnOutline(outline); }
  void OnProgress(const gemm::bench::Progress& progress) override {
    on_step_(progress.step);
    next_->OnProgress(progress);
  }
  void OnRows(size_t shape, absl::Span<const gemm::bench::Row> rows) override {
    next_->OnRows(shape, rows);
  }
  void OnEnd(absl::StatusOr<BenchmarkTotals> totals) override { next_->OnEnd(std::move(totals)); }

 private:
  const std::shared_ptr<BenchmarkListener> next_;
  const std::function<void(const std::string&)> on_step_;
};

class Outcomes final : public IdleTuningListener {
 public:
  void OnRunning(bool) override {}
  void OnProduct(const IdleTuningReport& report) override { all.push_back(report.outcome); }
  void OnUnwritten(const absl::Status& why) override { ADD_FAILURE() << why; }
  std::vector<IdleTuningOutcome> all;
};

// Only the end.
class End final : public BenchmarkListener {
 public:
  void OnOutline(const BenchmarkOutline&) override {}
  void OnProgress(const gemm::bench::Progress&) override {}
  void OnRows(size_t, absl::Span<const gemm::bench::Row>) override {}
  void OnEnd(absl::StatusOr<BenchmarkTotals> totals) override { end_.set_value(totals.status()); }
  absl::Status Wait() { return end_.get_future().get(); }

 private:
  std::promise<absl::Status> end_;
};

class IdleTunerJobsTest : public EngineTest {
 protected:
  IdleTunerJobsTest() {
    Make();
    benchmarks_ = std::make_unique<Benchmarks>(*engine_, BenchmarkLimits(), nullptr);
    tuner_ = std::make_unique<IdleTuner>(
        *engine_,
        [this](BenchmarkSpec spec, std::shared_ptr<BenchmarkListener> listener) {
          return benchmarks_->Start(std::move(spec),
                                    std::make_shared<Watched>(std::move(listener), on_step_));
        },
        absl::Minutes(1), path_, outcomes_);
  }
  ~IdleTunerJobsTest() override {
    tuner_.reset();
    benchmarks_.reset();
    engine_.reset();  // before its clock
  }

  // A product, from its arrival to its end.
  void RunJob() {
    const auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(DrawnProduct(24, 16, 8), recorder);
    ASSERT_TRUE(job.ok()) << job.status();
    (*job)->Start();
    const auto result = recorder->Wait();
    EXPECT_TRUE(result.ok()) << result.status();
  }
  void LookWhileIdle() {
    ExpectNothingHeld();
    tuner_->Look();  // sees what has arrived
    tuner_->Look();
    clock_.Advance(kIdleTime);
    tuner_->Look();
  }

  TestClock clock_;
  const TemporaryFolder folder_;
  const std::string path_ = folder_.Path("idle.tune");
  std::function<void(const std::string&)> on_step_ = [](const std::string&) {};
  Outcomes outcomes_;
  std::unique_ptr<Benchmarks> benchmarks_;
  std::unique_ptr<IdleTuner> tuner_;
};

// The job comes right before a sample, and is served while the benchmark stands still there: it
// needs nothing from it. The launches of that sample are not made.
TEST_F(IdleTunerJobsTest, AJobThatComesIsServedAndNoFurtherSampleIsTaken) {
  RunJob();
  int samples = 0;
  on_step_ = [&](const std::string& step) {
    if (step != "host_openblas") return;
    if (++samples == 3) RunJob();
  };
  LookWhileIdle();
  EXPECT_EQ(samples, 3);
  EXPECT_THAT(outcomes_.all, ElementsAre(IdleTuningOutcome::kInterrupted));
  LookWhileIdle();
  EXPECT_THAT(outcomes_.all,
              ElementsAre(IdleTuningOutcome::kInterrupted, IdleTuningOutcome::kTuned));
}

TEST_F(IdleTunerJobsTest, ABenchmarkOfOthersEndsItAndRuns) {
  RunJob();
  BenchmarkSpec spec{.shapes = {{8, 8, 8}}};
  spec.selection.kernels = {"host_reference"};
  const auto others = std::make_shared<End>();
  int samples = 0;
  on_step_ = [&](const std::string& step) {
    if (step != "host_openblas" || ++samples != 3) return;
    const auto run = benchmarks_->Start(spec, others);
    EXPECT_TRUE(run.ok()) << run.status();
    // One comes after the other, but no third.
    const auto third = benchmarks_->Start(spec, std::make_shared<End>());
    EXPECT_TRUE(absl::IsResourceExhausted(third.status())) << third.status();
  };
  LookWhileIdle();
  EXPECT_EQ(samples, 3);
  EXPECT_THAT(outcomes_.all, ElementsAre(IdleTuningOutcome::kInterrupted));
  const absl::Status end = others->Wait();
  EXPECT_TRUE(end.ok()) << end;
  EXPECT_TRUE(benchmarks_->UnderWay().empty());
}

// One that gives way ends none.
TEST_F(IdleTunerJobsTest, DoesNotEndABenchmarkOfOthers) {
  RunJob();
  std::promise<void> reached, go_on;
  BenchmarkSpec spec{.shapes = {{8, 8, 8}}};
  spec.selection.kernels = {"host_reference"};
  const auto others = std::make_shared<End>();
  std::atomic<bool> held = false;
  const auto run =
      benchmarks_->Start(spec, std::make_shared<Watched>(others, [&](const std::string&) {
                           if (held.exchange(true)) return;
                           reached.set_value();
                           go_on.get_future().wait();
                         }));
  ASSERT_TRUE(run.ok()) << run.status();
  reached.get_future().wait();
  LookWhileIdle();
  EXPECT_TRUE(outcomes_.all.empty());
  go_on.set_value();
  EXPECT_TRUE(others->Wait().ok());
  LookWhileIdle();
  EXPECT_THAT(outcomes_.all, ElementsAre(IdleTuningOutcome::kTuned));
}

}  // namespace
}  // namespace gemmd
