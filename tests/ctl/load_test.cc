// The load generators keep to their schedule and charge a slow server for every
// request that waited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "client/ctl/load/runner.h"
#include "client/ctl/load/schedule.h"
#include "client/ctl/load/statistics.h"
#include "client/ctl/load/workload.h"

namespace gemmd::ctl {
namespace {

// Moves when somebody sleeps by it.
class FakeClock : public Clock {
 public:
  absl::Duration Now() override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void SleepFor(absl::Duration duration) override {
    const std::lock_guard lock(mutex_);
    now_ += duration;
  }

 private:
  std::mutex mutex_;
  absl::Duration now_ = absl::Seconds(1000);
};

// A server that takes `service` by the clock for each request.
class FakeCaller : public Caller {
 public:
  FakeCaller(Clock& clock, absl::Duration service) : clock_(clock), service_(service) {}

  Outcome Call(const Slot& slot) override {
    calls.push_back(slot);
    started.push_back(clock_.Now());
    clock_.SleepFor(service_);
    return Outcome{.status = status, .flops = 100, .bytes_sent = 10, .bytes_received = 5};
  }

  Verdict Finish(const Slot&) override {
    clock_.SleepFor(finish);
    return verdict;
  }

  absl::Status status;
  Verdict verdict;
  absl::Duration finish;
  std::vector<Slot> calls;
  std::vector<absl::Duration> started;

