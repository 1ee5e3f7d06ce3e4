#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/engine/core/guards.h"
#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Ends its guard when it is cancelled, as everything guarded does.
class Guarded final : public Cancellable {
 public:
  explicit Guarded(EngineCore& core) : core_(core) {}
  void Cancel(absl::Status why) override {
    cancelled.push_back(std::move(why));
    guard.End(core_);
  }
  absl::string_view Where() override { return "in the queue"; }
  bool Needs(const Device&) override { return false; }

  DeadlineGuard guard;
  std::vector<absl::Status> cancelled;

 private:
  EngineCore& core_;
};

class DeadlineGuardTest : public ::testing::Test {
 protected:
  DeadlineGuardTest() {
    core_.admission = std::make_unique<Admission>(core_.options);
    core_.timer = std::make_unique<Timer>();
    guarded_ = std::make_shared<Guarded>(core_);
  }
  ~DeadlineGuardTest() override { core_.timer->Stop(); }

  void Begin(absl::Time deadline) {
    EXPECT_EQ(guarded_->guard.Begin(core_, guarded_, deadline), absl::OkStatus());
  }
  void PassTime(absl::Duration time) {
    clock_.Advance(time);
    RunDue(*core_.timer);
  }
  void EndDrain() { core_.admission->CancelAll(absl::UnavailableError("drained")); }

  TestClock clock_;
  EngineCore core_;
  std::shared_ptr<Guarded> guarded_;
};

TEST_F(DeadlineGuardTest, CancelsAtTheDeadlineAndSaysWhere) {
  Begin(SteadyNow() + absl::Hours(1));
  PassTime(absl::Hours(1) - absl::Nanoseconds(1));
  EXPECT_THAT(guarded_->cancelled, IsEmpty());
  PassTime(absl::Nanoseconds(1));
  EXPECT_THAT(guarded_->cancelled,
              ElementsAre(absl::DeadlineExceededError("the deadline passed in the queue")));
}

TEST_F(DeadlineGuardTest, CancelsWhenTheDrainHasNoMoreTime) {
  for (const absl::Time deadline : {absl::InfiniteFuture(), SteadyNow() + absl::Hours(1)}) {
    core_.admission = std::make_unique<Admission>(core_.options);
    guarded_ = std::make_shared<Guarded>(core_);
    Begin(deadline);
    EndDrain();
    EXPECT_THAT(guarded_->cancelled, ElementsAre(absl::UnavailableError("drained")));
  }
}

TEST_F(DeadlineGuardTest, WhatBeginsAfterTheDrainIsToldAtOnce) {
  EndDrain();
  EXPECT_EQ(guarded_->guard.Begin(core_, guarded_, SteadyNow() + absl::Hours(1)),
            absl::UnavailableError("drained"));
}

TEST_F(DeadlineGuardTest, WithoutADeadlineNoTimeEndsIt) {
  Begin(absl::InfiniteFuture());
  PassTime(absl::Hours(24 * 365));
  EXPECT_THAT(guarded_->cancelled, IsEmpty());
}

TEST_F(DeadlineGuardTest, AfterEndNeitherEndsIt) {
  Begin(SteadyNow() + absl::Hours(1));
  guarded_->guard.End(core_);
  PassTime(absl::Hours(2));
  EndDrain();
  EXPECT_THAT(guarded_->cancelled, IsEmpty());
}

TEST_F(DeadlineGuardTest, BeginAfterEndDoesNothing) {
  guarded_->guard.End(core_);
  Begin(SteadyNow() + absl::Hours(1));
  PassTime(absl::Hours(2));
  EndDrain();
  EXPECT_THAT(guarded_->cancelled, IsEmpty());
}

TEST_F(DeadlineGuardTest, KeepsNothingAlive) {
  Begin(SteadyNow() + absl::Hours(1));
  EXPECT_EQ(guarded_.use_count(), 1);
  guarded_.reset();
  PassTime(absl::Hours(2));
  EndDrain();
}

}  // namespace
}  // namespace gemmd
