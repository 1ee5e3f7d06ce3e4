// The engine while somebody sets the wall clock. A program of its own, as it stands in
// the way of every clock_gettime of the process.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "tests/engine/engine_fixture.h"

namespace {
std::atomic<int64_t> wall_step_seconds{0};
}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += wall_step_seconds.load();
  return result;
}

namespace gemmd {
namespace {

class WallClockTest : public EngineTest {
 protected:
  void TearDown() override { wall_step_seconds = 0; }

  bool IsThere(const std::string& name) {
    return !engine_->ListMatrices({.name_prefix = name})->matrices.empty();
  }
  // Until it is gone, at most so long by a clock that nobody sets.
  bool GoesWithin(const std::string& name, absl::Duration time) {
    for (int i = 0; i < time / absl::Milliseconds(5) && IsThere(name); ++i) {
      usleep(5000);
    }
    return !IsThere(name);
  }
};

TEST_F(WallClockTest, TheTestMovesIt) {
  const absl::Time before = absl::Now();
  wall_step_seconds = 7200;
  EXPECT_GE(absl::Now() - before, absl::Hours(2));
}

TEST_F(WallClockTest, AStepForwardEndsNothingEarly) {
  Make();
  const std::vector<float> values = RandomFloats(4, 1);
  ASSERT_TRUE(Put({2, 2, gemm::DType::kF32}, values, {"hour", absl::Hours(1)}).ok());
  JobSpec waiting = Product(10, 10, 10);
  waiting.deadline = absl::Now() + absl::Hours(1);
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(waiting, recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  wall_step_seconds = 2 * 3600;
  // Wakes the timer, which then looks at the clock.
  ASSERT_TRUE(Put({2, 2, gemm::DType::kF32}, values, {"brief", absl::Milliseconds(30)}).ok());
  EXPECT_TRUE(GoesWithin("brief", absl::Seconds(10)));
  usleep(50'000);
  EXPECT_TRUE(IsThere("hour"));
  EXPECT_EQ(engine_->Stats().jobs.used, 1) << "the deadline is an hour away";
  // Times for people follow the wall clock.
  const auto listed = engine_->ListMatrices({.name_prefix = "hour"});
  ASSERT_TRUE(listed->matrices[0].expires.has_value());
  EXPECT_GT(*listed->matrices[0].expires, absl::Now() + absl::Minutes(55));
  EXPECT_LT(*listed->matrices[0].expires, absl::Now() + absl::Minutes(65));
  (*job)->Cancel(absl::CancelledError("by the test"));
}

TEST_F(WallClockTest, AStepBackDelaysNothing) {
  Make();
  const std::vector<float> values = RandomFloats(4, 1);
  ASSERT_TRUE(Put({2, 2, gemm::DType::kF32}, values, {"brief", absl::Milliseconds(200)}).ok());
  wall_step_seconds = -3600;
  EXPECT_TRUE(GoesWithin("brief", absl::Seconds(10)));
}

}  // namespace
}  // namespace gemmd
