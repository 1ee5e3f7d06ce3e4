// Measurements while a server is idle: which, when, and how they end. The test decides what the
// engine and the benchmarks do, and moves the clock.
#include "server/benchmark/idle_tuner.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gemm/machine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/core/tuning.h"
#include "tests/base/temporary_folder.h"
#include "tests/base/test_clock.h"
#include "tests/telemetry/fake_engine.h"

namespace gemmd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Outcome = IdleTuningOutcome;

constexpr int kEstimated = 12;

// Twelve kernels with estimates, the first the least, one without, and one that is not
// deterministic. `auto` takes estimated_11.
class ScriptedEngine final : public FakeEngine {
 public:
  ScriptedEngine() : FakeEngine(StatsOfOne()) {
    for (int i = 0; i < kEstimated; ++i) names_.push_back("estimated_" + std::to_string(i));
    names_.insert(names_.end(), {"library", "unordered"});
    for (const std::string& name : names_) kernels_.push_back({.name = name});
    kernels_.back().deterministic = false;
  }

  EngineActivity Activity() const override { return activity; }
  std::vector<TrafficEntry> ListTraffic(size_t) const override { return traffic; }
  absl::StatusOr<KernelRanking> RankKernels(const RankingQuestion& question) const override {
    if (question.device != "host:1") return absl::InternalError(question.device);
    KernelRanking ranking{.device = question.device, .machine = gemm::HostMachine(), .rule = rule};
    for (size_t i = kernels_.size(); i-- > 0;) {
      const double estimate = i < kEstimated ? 1.0 + static_cast<double>(i) : 0;
      ranking.kernels.push_back({.kernel = &kernels_[i], .estimated_seconds = estimate});
    }
    std::swap(ranking.kernels[0], ranking.kernels[2]);
    ranking.kernels[0].tuned = TunedFrom();
    return ranking;
  }

  void Arrive() { ++activity.arrived; }

  EngineActivity activity;
  std::vector<TrafficEntry> traffic;
  ChoiceRule rule = ChoiceRule::kEstimate;

 private:
  static EngineStats StatsOfOne() {
    EngineStats stats;
    stats.traffic = {0, 1024};
    stats.devices.resize(2);
    stats.devices[0].name = "host:0";
    stats.devices[0].health = absl::UnavailableError("lost");
    stats.devices[1].name = "host:1";
    return stats;
  }

  std::vector<std::string> names_;
  std::vector<gemm::Kernel> kernels_;
};

// Runs each kernel of a selection in one launch, which takes as long as its name says.
class ScriptedBenchmarks {
 public:
  absl::StatusOr<std::shared_ptr<BenchmarkRun>> Start(const BenchmarkSpec& spec,
                                                      BenchmarkListener& listener) {
    if (!refusal.ok()) return refusal;
    specs.push_back(spec);
    std::vector<gemm::bench::Row> rows;
    absl::Status end;
    for (const std::string& kernel : spec.selection.kernels) {
      end = spec.stopped();
      if (!end.ok()) break;
      ++launches;
      if (on_launch) on_launch();
      const gemm::bench::TypesPattern& types = spec.selection.types[0];
      rows.push_back({.shape = spec.shapes[0],
                      .types = {*types.a, *types.b, *types.d, *types.compute},
                      .layout = *spec.selection.layout,
                      .kernel = kernel,
                      .measured = measures,
                      .seconds = SecondsOf(kernel)});
    }
    if (end.ok()) end = spec.stopped();
    if (end.ok()) listener.OnRows(0, rows);
    listener.OnEnd(end.ok() ? absl::StatusOr<BenchmarkTotals>(BenchmarkTotals()) : end);
    return std::make_shared<BenchmarkRun>("", spec.device, true);
  }

  static double SecondsOf(const std::string& kernel) {
    if (kernel == "estimated_3") return 1;
    return kernel == "library" ? 1.2 : 4;
  }

  absl::Status refusal;
  std::function<void()> on_launch;
  bool measures = true;
  int launches = 0;
  std::vector<BenchmarkSpec> specs;
};

class Reports final : public IdleTuningListener {
 public:
  void OnRunning(bool now) override {
    EXPECT_NE(now, running);
    running = now;
  }
  void OnProduct(const IdleTuningReport& report) override { reports.push_back(report); }
  void OnUnwritten(const absl::Status& why) override { unwritten.push_back(why); }

  std::vector<Outcome> outcomes() const {
    std::vector<Outcome> all;
    for (const IdleTuningReport& report : reports) all.push_back(report.outcome);
    return all;
  }

  bool running = false;
  std::vector<IdleTuningReport> reports;
  std::vector<absl::Status> unwritten;
};

class IdleTunerTest : public ::testing::Test {
 protected:
  IdleTunerTest() { Make(path_); }

