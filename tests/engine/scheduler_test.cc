#include "server/engine/policy/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/test_clock.h"
#include "tests/engine/fake_device.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class QueuePaceTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kCost = absl::Milliseconds(1);

  // A turn `time` after the last one.
  void TurnAfter(absl::Duration time, absl::Duration cost = kCost) {
    now_ += time;
    pace_.OnTurn(now_, cost);
  }

  absl::Time now_ = absl::UnixEpoch();
  QueuePace pace_;
};

TEST_F(QueuePaceTest, KnowsNothingBeforeTheSecondTurn) {
  EXPECT_EQ(pace_.TimeFor(100 * kCost), absl::ZeroDuration());
  TurnAfter(absl::Milliseconds(10));
  EXPECT_EQ(pace_.TimeFor(100 * kCost), absl::ZeroDuration());
  EXPECT_EQ(pace_.between_turns(), absl::ZeroDuration());
}

TEST_F(QueuePaceTest, IsTheMeanTimeBetweenTurns) {
  TurnAfter(absl::Milliseconds(0));
  for (const int time : {10, 20, 30}) TurnAfter(absl::Milliseconds(time));
  EXPECT_EQ(pace_.TimeFor(5 * kCost), absl::Milliseconds(100));
  EXPECT_EQ(pace_.between_turns(), absl::Milliseconds(20));
}

TEST_F(QueuePaceTest, ExpensiveJobsTakeTheirPartOfTheTime) {
  TurnAfter(absl::Milliseconds(0));
  TurnAfter(absl::Milliseconds(10), 1 * kCost);
  TurnAfter(absl::Milliseconds(10), 9 * kCost);
  EXPECT_EQ(pace_.TimeFor(10 * kCost), absl::Milliseconds(20));
}

TEST_F(QueuePaceTest, LeavesOutTheTimeInWhichNobodyWaited) {
  TurnAfter(absl::Milliseconds(0));
  TurnAfter(absl::Milliseconds(10));
  pace_.OnIdle(now_);
  TurnAfter(absl::Seconds(60));
  TurnAfter(absl::Milliseconds(10));
  EXPECT_EQ(pace_.TimeFor(kCost), absl::Milliseconds(10));
}

TEST_F(QueuePaceTest, IsForgottenAfterAQuietTime) {
  TurnAfter(absl::Milliseconds(0));
  TurnAfter(absl::Seconds(10));
  pace_.OnIdle(now_);
  now_ += QueuePace::kQuiet / 2;
  pace_.OnIdle(now_);  // another stream: as quiet as before
  now_ += QueuePace::kQuiet / 2;
  pace_.OnWait(now_);
  EXPECT_EQ(pace_.TimeFor(kCost), absl::Seconds(10)) << "not longer than that";
  pace_.OnIdle(now_);
  now_ += QueuePace::kQuiet / 2;
  pace_.OnIdle(now_);
  now_ += QueuePace::kQuiet / 2 + absl::Nanoseconds(1);
  pace_.OnWait(now_);
  EXPECT_EQ(pace_.TimeFor(kCost), absl::ZeroDuration());
  EXPECT_EQ(pace_.between_turns(), absl::ZeroDuration());
  TurnAfter(absl::Milliseconds(0));
  TurnAfter(absl::Milliseconds(5));
  EXPECT_EQ(pace_.TimeFor(kCost), absl::Milliseconds(5)) << "of these turns alone";
}

// Jobs that take long leave time between the turns, and no quiet.
TEST_F(QueuePaceTest, IsKeptWhileJobsWait) {
  TurnAfter(absl::Milliseconds(0));
  TurnAfter(absl::Minutes(1));
  pace_.OnIdle(now_);
  pace_.OnWait(now_);
  now_ += 2 * QueuePace::kQuiet;
  pace_.OnWait(now_);
  EXPECT_EQ(pace_.TimeFor(kCost), absl::Minutes(1));
}

TEST_F(QueuePaceTest, FollowsALoadThatChanges) {
  TurnAfter(absl::Milliseconds(0));
  for (int i = 0; i < 1000; ++i) TurnAfter(absl::Milliseconds(1));
  for (int i = 0; i < 1000; ++i) TurnAfter(absl::Milliseconds(100));
  EXPECT_GT(pace_.TimeFor(kCost), absl::Milliseconds(99));
}

