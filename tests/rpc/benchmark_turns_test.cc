// The turns of benchmarks: one runs at a time, and a cancelled one holds up nobody.
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/benchmark/benchmarks.h"
#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Its benchmark stands still at its first step, as in a launch that does not end, until Release.
class HeldBenchmark final : public BenchmarkListener {
 public:
  explicit HeldBenchmark(bool holds) {
    if (!holds) Release();
  }
  void OnOutline(const BenchmarkOutline&) override { begun = true; }
  void OnProgress(const gemm::bench::Progress&) override {
    if (std::exchange(first_step_, false)) reached_.set_value();
    released_future_.wait();
  }
  void OnRows(size_t, absl::Span<const gemm::bench::Row>) override {}
  void OnEnd(absl::StatusOr<BenchmarkTotals> totals) override { end_.set_value(totals.status()); }

  void AwaitFirstStep() { reached_.get_future().wait(); }
  void Release() { released_.set_value(); }
  absl::Status End() { return end_.get_future().get(); }

  bool begun = false;

 private:
  bool first_step_ = true;
  std::promise<void> reached_, released_;
  std::shared_future<void> released_future_ = released_.get_future().share();
  std::promise<absl::Status> end_;
};

class BenchmarkTurnsTest : public EngineTest {
 protected:
  using Run = absl::StatusOr<std::shared_ptr<BenchmarkRun>>;

  BenchmarkTurnsTest() {
    Make();
    benchmarks_ = std::make_unique<Benchmarks>(*engine_, BenchmarkLimits(), nullptr);
  }
  ~BenchmarkTurnsTest() override {
    benchmarks_.reset();
    engine_.reset();  // before its clock
  }

  Run Start(const std::string& caller, const std::shared_ptr<HeldBenchmark>& listener) {
    BenchmarkSpec spec;
    spec.caller = caller;
    spec.shapes = {{8, 9, 10}};
    spec.selection.kernels = {"host_reference"};
    spec.rules.iterations = 1;
    return benchmarks_->Start(std::move(spec), listener);
  }

  std::unique_ptr<Benchmarks> benchmarks_;
};

TEST_F(BenchmarkTurnsTest, OneThatWasCancelledKeepsNobodyAway) {
  const auto held = std::make_shared<HeldBenchmark>(true);
  const auto next = std::make_shared<HeldBenchmark>(false);
  const auto third = std::make_shared<HeldBenchmark>(false);
  const Run run = Start("alice", held);
  ASSERT_TRUE(run.ok()) << run.status();
  held->AwaitFirstStep();
  const absl::Status refused = Start("bob", next).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("GetServerInfo says whose it is"));

  EXPECT_FALSE(*(*run)->stop());
  (*run)->Cancel(absl::CancelledError("by its caller"));
  EXPECT_TRUE(*(*run)->stop());
  EXPECT_EQ(Start("bob", next).status(), absl::OkStatus());
  EXPECT_EQ(Start("carol", third).status().code(), absl::StatusCode::kResourceExhausted)
      << "bob's was not cancelled";
  held->Release();
  EXPECT_EQ(held->End().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(next->End(), absl::OkStatus());
  EXPECT_THAT(benchmarks_->UnderWay(), SizeIs(0));
}

TEST_F(BenchmarkTurnsTest, EachSaysWhoseItIsAndWhatItMeasures) {
  const auto held = std::make_shared<HeldBenchmark>(true);
  const auto next = std::make_shared<HeldBenchmark>(false);
  EXPECT_THAT(benchmarks_->UnderWay(), SizeIs(0));
  const Run run = Start("alice", held);
  ASSERT_TRUE(run.ok()) << run.status();
  held->AwaitFirstStep();
  std::vector<BenchmarkUnderWay> all = benchmarks_->UnderWay();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].caller, "alice");
  EXPECT_EQ(all[0].device, "host:0");
  EXPECT_THAT(all[0].subject, StartsWith("shape 1/1 8x9x10: "));
  EXPECT_GE(all[0].age, absl::ZeroDuration());
  EXPECT_FALSE(all[0].ending);

  (*run)->Cancel(absl::CancelledError("by its caller"));
  ASSERT_TRUE(Start("bob", next).ok());
  all = benchmarks_->UnderWay();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_TRUE(all[0].ending);
  EXPECT_EQ(all[1].caller, "bob");
  EXPECT_EQ(all[1].subject, "not begun");
  EXPECT_FALSE(all[1].ending);
  held->Release();
  EXPECT_EQ(next->End(), absl::OkStatus());
}

// They wait behind a launch that does not end, and hold a little memory of the server.
TEST_F(BenchmarkTurnsTest, ThoseThatAreToEndAreFew) {
  const auto held = std::make_shared<HeldBenchmark>(true);
  std::vector<std::shared_ptr<HeldBenchmark>> others;
  const Run first = Start("alice", held);
  ASSERT_TRUE(first.ok()) << first.status();
  held->AwaitFirstStep();
  (*first)->Cancel(absl::CancelledError("by its caller"));
  absl::Status refused;
  for (int i = 0; i < 100 && refused.ok(); ++i) {
    const auto other = std::make_shared<HeldBenchmark>(false);
    const Run run = Start("alice", other);
    refused = run.status();
    if (!run.ok()) break;
    (*run)->Cancel(absl::CancelledError("by its caller"));
    others.push_back(other);
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(others, SizeIs(7));
  held->Release();
  EXPECT_EQ(held->End().code(), absl::StatusCode::kCancelled);
  for (const auto& other : others) {
    EXPECT_EQ(other->End().code(), absl::StatusCode::kCancelled);
    EXPECT_FALSE(other->begun);
  }
}

}  // namespace
}  // namespace gemmd