  static gemm::TunedProduct Product(int64_t m) {
    return gemm::TunedProduct::Of({.m = m, .n = 16, .k = 8, .trans_b = true});
  }
  void Traffic(int64_t m, double seconds, bool epilogue = false) {
    gemm::TunedProduct product = Product(m);
    if (epilogue) product.epilogue = gemm::EpilogueClass::kFull;
    engine_.traffic.push_back({.product = product, .count = 1, .seconds = seconds});
  }

  // A look at an idle server.
  void LookWhileIdle() {
    tuner_->Look();
    clock_.Advance(kIdleTime);
    tuner_->Look();
  }
  std::vector<int64_t> Measured() const {
    std::vector<int64_t> all;
    for (const BenchmarkSpec& spec : benchmarks_.specs) {
      if (all.empty() || all.back() != spec.shapes[0].m) all.push_back(spec.shapes[0].m);
    }
    return all;
  }
  gemm::TuningTable Written() const {
    const absl::StatusOr<gemm::TuningTable> table = ReadIdleTuning(path_);
    EXPECT_TRUE(table.ok()) << table.status();
    return table.ok() ? *table : gemm::TuningTable();
  }
  void Make(const std::string& path) {
    tuner_ = std::make_unique<IdleTuner>(
        engine_,
        [this](const BenchmarkSpec& spec, const std::shared_ptr<BenchmarkListener>& listener) {
          return benchmarks_.Start(spec, *listener);
        },
        absl::Seconds(3), path, reports_);
  }

  TestClock clock_;
  const TemporaryFolder folder_;
  const std::string path_ = folder_.Path("idle.tune");
  ScriptedEngine engine_;
  ScriptedBenchmarks benchmarks_;
  Reports reports_;
  std::unique_ptr<IdleTuner> tuner_;
};

TEST_F(IdleTunerTest, WaitsUntilNothingHasRunForAWhile) {
  Traffic(32, 1);
  engine_.activity = {1, 1};
  LookWhileIdle();
  LookWhileIdle();
  EXPECT_THAT(benchmarks_.specs, IsEmpty()) << "a job is under way";
  engine_.activity = {1, 0};
  tuner_->Look();
  clock_.Advance(kIdleTime - absl::Nanoseconds(1));
  tuner_->Look();
  EXPECT_THAT(benchmarks_.specs, IsEmpty());
  // One that came and went between two looks.
  engine_.Arrive();
  clock_.Advance(absl::Nanoseconds(1));
  tuner_->Look();
  EXPECT_THAT(benchmarks_.specs, IsEmpty());
  LookWhileIdle();
  EXPECT_THAT(reports_.outcomes(), ElementsAre(Outcome::kTuned));
  EXPECT_FALSE(reports_.running);
}

TEST_F(IdleTunerTest, TakesWhatTookTheMostTimeAndEachOnce) {
  Traffic(32, 3);
  Traffic(64, 2);
  Traffic(64, 2, /*epilogue=*/true);
  Traffic(128, 1);
  for (int i = 0; i < 5; ++i) LookWhileIdle();
  EXPECT_THAT(Measured(), ElementsAre(64, 32, 128));
  EXPECT_THAT(reports_.reports, SizeIs(3));
}

TEST_F(IdleTunerTest, MeasuresTheBestByEstimateAndThoseWithoutInRounds) {
  Traffic(32, 1);
  LookWhileIdle();
  ASSERT_THAT(benchmarks_.specs, SizeIs(kIdleRounds));
  const BenchmarkSpec& first = benchmarks_.specs[0];
  EXPECT_THAT(first.selection.kernels, SizeIs(kIdleBestEstimates + 1));
  EXPECT_THAT(first.selection.kernels, Contains("library"));
  EXPECT_THAT(first.selection.kernels, Not(Contains("estimated_8")));
  EXPECT_THAT(first.selection.kernels, Not(Contains("unordered")));
  EXPECT_EQ(first.device, "host:1");
  EXPECT_TRUE(first.selection.layout->trans_b);
  EXPECT_FALSE(first.rules.baselines);
  EXPECT_TRUE(first.gives_way);
  EXPECT_EQ(first.budget, absl::Seconds(3));
  // Those near the fastest go on.
  for (const int round : {1, 2}) {
    EXPECT_THAT(benchmarks_.specs[round].selection.kernels, ElementsAre("estimated_3", "library"));
  }
  ASSERT_THAT(reports_.reports, SizeIs(1));
  EXPECT_EQ(reports_.reports[0].choice, (gemm::TunedChoice{"estimated_3", {}, 1}));
  EXPECT_EQ(reports_.reports[0].before_seconds, std::nullopt) << "estimated_11 was not measured";
  EXPECT_EQ(TextOf(reports_.reports[0].product), "32x16x8 f32:f32:f32:f32 nt");
}