// Records its calls, and keeps its stream until the test releases it.
class TestJob final : public Runnable {
 public:
  TestJob(std::string name, std::vector<std::string>& events)
      : name_(std::move(name)), events_(events) {}
  void Prepare() override { events_.push_back("prepare " + name_); }
  void Run(StreamLease stream) override {
    events_.push_back("run " + name_);
    lease = std::move(stream);
  }

  StreamLease lease;

 private:
  const std::string name_;
  std::vector<std::string>& events_;
};

class SchedulerTest : public ::testing::Test {
 protected:
  static constexpr int kMaxQueued = 5;

  static FakeDevice::Options Streams(int count) {
    FakeDevice::Options options;
    options.streams = count;
    return options;
  }
  std::shared_ptr<TestJob> NewJob(const std::string& name) {
    return std::make_shared<TestJob>(name, events_);
  }
  // Submits a job that must be taken.
  std::shared_ptr<TestJob> Submit(const std::string& name, const StreamClaim& claim = {}) {
    std::shared_ptr<TestJob> job = NewJob(name);
    const absl::Status status = scheduler_.Submit(job, claim);
    EXPECT_TRUE(status.ok()) << status;
    return job;
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  TestClock clock_;
  std::vector<std::string> events_;
  FakeDevice device_{Streams(2)};
  QueueLimit limit_{kMaxQueued};
  Scheduler scheduler_{device_, limit_, absl::Seconds(1)};
};

TEST_F(SchedulerTest, AJobWithAFreeStreamIsPreparedAndRunThroughTheDevice) {
  const auto job = Submit("a");
  EXPECT_THAT(TakeEvents(), ElementsAre("prepare a", "run a"));
  EXPECT_EQ(device_.executed, 1);
  EXPECT_EQ(scheduler_.streams().used, 1);
  EXPECT_EQ(scheduler_.streams().limit, 2);
  EXPECT_EQ(scheduler_.begun(), 1);
  EXPECT_EQ(scheduler_.queued(), 0);
}

TEST_F(SchedulerTest, EveryJobHasAStreamOfItsOwn) {
  const auto a = Submit("a");
  const auto b = Submit("b");
  EXPECT_NE(&*a->lease, &*b->lease);
  EXPECT_EQ(scheduler_.streams().used, 2);
}

TEST_F(SchedulerTest, WaitingJobsRunInTheOrderTheyCame) {
  const auto a = Submit("a");
  const auto b = Submit("b");
  const auto c = Submit("c");
  const auto d = Submit("d");
  EXPECT_EQ(scheduler_.queued(), 2);
  EXPECT_EQ(limit_.gauge().used, 2);
  TakeEvents();
  Stream* stream = &*b->lease;
  b->lease.Reset();
  EXPECT_THAT(TakeEvents(), ElementsAre("run c")) << "not prepared on the device's thread";
  EXPECT_EQ(&*c->lease, stream);
  a->lease.Reset();
  EXPECT_THAT(TakeEvents(), ElementsAre("run d"));
  EXPECT_EQ(scheduler_.queued(), 0);
  EXPECT_EQ(limit_.gauge().used, 0);
  EXPECT_EQ(scheduler_.begun(), 4);
}

TEST_F(SchedulerTest, WhoHasAStreamMayTakeTheNextJobsInTurn) {
  const auto a = Submit("a");
  const auto b = Submit("b");
  const auto c = Submit("c");
  const auto d = Submit("d");
  const auto e = Submit("e");
  TakeEvents();
  const auto other_than_e = [&](const Runnable* job) { return job != e.get(); };
  EXPECT_THAT(scheduler_.TakeAlike(a->lease, 1, other_than_e), ElementsAre(c));
  EXPECT_THAT(scheduler_.TakeAlike(a->lease, 5, other_than_e), ElementsAre(d)) << "not past e";
  EXPECT_THAT(TakeEvents(), IsEmpty()) << "to run them is the taker's";
  EXPECT_EQ(scheduler_.begun(), 4);
  EXPECT_EQ(scheduler_.streams().used, 2);
  EXPECT_EQ(scheduler_.queued(), 1);
  EXPECT_EQ(limit_.gauge().used, 1);
  clock_.Advance(absl::Milliseconds(6));
  // Half of the time is b's, which runs beside them.
  EXPECT_EQ(a->lease.Reset(), absl::Milliseconds(1)) << "of each of the three";
  EXPECT_THAT(TakeEvents(), ElementsAre("run e"));
}

// Callers whose jobs share a lease pay for their own.
TEST_F(SchedulerTest, JobsThatShareALeaseAreChargedEqually) {
  const auto claim = [](const std::string& flow) {
    return StreamClaim{.flow = flow, .cost = {.device_time = absl::Milliseconds(1)}};
  };
  const auto a = Submit("a");
  const auto b = Submit("b");
  std::vector<std::shared_ptr<TestJob>> jobs;
  for (const char* flow : {"x", "y", "x", "y"}) jobs.push_back(Submit(flow, claim(flow)));
  b->lease.Reset();  // the turn of x's first
  EXPECT_THAT(scheduler_.TakeAlike(jobs[0]->lease, 1, [](const Runnable*) { return true; }),
              ElementsAre(jobs[1]));
  clock_.Advance(absl::Milliseconds(40));
  EXPECT_EQ(jobs[0]->lease.Reset(), absl::Milliseconds(10));
  EXPECT_EQ(scheduler_.queued(), 1);
}

TEST_F(SchedulerTest, AStreamThatNobodyWaitsForIsFree) {
  const auto a = Submit("a");
  a->lease.Reset();
  a->lease.Reset();  // once
  EXPECT_EQ(scheduler_.streams().used, 0);
}

TEST_F(SchedulerTest, AMovedLeaseIsReturnedByItsNewOwner) {
  const auto a = Submit("a");
  const auto b = Submit("b");
  a->lease = std::move(b->lease);
  EXPECT_EQ(scheduler_.streams().used, 1) << "the lease that was replaced";
  b->lease.Reset();
  EXPECT_EQ(scheduler_.streams().used, 1);
  a->lease.Reset();
  EXPECT_EQ(scheduler_.streams().used, 0);
}

TEST_F(SchedulerTest, AWithdrawnJobNeverRunsAndLeavesItsPlace) {
  const auto a = Submit("a");
  const auto b = Submit("b");
  const auto c = Submit("c");
  const auto d = Submit("d");
  scheduler_.Withdraw(c.get());
  EXPECT_EQ(scheduler_.queued(), 1);
  EXPECT_EQ(limit_.gauge().used, 1);
  EXPECT_EQ(c.use_count(), 1);
  TakeEvents();
  a->lease.Reset();
  EXPECT_THAT(TakeEvents(), ElementsAre("run d"));
}

TEST_F(SchedulerTest, AQueueThatIsEmptiedByWithdrawalsIsIdle) {
  const StreamClaim claim{.cost = {.device_time = absl::Milliseconds(1)}};
  const auto a = Submit("a", claim);
  const auto b = Submit("b", claim);
  const auto c = Submit("c", claim);
  const auto d = Submit("d", claim);
  a->lease.Reset();  // the turn of c
  scheduler_.Withdraw(d.get());
  clock_.Advance(absl::Minutes(1));
  const auto e = Submit("e", claim);
  const auto f = Submit("f", claim);
  c->lease.Reset();  // the turn of e
  EXPECT_EQ(scheduler_.estimated_wait(), absl::ZeroDuration()) << "nobody waited for a minute";
}

TEST_F(SchedulerTest, WithdrawingAJobThatRanDoesNothing) {
  const auto a = Submit("a");
  scheduler_.Withdraw(a.get());
  EXPECT_EQ(scheduler_.streams().used, 1);
  EXPECT_EQ(limit_.gauge().used, 0);
}

TEST_F(SchedulerTest, TheQueuesOfAllDevicesShareOneLimit) {
  FakeDevice other_device{Streams(1)};
  Scheduler other(other_device, limit_, absl::Seconds(1));
  std::vector<std::shared_ptr<TestJob>> jobs;
  for (int i = 0; i < 2 + kMaxQueued - 1; ++i) jobs.push_back(Submit("x"));
  for (int i = 0; i < 2; ++i) {
    jobs.push_back(NewJob("x"));
    ASSERT_TRUE(other.Submit(jobs.back(), {}).ok());
  }
  for (Scheduler* full : {&scheduler_, &other}) {
    const absl::Status refused = full->Submit(NewJob("y"), {});
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr("5 jobs wait"), HasSubstr("--max-queued-jobs"), HasSubstr("is 5")));
  }
  EXPECT_EQ(limit_.gauge().used, kMaxQueued);
  jobs[0]->lease.Reset();
  EXPECT_TRUE(scheduler_.Submit(NewJob("z"), {}).ok()) << "one has left the queue";
  for (const auto& job : jobs) scheduler_.Withdraw(job.get());
  for (const auto& job : jobs) other.Withdraw(job.get());
  for (const auto& job : jobs) job->lease.Reset();
}