 private:
  Clock& clock_;
  const absl::Duration service_;
};

struct Finished {
  absl::Duration wall;
  Tally tally;
};

Finished RunOne(const RunPlan& plan, Clock& clock, std::unique_ptr<Caller> caller) {
  std::vector<std::unique_ptr<Caller>> callers;
  callers.push_back(std::move(caller));
  Statistics statistics(1);
  const std::atomic<bool> stop{false};
  Finished ran;
  ran.wall = RunLoad(plan, clock, callers, stop, statistics, [](absl::Duration) {});
  ran.tally = statistics.Sum();
  return ran;
}

TEST(MixTest, ChoicesComeByWeightAndSpreadOut) {
  const Mix mix({3, 1, 2});
  ASSERT_EQ(mix.cycle_length(), 6);
  std::map<size_t, int> seen;
  for (uint64_t i = 0; i < 60; ++i) ++seen[mix.Choice(i)];
  EXPECT_EQ(seen[0], 30);
  EXPECT_EQ(seen[1], 10);
  EXPECT_EQ(seen[2], 20);
  int longest = 0;
  int run = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    run = i > 0 && mix.Choice(i) == mix.Choice(i - 1) ? run + 1 : 1;
    longest = std::max(longest, run);
  }
  EXPECT_LE(longest, 2);
}

TEST(MixTest, CommonFactorsDoNotLengthenTheCycle) {
  EXPECT_EQ(Mix({1000, 1000}).cycle_length(), 2);
  EXPECT_EQ(Mix({5}).cycle_length(), 1);
}

TEST(ScheduleTest, OpenLoopPlansAtAConstantRateWhateverTheClockSays) {
  FakeClock clock;
  Schedule schedule({.rate = 10, .requests = 3}, clock);
  EXPECT_EQ(schedule.Next()->planned, absl::ZeroDuration());
  clock.SleepFor(absl::Seconds(60));
  EXPECT_EQ(schedule.Next()->planned, absl::Milliseconds(100));
  EXPECT_EQ(schedule.Next()->planned, absl::Milliseconds(200));
  EXPECT_FALSE(schedule.Next().has_value());
}

// The planned times of `plan`, in seconds.
std::vector<double> PlannedBy(const SchedulePlan& plan) {
  FakeClock clock;
  Schedule schedule(plan, clock);
  std::vector<double> planned;
  while (const auto slot = schedule.Next()) {
    planned.push_back(absl::ToDoubleSeconds(slot->planned));
  }
  return planned;
}

TEST(ScheduleTest, PoissonArrivalsHaveExponentialGapsOfTheMean) {
  const std::vector<double> planned =
      PlannedBy({.rate = 100, .arrivals = Arrivals::kPoisson, .seed = 7, .requests = 20'000});
  double sum = 0, squares = 0;
  for (size_t i = 1; i < planned.size(); ++i) {
    const double gap = planned[i] - planned[i - 1];
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double gaps = static_cast<double>(planned.size() - 1);
  EXPECT_NEAR(sum / gaps, 0.01, 0.0003);
  // The second moment of an exponential time is twice the square of its mean.
  EXPECT_NEAR(squares / gaps, 2 * 0.01 * 0.01, 0.1 * 2 * 0.01 * 0.01);
}

TEST(ScheduleTest, ASeedDecidesPoissonArrivals) {
  const SchedulePlan plan{.rate = 10, .arrivals = Arrivals::kPoisson, .seed = 3, .requests = 50};
  SchedulePlan other = plan;
  other.seed = 4;
  EXPECT_EQ(PlannedBy(plan), PlannedBy(plan));
  EXPECT_NE(PlannedBy(plan), PlannedBy(other));
}

TEST(ScheduleTest, ARampGrowsTheRateLinearly) {
  const std::vector<double> planned =
      PlannedBy({.rate = 100, .ramp = absl::Seconds(2), .duration = absl::Seconds(4)});
  const auto within = [&](double from, double to) {
    return std::count_if(planned.begin(), planned.end(),
                         [&](double time) { return time >= from && time < to; });
  };
  EXPECT_NEAR(static_cast<double>(within(0, 1)), 25, 1);
  EXPECT_NEAR(static_cast<double>(within(1, 2)), 75, 1);
  EXPECT_NEAR(static_cast<double>(within(2, 3)), 100, 1);
  EXPECT_NEAR(static_cast<double>(within(3, 4)), 100, 1);
}

TEST(ScheduleTest, RequestsOfTheWarmUpAreExtra) {
  FakeClock clock;
  Schedule schedule({.rate = 10, .warmup = absl::Milliseconds(250), .requests = 2}, clock);
  std::vector<bool> counted;
  while (const auto slot = schedule.Next()) counted.push_back(slot->counted);
  EXPECT_EQ(counted, (std::vector<bool>{false, false, false, true, true}));
}

TEST(ScheduleTest, DurationCountsFromTheEndOfTheWarmUp) {
  FakeClock clock;
  Schedule schedule(
      {.rate = 10, .warmup = absl::Milliseconds(200), .duration = absl::Milliseconds(500)}, clock);
  int counted = 0;
  while (const auto slot = schedule.Next()) counted += slot->counted ? 1 : 0;
  EXPECT_EQ(counted, 5);
}

TEST(ScheduleTest, StopEndsItAndWakesWhoeverWaits) {
  FakeClock clock;
  Schedule schedule({.rate = 0.001}, clock);
  schedule.Next();
  const auto far = schedule.Next();
  ASSERT_TRUE(far.has_value());
  schedule.Stop();
  EXPECT_FALSE(schedule.WaitFor(*far));
  EXPECT_FALSE(schedule.Next().has_value());
}

// At 10 a second a server that takes 250 ms falls behind by 150 ms a request.
TEST(RunLoadTest, OpenLoopLatencyIncludesTheSlip) {
  FakeClock clock;
  const RunPlan plan{.schedule = {.rate = 10, .requests = 5}, .max_delay = absl::Seconds(10)};
  const Finished ran =
      RunOne(plan, clock, std::make_unique<FakeCaller>(clock, absl::Milliseconds(250)));
  EXPECT_EQ(ran.tally.succeeded, 5);
  EXPECT_EQ(ran.tally.latency.min(), absl::Milliseconds(250));
  EXPECT_EQ(ran.tally.latency.max(), absl::Milliseconds(250 + 4 * 150));
  EXPECT_EQ(ran.tally.latency.mean(), absl::Milliseconds(250 + 2 * 150));
  EXPECT_EQ(ran.wall, absl::Milliseconds(5 * 250));
}

TEST(RunLoadTest, OpenLoopWaitsForThePlannedTime) {
  FakeClock clock;
  auto caller = std::make_unique<FakeCaller>(clock, absl::Milliseconds(10));
  FakeCaller& calls = *caller;
  std::vector<std::unique_ptr<Caller>> callers;
  callers.push_back(std::move(caller));
  Statistics statistics(1);
  const std::atomic<bool> stop{false};
  const absl::Duration start = clock.Now();
  RunLoad({.schedule = {.rate = 4, .requests = 4}}, clock, callers, stop, statistics,
          [](absl::Duration) {});
  ASSERT_EQ(calls.started.size(), 4);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(calls.started[i] - start, absl::Milliseconds(250) * static_cast<int>(i));
  }
  EXPECT_EQ(statistics.Sum().latency.max(), absl::Milliseconds(10));
}

TEST(RunLoadTest, RequestsPastTheDelayAreCountedAsErrorsNotSkipped) {
  FakeClock clock;
  const RunPlan plan{.schedule = {.rate = 10, .duration = absl::Seconds(1)},
                     .max_delay = absl::Milliseconds(300)};
  const Finished ran =
      RunOne(plan, clock, std::make_unique<FakeCaller>(clock, absl::Milliseconds(400)));
  // Every planned request is accounted for.
  EXPECT_EQ(ran.tally.succeeded + ran.tally.failed, 10);
  ASSERT_EQ(ran.tally.errors.count(kNotSentInTime), 1);
  EXPECT_EQ(ran.tally.errors.at(kNotSentInTime).count, ran.tally.failed);
  EXPECT_GE(ran.tally.failed, 5);
  EXPECT_LE(ran.tally.latency.max(), absl::Milliseconds(300 + 400));
  // Those that were not sent stand among the latencies, with the time that they waited.
  EXPECT_EQ(ran.tally.latency.count(), 10);
}

TEST(RunLoadTest, ClosedLoopLatencyIsTheCallAlone) {
  FakeClock clock;
  auto caller = std::make_unique<FakeCaller>(clock, absl::Milliseconds(20));
  caller->finish = absl::Milliseconds(500);
  caller->verdict = {.checked = true, .right = false, .explanation = "element (0, 1)"};
  const RunPlan plan{.schedule = {.requests = 7}};
  const Finished ran = RunOne(plan, clock, std::move(caller));
  EXPECT_EQ(ran.tally.succeeded, 7);
  EXPECT_EQ(ran.tally.latency.min(), absl::Milliseconds(20));
  EXPECT_EQ(ran.tally.latency.max(), absl::Milliseconds(20));
  EXPECT_EQ(ran.tally.flops, 700);
  EXPECT_EQ(ran.tally.bytes_sent, 70);
  EXPECT_EQ(ran.tally.bytes_received, 35);
  EXPECT_EQ(ran.tally.verified, 7);
  EXPECT_EQ(ran.tally.wrong, 7);
  EXPECT_EQ(ran.tally.first_wrong, "element (0, 1)");
}

TEST(RunLoadTest, ErrorsAreCountedByCodeWithTheFirstSentence) {
  FakeClock clock;
  auto caller = std::make_unique<FakeCaller>(clock, absl::Milliseconds(1));
  caller->status = absl::ResourceExhaustedError("admitted bytes 5 over 4");
  const RunPlan plan{.schedule = {.requests = 3}};
  const Finished ran = RunOne(plan, clock, std::move(caller));
  EXPECT_EQ(ran.tally.succeeded, 0);
  EXPECT_EQ(ran.tally.failed, 3);
  ASSERT_EQ(ran.tally.errors.count("RESOURCE_EXHAUSTED"), 1);
  EXPECT_EQ(ran.tally.errors.at("RESOURCE_EXHAUSTED").first, "admitted bytes 5 over 4");
  EXPECT_EQ(ran.tally.latency.count(), 0);
}

TEST(RunLoadTest, ConcurrencyBoundsTheRequestsOutstandingAndEachSlotIsTakenOnce) {
  SteadyClock clock;
  std::vector<std::unique_ptr<Caller>> callers;
  std::vector<FakeCaller*> fakes;
  for (int i = 0; i < 4; ++i) {
    auto caller = std::make_unique<FakeCaller>(clock, absl::Milliseconds(2));
    fakes.push_back(caller.get());
    callers.push_back(std::move(caller));
  }
  Statistics statistics(2);
  const std::atomic<bool> stop{false};
  RunLoad({.schedule = {.requests = 40}}, clock, callers, stop, statistics, [](absl::Duration) {});
  std::vector<uint64_t> indices;
  for (const FakeCaller* fake : fakes) {
    for (const Slot& slot : fake->calls) indices.push_back(slot.index);
  }
  std::sort(indices.begin(), indices.end());
  ASSERT_EQ(indices.size(), 40);
  for (uint64_t i = 0; i < 40; ++i) EXPECT_EQ(indices[i], i);
  EXPECT_EQ(statistics.Sum().succeeded, 40);
}

TEST(RunLoadTest, StopEndsTheTestEarly) {
  SteadyClock clock;
  std::vector<std::unique_ptr<Caller>> callers;
  callers.push_back(std::make_unique<FakeCaller>(clock, absl::Milliseconds(1)));
  Statistics statistics(1);
  std::atomic<bool> stop{false};
  int reports = 0;
  const absl::Duration wall = RunLoad({.schedule = {.duration = absl::Hours(1)}}, clock, callers,
                                      stop, statistics, [&](absl::Duration) {
                                        ++reports;
                                        stop = true;
                                      });
  EXPECT_EQ(reports, 1);
  EXPECT_LT(wall, absl::Seconds(30));
  EXPECT_GT(statistics.Sum().succeeded, 0);
}

// A server that goes away computes no wrong product.
TEST(StatisticsTest, AResultThatCannotBeFetchedHasFailedAndIsNotWrong) {
  Statistics statistics(1);
  for (int i = 0; i < 2; ++i) statistics.AddOutcome(0, 0, Outcome{}, absl::Milliseconds(3), {});
  statistics.AddVerdict(0, 0, {.checked = true});
  statistics.AddVerdict(0, 0, {.fetched = absl::UnavailableError("gone")});
  const Tally sum = statistics.Sum();
  EXPECT_EQ(sum.succeeded, 1u);
  EXPECT_EQ(sum.failed, 1u);
  EXPECT_EQ(sum.verified, 1u);
  EXPECT_EQ(sum.wrong, 0u);
  EXPECT_EQ(sum.errors.at("UNAVAILABLE").first, "gone");
}

TEST(StatisticsTest, AnIntervalStartsWhereTheLastEnded) {
  Statistics statistics(2);
  statistics.AddOutcome(0, 0, Outcome{}, absl::Milliseconds(3), {});
  statistics.AddOutcome(1, 0, Outcome{}, absl::Milliseconds(5), {});
  const Interval first = statistics.TakeInterval();
  EXPECT_EQ(first.done, 2);
  EXPECT_EQ(first.latency.max(), absl::Milliseconds(5));
  EXPECT_EQ(statistics.TakeInterval().done, 0);
  statistics.AddNotSent(1, 0, absl::Seconds(2), {});
  EXPECT_EQ(statistics.TakeInterval().done, 1);
  EXPECT_EQ(statistics.failed(), 1);
  EXPECT_EQ(statistics.Sum().succeeded, 2);
}

TEST(StatisticsTest, EachChoiceHasItsOwnFigures) {
  Statistics statistics(2, 3);
  statistics.AddOutcome(0, 1, Outcome{}, absl::Milliseconds(3), absl::Seconds(0));
  statistics.AddOutcome(1, 1, Outcome{}, absl::Milliseconds(5), absl::Seconds(1));
  statistics.AddNotSent(1, 2, absl::Seconds(2), absl::Seconds(1));
  const std::vector<Tally> rows = statistics.SumByChoice();
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0].succeeded + rows[0].failed, 0);
  EXPECT_EQ(rows[1].succeeded, 2);
  EXPECT_EQ(rows[2].failed, 1);
  const Series series = statistics.series();
  ASSERT_EQ(series.windows().size(), 5);
  EXPECT_EQ(series.windows()[0].done, 1);
  EXPECT_EQ(series.windows()[4].done, 2);
  EXPECT_EQ(series.windows()[4].failed, 1);
}

TEST(StatisticsTest, PhasesAreRecordedWhereTheServerReportedThem) {
  Statistics statistics(1);
  PhaseDurations phases{};
  phases[kKernel] = absl::Milliseconds(4);
  statistics.AddOutcome(0, 0, Outcome{.phases = phases}, absl::Milliseconds(6), {});
  statistics.AddOutcome(0, 0, Outcome{}, absl::Milliseconds(6), {});
  const Tally sum = statistics.Sum();
  EXPECT_EQ(sum.phases[kKernel].count(), 1);
  EXPECT_EQ(sum.phases[kKernel].max(), absl::Milliseconds(4));
  EXPECT_EQ(sum.latency.count(), 2);
}

}  // namespace
}  // namespace gemmd::ctl