// The launch under way is the last one, and nothing of the product is kept.
TEST_F(IdleTunerTest, EndsBeforeTheNextLaunchWhenAJobComes) {
  Traffic(32, 1);
  // In the last round.
  benchmarks_.on_launch = [this] {
    if (benchmarks_.specs.size() == kIdleRounds) engine_.Arrive();
  };
  LookWhileIdle();
  EXPECT_EQ(benchmarks_.launches, static_cast<int>(kIdleBestEstimates) + 1 + 2 + 1);
  EXPECT_THAT(reports_.outcomes(), ElementsAre(Outcome::kInterrupted));
  EXPECT_EQ(Written().size(), 0u);
  EXPECT_FALSE(reports_.running);
  // Again from the beginning, when the server is idle again.
  benchmarks_.on_launch = nullptr;
  benchmarks_.specs.clear();
  clock_.Advance(kIdleTime);
  tuner_->Look();
  EXPECT_THAT(benchmarks_.specs, IsEmpty());
  LookWhileIdle();
  EXPECT_THAT(benchmarks_.specs, SizeIs(kIdleRounds));
  EXPECT_EQ(Written().size(), 1u);
}

TEST_F(IdleTunerTest, GivesAProductUpThatCallersEndEachTime) {
  Traffic(32, 2);
  Traffic(64, 1);
  benchmarks_.on_launch = [this] { engine_.Arrive(); };
  for (int i = 0; i < kIdleTries; ++i) {
    LookWhileIdle();
    tuner_->Look();
  }
  EXPECT_THAT(reports_.outcomes(),
              ElementsAre(Outcome::kInterrupted, Outcome::kInterrupted, Outcome::kGivenUp));
  EXPECT_THAT(Measured(), ElementsAre(32));
  LookWhileIdle();
  EXPECT_THAT(Measured(), ElementsAre(32, 64));
}

TEST_F(IdleTunerTest, ABenchmarkOfOthersIsNoTry) {
  Traffic(32, 1);
  benchmarks_.refusal = absl::ResourceExhaustedError("a benchmark runs already");
  for (int i = 0; i < 2 * kIdleTries; ++i) LookWhileIdle();
  EXPECT_THAT(reports_.reports, IsEmpty());
  benchmarks_.refusal = absl::OkStatus();
  LookWhileIdle();
  LookWhileIdle();
  EXPECT_THAT(reports_.outcomes(), ElementsAre(Outcome::kTuned));
}

TEST_F(IdleTunerTest, WhatCannotBeMeasuredIsTriedOnce) {
  Traffic(32, 1);
  benchmarks_.measures = false;
  for (int i = 0; i < 3; ++i) LookWhileIdle();
  EXPECT_THAT(reports_.outcomes(), ElementsAre(Outcome::kFailed));
  EXPECT_EQ(Written().size(), 0u);
}

TEST_F(IdleTunerTest, AProductWithAnEntryIsLeftAlone) {
  Traffic(32, 1, /*epilogue=*/true);
  engine_.rule = ChoiceRule::kTableExact;
  for (int i = 0; i < 3; ++i) LookWhileIdle();
  EXPECT_THAT(benchmarks_.specs, IsEmpty());
  EXPECT_THAT(reports_.reports, IsEmpty());
}

TEST_F(IdleTunerTest, AddsToWhatTheFileHas) {
  gemm::TuningTable table;
  ASSERT_TRUE(table.Put(gemm::HostMachine(), Product(7), {"other", {}, 1}).ok());
  std::ofstream(path_) << gemm::FormatTuningTable(table);
  Traffic(32, 1);
  LookWhileIdle();
  const gemm::TuningTable written = Written();
  EXPECT_EQ(written.size(), 2u);
  const auto& products = written.entries().at(gemm::HostMachine());
  EXPECT_EQ(products.at(Product(7)).kernel, "other");
  EXPECT_EQ(products.at(Product(32)), (gemm::TunedChoice{"estimated_3", {}, 1}));
}

TEST_F(IdleTunerTest, GoesOnWhereTheFileCannotBeWritten) {
  std::ofstream(path_) << "gemmd tuning table 1\nhello\n";
  Traffic(32, 2);
  Traffic(64, 1);
  LookWhileIdle();
  EXPECT_THAT(reports_.unwritten, SizeIs(1)) << "what is there is not overwritten";
  std::remove(path_.c_str());
  LookWhileIdle();
  EXPECT_THAT(reports_.unwritten, SizeIs(1));
  EXPECT_EQ(Written().size(), 2u) << "with what could not be written before";
  Make("/nowhere/idle.tune");
  LookWhileIdle();
  EXPECT_THAT(reports_.unwritten, SizeIs(2));
}

TEST_F(IdleTunerTest, EndsWithTheServer) {
  Traffic(32, 1);
  benchmarks_.on_launch = [this] { tuner_->Stop(); };
  LookWhileIdle();
  EXPECT_EQ(benchmarks_.launches, 1);
  EXPECT_THAT(reports_.reports, IsEmpty());
  EXPECT_EQ(Written().size(), 0u);
  tuner_->Start();
  tuner_.reset();  // the thread has ended
}

}  // namespace
}  // namespace gemmd
