// Tuning tables that are read again while the engine runs, and the log of traffic after that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gemm/machine.h"
#include "gemm/tuning.h"
#include "tests/base/temporary_folder.h"
#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Remembers what became of the tables.
class TuningReloads final : public EngineObserver {
 public:
  void OnJobEnd(const JobReport&, const absl::Status&) override {}
  void OnTransferEnd(bool, uint64_t, absl::Duration, const absl::Status&) override {}
  void OnTuningReload(const absl::StatusOr<TuningLoad>& load) override {
    MutexLock lock(mutex_);
    codes_.push_back(load.status().code());
  }
  std::vector<absl::StatusCode> codes() {
    MutexLock lock(mutex_);
    return codes_;
  }

 private:
  Mutex mutex_;
  std::vector<absl::StatusCode> codes_ ABSL_GUARDED_BY(mutex_);
};

class EngineTuningTest : public EngineTest {
 protected:
  static constexpr int64_t kM = 24, kN = 16, kK = 8;
  // A kernel that the rank never takes, and the one that it takes.
  static constexpr const char* kTuned = "host_reference";
  static constexpr const char* kRanked = "host_openblas";

  // The file's table has the shape, with this kernel.
  void Write(const std::string& kernel, const gemm::Machine& machine = gemm::HostMachine()) {
    gemm::TuningTable table;
    const gemm::Problem problem{.m = kM, .n = kN, .k = kK};
    const absl::Status put = table.Put(machine, gemm::TunedProduct::Of(problem), {kernel, {}, 1});
    ASSERT_TRUE(put.ok()) << put;
    WriteText(gemm::FormatTuningTable(table));
  }
  void WriteText(const std::string& text) { std::ofstream(path_) << text; }