// A job that is over as soon as it has its stream, as one that is late.
class ShortJob final : public Runnable {
 public:
  explicit ShortJob(int& ran) : ran_(ran) {}
  void Prepare() override {}
  void Run(StreamLease) override { ++ran_; }

 private:
  int& ran_;
};

// Far deeper than a stack would bear, if each began inside the one before.
TEST_F(SchedulerTest, ManyJobsThatEndAtOnceDoNotNest) {
  constexpr int kJobs = 200'000;
  QueueLimit many{2 * kJobs};
  FakeDevice device{Streams(1)};
  Scheduler scheduler(device, many, absl::Hours(1));
  const auto running = NewJob("a");
  ASSERT_TRUE(scheduler.Submit(running, {}).ok());
  int ran = 0;
  for (int i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(scheduler.Submit(std::make_shared<ShortJob>(ran), {}).ok());
  }
  running->lease.Reset();
  EXPECT_EQ(ran, kJobs);
  EXPECT_EQ(scheduler.queued(), 0);
  EXPECT_EQ(scheduler.streams().used, 0);
}

// Two of the last to come may always wait: as many as there are streams.
class SchedulerWaitTest : public SchedulerTest {
 protected:
  // Makes the queue's pace one job every `time`, with both streams taken and none waiting.
  void SetPace(absl::Duration time) {
    for (int i = 0; i < 2; ++i) running_.push_back(Submit("x"));
    for (int i = 0; i < 3; ++i) running_.push_back(Submit("x"));
    for (int i = 0; i < 3; ++i) {
      clock_.Advance(time);
      running_[i]->lease.Reset();
    }
    ASSERT_EQ(scheduler_.queued(), 0);
    ASSERT_EQ(scheduler_.streams().used, 2);
  }

