#include "server/base/timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;

class TimerTest : public ::testing::Test {
 protected:
  // A function that writes `number` down.
  auto Note(int number) {
    return [this, number] { ran_.push_back(number); };
  }

  TestClock clock_;
  std::vector<int> ran_;  // by the timer's thread, read after RunDue
  Timer timer_;
};

TEST_F(TimerTest, RunsAFunctionAtItsTimeAndNotBefore) {
  timer_.Schedule(SteadyNow() + absl::Hours(1), Note(1));
  RunDue(timer_);
  EXPECT_THAT(ran_, ElementsAre());
  clock_.Advance(absl::Hours(1) - absl::Nanoseconds(1));
  RunDue(timer_);
  EXPECT_THAT(ran_, ElementsAre());
  clock_.Advance(absl::Nanoseconds(1));
  RunDue(timer_);
  EXPECT_THAT(ran_, ElementsAre(1));
  clock_.Advance(absl::Hours(1));
  RunDue(timer_);
  EXPECT_THAT(ran_, ElementsAre(1)) << "once";
}

TEST_F(TimerTest, RunsFunctionsInTheOrderOfTheirTimes) {
  const absl::Time now = SteadyNow();
  timer_.Schedule(now + absl::Hours(3), Note(3));
  timer_.Schedule(now + absl::Hours(1), Note(1));
  timer_.Schedule(now + absl::Hours(2), Note(2));
  timer_.Schedule(now + absl::Hours(2), Note(22));  // behind the other one of its time
  clock_.Advance(absl::Hours(3));
  RunDue(timer_);
  EXPECT_THAT(ran_, ElementsAre(1, 2, 22, 3));
}

TEST_F(TimerTest, ACancelledFunctionNeverRuns) {
  const absl::Time at = SteadyNow() + absl::Hours(1);
  timer_.Schedule(at, Note(1));
  const Timer::Id cancelled = timer_.Schedule(at, Note(2));
  timer_.Schedule(at, Note(3));
  timer_.Cancel(cancelled);
  clock_.Advance(absl::Hours(1));
  RunDue(timer_);
  EXPECT_THAT(ran_, ElementsAre(1, 3));
  timer_.Cancel(cancelled);
  timer_.Cancel(Timer::Id());  // of nothing
}

TEST_F(TimerTest, FunctionsMayUseTheTimer) {
  const absl::Time at = SteadyNow() + absl::Hours(1);
  Timer::Id cancelled;
  timer_.Schedule(at, [&] {
    timer_.Cancel(cancelled);
    timer_.Schedule(at, Note(2));
  });
  cancelled = timer_.Schedule(at + absl::Nanoseconds(1), Note(1));
  clock_.Advance(absl::Hours(2));
  RunDue(timer_);
  EXPECT_THAT(ran_, ElementsAre(2));
}

TEST_F(TimerTest, WhatACancelledFunctionOwnsMayUseTheTimer) {
  auto owned = std::shared_ptr<void>(
      nullptr, [this](void*) { timer_.Schedule(absl::InfinitePast(), Note(1)); });
  const Timer::Id id = timer_.Schedule(SteadyNow() + absl::Hours(1), [owned = std::move(owned)] {});
  timer_.Cancel(id);  // with the lock held, this would never return
  RunDue(timer_);
  EXPECT_THAT(ran_, ElementsAre(1));
}

TEST_F(TimerTest, WhatIsNotDueAtTheEndNeverRunsAndIsReleased) {
  auto owned = std::make_shared<int>();
  {
    Timer timer;
    timer.Schedule(SteadyNow() + absl::Hours(1), [this, owned] { ran_.push_back(*owned); });
  }
  EXPECT_THAT(ran_, ElementsAre());
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_F(TimerTest, NothingRunsAfterStop) {
  timer_.Stop();
  timer_.Schedule(absl::InfinitePast(), Note(1));
  timer_.Stop();
  EXPECT_THAT(ran_, ElementsAre());
}

TEST_F(TimerTest, StopWaitsForTheFunctionUnderWay) {
  std::promise<void> begun;
  std::promise<void> stopping;
  std::atomic<bool> ended = false;
  timer_.Schedule(absl::InfinitePast(), [&] {
    begun.set_value();
    stopping.get_future().wait();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    ended = true;
  });
  begun.get_future().wait();
  stopping.set_value();
  timer_.Stop();
  EXPECT_TRUE(ended);
}

// On the machine's clock, which needs no test to move it.
TEST(TimerThread, WakesByItselfWhenAFunctionIsDue) {
  Timer timer;
  std::promise<absl::Time> ran;
  const absl::Time at = SteadyNow() + absl::Milliseconds(5);
  timer.Schedule(at, [&ran] { ran.set_value(SteadyNow()); });
  EXPECT_GE(ran.get_future().get(), at);
}

// A timer that sleeps for longer. Each round lets the thread fall asleep or not, as it will.
TEST(TimerThread, AnEarlierFunctionWakesIt) {
  Timer timer;
  timer.Schedule(SteadyNow() + absl::Hours(1), [] {});
  for (int i = 0; i < 200; ++i) {
    std::promise<void> ran;
    timer.Schedule(SteadyNow(), [&ran] { ran.set_value(); });
    ran.get_future().wait();
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace gemmd