  void MakeTuned(Verify verify = Verify::kOff) {
    EngineOptions options = SmallOptions();
    options.tuning_tables = path_;
    options.verify = verify;
    auto engine = Engine::Create(options, &reloads_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  absl::StatusOr<TuningLoad> Reload() {
    const auto promise = std::make_shared<std::promise<absl::StatusOr<TuningLoad>>>();
    engine_->ReloadTuning(
        [promise](absl::StatusOr<TuningLoad> load) { promise->set_value(std::move(load)); });
    return promise->get_future().get();
  }

  std::string Choice() {
    const auto ranking = engine_->RankKernels(
        {.m = kM, .n = kN, .k = kK, .a = gemm::DType::kF32, .b = gemm::DType::kF32});
    EXPECT_TRUE(ranking.ok()) << ranking.status();
    return ranking.ok() ? std::string(ranking->kernels[0].kernel->name) : "";
  }

  // The end of a product of drawn operands.
  JobReport Run(const JobSpec& spec) {
    const auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(spec, recorder);
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return {};
    (*job)->Start();
    const auto result = recorder->Wait();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->report : JobReport();
  }

  // A third of the rows of the product that the table has.
  static JobSpec BlockOfRows() {
    JobSpec spec;
    spec.a = {Shape{kM / 3, kK, gemm::DType::kF32}, FromGenerator{}};
    spec.b = {Shape{kK, kN, gemm::DType::kF32}, FromGenerator{}};
    spec.product_rows = kM;
    return spec;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.Path("a.tune");
  TuningReloads reloads_;
};

// The table has the whole product's shape alone.
TEST_F(EngineTuningTest, ABlockOfRowsGetsTheWholesEntryAndCountsAsSuch) {
  Write(kTuned);
  MakeTuned();
  JobSpec spec = BlockOfRows();
  const JobReport report = Run(spec);
  EXPECT_EQ(report.kernel, kTuned);
  EXPECT_EQ(report.rule, ChoiceRule::kTableExact);
  EXPECT_EQ(report.m, kM / 3);
  EXPECT_TRUE(engine_->ListTraffic(10).empty()) << "the whole product was measured";
  spec.product_rows = kM + 2;
  Run(spec);
  const std::vector<TrafficEntry> traffic = engine_->ListTraffic(10);
  ASSERT_EQ(traffic.size(), 1u);
  EXPECT_EQ(traffic[0].product.m, kM + 2);
}

// A check of an activation's product does not ask the table, and its kernel promises no blocks.
TEST_F(EngineTuningTest, APolicyOfChecksRefusesNoBlockOfRows) {
  Write(kTuned);
  MakeTuned(Verify::kAlways);
  JobSpec spec = BlockOfRows();
  spec.activation = gemm::Activation::kRelu;
  const JobReport report = Run(spec);
  EXPECT_EQ(report.kernel, kTuned);
  EXPECT_EQ(report.check.result, CheckResult::kNone);
  EXPECT_THAT(report.check.why_not, HasSubstr("all blocks of rows have kernel"));
}

TEST_F(EngineTuningTest, WhatTheFilesSayNowIsTakenUp) {
  Write(kRanked);
  MakeTuned();
  EXPECT_EQ(Choice(), kRanked);
  Write(kTuned);
  EXPECT_EQ(Choice(), kRanked) << "nobody has asked for it";
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<TuningLoad> load = Reload();
    ASSERT_TRUE(load.ok()) << load.status();
    EXPECT_EQ(load->entries, 1u);
    EXPECT_EQ(load->used, 1u);
    EXPECT_EQ(Choice(), kTuned);
  }
  Write("of_another_build");
  const absl::StatusOr<TuningLoad> load = Reload();
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_THAT(load->skipped, ElementsAre("of_another_build"));
  EXPECT_EQ(engine_->tuning().skipped, load->skipped);
  EXPECT_EQ(Choice(), kRanked);
  EXPECT_THAT(reloads_.codes(),
              ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kOk, absl::StatusCode::kOk));
}

TEST_F(EngineTuningTest, AWrongFileChangesNothingAndIsNamedWithItsLine) {
  Write(kTuned);
  MakeTuned();
  WriteText("gemmd tuning table 1\nhello\n");
  const absl::Status wrong = Reload().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong)) << wrong;
  EXPECT_THAT(std::string(wrong.message()),
              AllOf(HasSubstr("--tuning-tables: " + path_ + " line 2: "), HasSubstr("hello")));
  EXPECT_EQ(Choice(), kTuned);
  EXPECT_EQ(engine_->tuning().used, 1u);
  ASSERT_EQ(std::remove(path_.c_str()), 0);
  const absl::Status missing = Reload().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), AllOf(HasSubstr(path_), HasSubstr("No such file")));
  EXPECT_EQ(Choice(), kTuned);
  EXPECT_THAT(reloads_.codes(), ElementsAre(absl::StatusCode::kFailedPrecondition,
                                            absl::StatusCode::kFailedPrecondition));
}

// A FIFO without a writer.
TEST_F(EngineTuningTest, AFifoIsNotWaitedFor) {
  Write(kTuned);
  MakeTuned();
  ASSERT_EQ(std::remove(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const absl::Status status = Reload().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path_), HasSubstr("not a regular file")));
  EXPECT_EQ(Choice(), kTuned);
}

TEST_F(EngineTuningTest, WithoutTablesThereIsNothingToRead) {
  Make();
  const absl::Status status = Reload().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("started without its flag --tuning-tables"));
}

TEST_F(EngineTuningTest, AJobKeepsTheKernelThatWasChosenForIt) {
  Write(kTuned);
  MakeTuned();
  const auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(Product(kM, kN, kK), recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  Write(kRanked);
  ASSERT_TRUE(Reload().ok());
  EXPECT_EQ(Choice(), kRanked);
  Send(**job, Role::kA, RandomFloats(kM * kK, 1), 1000);
  Send(**job, Role::kB, RandomFloats(kK * kN, 2), 1000);
  (*job)->EndOfPayload();
  const auto result = recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.kernel, kTuned);
  EXPECT_EQ(result->report.rule, ChoiceRule::kTableExact);
}