  // Whether a job is taken that would wait for hours by the pace of before: the device was
  // idle for so long, then two jobs began and two wait.
  absl::Status CheckAfterQuiet(absl::Duration time) {
    SetPace(absl::Hours(1));
    for (const auto& job : running_) job->lease.Reset();
    clock_.Advance(time);
    for (int i = 0; i < 4; ++i) running_.push_back(Submit("x"));
    EXPECT_EQ(scheduler_.queued(), 2);
    return scheduler_.CheckWait({});
  }

  std::vector<std::shared_ptr<TestJob>> running_;
};

// Long jobs have the streams, and no turn was ever taken.
TEST_F(SchedulerWaitTest, AQueueThatDoesNotMoveIsAsLongAsItHasStoodStill) {
  std::vector<std::shared_ptr<TestJob>> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(Submit("x"));
  clock_.Advance(absl::Milliseconds(900));
  EXPECT_EQ(scheduler_.estimated_wait(), absl::Milliseconds(900));
  EXPECT_TRUE(scheduler_.CheckWait({}).ok());
  clock_.Advance(absl::Milliseconds(101));
  const absl::Status refused = scheduler_.CheckWait({});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("--max-queue-wait"));
  jobs[0]->lease.Reset();  // a turn
  EXPECT_LT(scheduler_.estimated_wait(), absl::Milliseconds(100));
  scheduler_.Withdraw(jobs[3].get());
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(scheduler_.estimated_wait(), absl::ZeroDuration()) << "nobody waits";
  jobs.push_back(Submit("y"));
  EXPECT_EQ(scheduler_.estimated_wait(), absl::ZeroDuration()) << "it has just come";
  clock_.Advance(absl::Milliseconds(900));
  EXPECT_EQ(scheduler_.estimated_wait(), absl::Milliseconds(900));
}

TEST_F(SchedulerWaitTest, TheEstimateIsThePaceTimesThoseBefore) {
  EXPECT_EQ(scheduler_.estimated_wait(), absl::ZeroDuration());
  SetPace(absl::Milliseconds(100));
  EXPECT_EQ(scheduler_.estimated_wait(), absl::Milliseconds(100));
  running_.push_back(Submit("x"));
  EXPECT_EQ(scheduler_.estimated_wait(), absl::Milliseconds(200));
}

TEST_F(SchedulerWaitTest, WithAFreeStreamThereIsNoWait) {
  SetPace(absl::Hours(1));
  running_.back()->lease.Reset();
  EXPECT_EQ(scheduler_.estimated_wait(), absl::ZeroDuration());
  EXPECT_TRUE(scheduler_.CheckWait({}).ok());
}

TEST_F(SchedulerWaitTest, AJobIsTakenUpToTheLongestWaitAndNotBeyond) {
  SetPace(absl::Milliseconds(250));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(scheduler_.CheckWait({}).ok()) << i;
    running_.push_back(Submit("x"));  // the fourth waits for one second
  }
  for (const absl::Status& refused :
       {scheduler_.CheckWait({}), scheduler_.Submit(NewJob("y"), {})}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("about 1.25s"), HasSubstr("fake:0"),
                                         HasSubstr("(4 jobs wait, 4 of them this caller's)"),
                                         HasSubstr("(--max-queue-wait) is 1s")));
  }
  EXPECT_EQ(scheduler_.queued(), 4) << "a refused job waits";
  EXPECT_EQ(limit_.gauge().used, 4);
}

TEST_F(SchedulerWaitTest, TheTimeInWhichNobodyWaitedIsNotItsPace) {
  SetPace(absl::Milliseconds(100));
  running_[3]->lease.Reset();  // nobody waits
  clock_.Advance(QueuePace::kQuiet);
  running_.push_back(Submit("x"));
  running_.push_back(Submit("x"));
  running_[4]->lease.Reset();  // the first turn since then
  EXPECT_EQ(scheduler_.estimated_wait(), absl::Milliseconds(100));
}

TEST_F(SchedulerWaitTest, APaceOfBeforeAQuietTimeIsNoReasonToRefuse) {
  EXPECT_TRUE(CheckAfterQuiet(QueuePace::kQuiet + absl::Nanoseconds(1)).ok());
}

TEST_F(SchedulerWaitTest, APaceOutlivesAShortQuiet) {
  EXPECT_EQ(CheckAfterQuiet(QueuePace::kQuiet).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(SchedulerWaitTest, AsManyAsThereAreStreamsMayAlwaysWait) {
  SetPace(absl::Hours(1));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(scheduler_.CheckWait({}).ok()) << i;
    running_.push_back(Submit("x"));
  }
  EXPECT_EQ(scheduler_.CheckWait({}).code(), absl::StatusCode::kResourceExhausted);
}

TEST(QueueLimit, HandsOutItsPlacesAndNotOneMore) {
  QueueLimit limit(2);
  EXPECT_TRUE(limit.TryTake(0));
  EXPECT_TRUE(limit.TryTake(0));
  EXPECT_FALSE(limit.TryTake(0));
  EXPECT_EQ(limit.gauge().used, 2);
  EXPECT_EQ(limit.gauge().limit, 2);
  limit.Return();
  EXPECT_TRUE(limit.TryTake(0));
}

TEST(QueueLimit, LeavesTheLastSixteenthToThoseWithLittle) {
  QueueLimit limit(32);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(limit.TryTake(i)) << i;
  EXPECT_FALSE(limit.TryTake(30));
  EXPECT_FALSE(limit.TryTake(2));
  EXPECT_TRUE(limit.TryTake(1));
  EXPECT_TRUE(limit.TryTake(0));
  EXPECT_FALSE(limit.TryTake(0)) << "the limit is the limit";
}

}  // namespace
}  // namespace gemmd