TEST_F(EngineTuningTest, AJobOfBeforeIsNoTrafficWhereTheTablesHaveItsShapeNow) {
  WriteText("gemmd tuning table 1\n");
  MakeTuned();
  const auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(Product(kM, kN, kK), recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  Write(kTuned);
  ASSERT_TRUE(Reload().ok());
  Send(**job, Role::kA, RandomFloats(kM * kK, 1), 1000);
  Send(**job, Role::kB, RandomFloats(kK * kN, 2), 1000);
  (*job)->EndOfPayload();
  const auto result = recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.kernel, kRanked);
  EXPECT_TRUE(engine_->ListTraffic(10).empty());
}

TEST_F(EngineTuningTest, ProductsWithoutAnEntryOfTheirOwnAreTraffic) {
  Write(kTuned);
  MakeTuned();
  for (int i = 0; i < 2; ++i) Run(DrawnProduct(400, 300, 200));
  Run(DrawnProduct(kM + 1, kN, kK));  // near
  JobSpec columns = DrawnProduct(500, 10, 20);
  columns.output_column_major = true;
  columns.activation = gemm::Activation::kRelu;
  Run(columns);
  std::vector<TrafficEntry> entries = engine_->ListTraffic(10);
  ASSERT_EQ(entries.size(), 3u);
  std::sort(entries.begin(), entries.end(),
            [](const TrafficEntry& x, const TrafficEntry& y) { return x.product.m < y.product.m; });
  EXPECT_EQ(entries[0].product.n, 500) << "the row-major product";
  EXPECT_EQ(entries[0].product.m, 10);
  EXPECT_TRUE(entries[0].product.trans_a && entries[0].product.trans_b);
  EXPECT_EQ(entries[0].product.epilogue, gemm::EpilogueClass::kFull);
  EXPECT_EQ(entries[1].product.m, kM + 1);
  EXPECT_EQ(entries[2].product, gemm::TunedProduct::Of({.m = 400, .n = 300, .k = 200}));
  EXPECT_EQ(entries[2].count, 2);
  EXPECT_GT(entries[2].seconds, 0);
  EXPECT_EQ(engine_->ListTraffic(1).size(), 1u);
  EXPECT_EQ(engine_->Stats().traffic.used, 3);
  EXPECT_EQ(engine_->Stats().traffic_dropped, 0);
  ASSERT_TRUE(Reload().ok());
  EXPECT_EQ(engine_->ListTraffic(10).size(), 0u) << "it may have entries now";
}

TEST_F(EngineTuningTest, WhatNoMeasurementCouldChangeIsNoTraffic) {
  Write(kTuned);
  MakeTuned();
  Run(DrawnProduct(kM, kN, kK));
  JobSpec spec = DrawnProduct(kM, kN, kK);  // its entry is that of the plain product
  spec.activation = gemm::Activation::kRelu;
  Run(spec);
  spec = DrawnProduct(400, 300, 200);
  spec.kernel.name = kTuned;
  Run(spec);
  spec.kernel = {.family = "host"};
  Run(spec);
  spec = DrawnProduct(400, 300, 200);
  spec.alpha = 0;
  Run(spec);
  spec = DrawnProduct(400, 300, 200);
  spec.a.shape = Shape{800, 200, gemm::DType::kF32};
  spec.batch = 2;
  spec.shared[Role::kB] = true;
  Run(spec);
  spec.batch = 1;
  spec.group = {{300, 300, 200}, {500, 300, 200}};
  Run(spec);
  spec = DrawnProduct(400, 300, 200);
  spec.activation = gemm::Activation::kRelu;
  spec.verify = Verify::kAlways;  // takes the kernel of the rank
  Run(spec);
  EXPECT_EQ(engine_->ListTraffic(10).size(), 0u);
}

TEST_F(EngineTuningTest, AnEntryOfOtherVersionsIsWorthMeasuringAgain) {
  gemm::Machine before = gemm::HostMachine();
  before.library = "0.0.1";
  Write(kTuned, before);
  MakeTuned();
  Run(DrawnProduct(kM, kN, kK));
  const std::vector<TrafficEntry> entries = engine_->ListTraffic(10);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].product.m, kM);
}

}  // namespace
}  // namespace gemmd
