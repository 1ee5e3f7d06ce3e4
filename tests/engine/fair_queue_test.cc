#include "server/engine/policy/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/policy/scheduler.h"

namespace gemmd {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Which = FairQueue::Which;

constexpr absl::Duration kLarge = absl::Milliseconds(13);
constexpr absl::Duration kSmall = absl::Microseconds(50);

// A job that is only ever in a queue.
class QueuedJob final : public Runnable {
 public:
  explicit QueuedJob(std::string name) : name(std::move(name)) {}
  void Run(StreamLease) override {}
  const std::string name;
};

class FairQueueTest : public ::testing::Test {
 protected:
  static StreamClaim Claim(const std::string& flow, absl::Duration cost, int band = 1) {
    return {.flow = flow, .cost = {.device_time = cost, .band = band}};
  }
  const Runnable* Add(const std::string& name, const StreamClaim& claim) {
    auto job = std::make_shared<QueuedJob>(name);
    const Runnable* const key = job.get();
    queue_.Add(std::move(job), claim, now_);
    return key;
  }
  void AddMany(const std::string& flow, int count, absl::Duration cost, double weight = 1) {
    StreamClaim claim = Claim(flow, cost);
    claim.weight = weight;
    for (int i = 0; i < count; ++i) Add(flow, claim);
  }
  // The name of the next job; "" where there is none.
  std::string Take(Which which = Which::kAny) {
    std::optional<FairQueue::Taken> taken = queue_.Take(which);
    if (!taken.has_value()) return "";
    charge_ = taken->charge;
    taken_[static_cast<QueuedJob&>(*taken->job).name] += charge_.cost;
    return static_cast<QueuedJob&>(*taken->job).name;
  }
  std::vector<std::string> TakeAll() {
    std::vector<std::string> names;
    for (std::string name = Take(); !name.empty(); name = Take()) names.push_back(name);
    return names;
  }
  // A flow's part of the device time of the jobs taken so far.
  double ShareOf(const std::string& name) {
    absl::Duration all;
    for (const auto& [other, cost] : taken_) all += cost;
    return absl::FDivDuration(taken_[name], all);
  }

  absl::Time now_ = absl::UnixEpoch();
  FairQueue queue_;
  std::map<std::string, absl::Duration> taken_;
  FairQueue::Charge charge_;  // of the last job taken
};

TEST_F(FairQueueTest, OneCallersJobsStayInOrder) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back(std::to_string(i));
    // The estimates of like jobs differ a little.
    Add(names.back(), Claim("a", kLarge * (1 + 0.1 * std::sin(i))));
  }
  EXPECT_EQ(queue_.size(), 100);
  EXPECT_EQ(queue_.flows(), 1);
  EXPECT_EQ(TakeAll(), names);
  EXPECT_EQ(queue_.size(), 0);
  EXPECT_EQ(queue_.flows(), 0);
  EXPECT_EQ(queue_.cost(), absl::ZeroDuration());
}

TEST_F(FairQueueTest, ASmallJobIsNextHoweverManyLargeOnesOfAnotherCallerWait) {
  AddMany("large", 1000, kLarge);
  for (int i = 0; i < 300; ++i) {
    for (int before = 0; before < i % 4; ++before) EXPECT_EQ(Take(), "large");
    Add("small", Claim("small", kSmall));
    EXPECT_EQ(Take(), "small") << i;
  }
}

TEST_F(FairQueueTest, TheLongestFlowsAreToldWithTheirJobsAndDeviceTime) {
  AddMany("a", 1, kLarge);
  AddMany("b", 3, kLarge);
  AddMany("c", 2, kSmall);
  const std::vector<WaitingFlow> longest = queue_.Longest(2);
  ASSERT_EQ(longest.size(), 2);
  EXPECT_EQ(longest[0].name, "b");
  EXPECT_EQ(longest[0].jobs, 3);
  EXPECT_DOUBLE_EQ(longest[0].seconds, absl::ToDoubleSeconds(3 * kLarge));
  EXPECT_EQ(longest[1].name, "c");
  EXPECT_EQ(queue_.Longest(9).size(), 3);
}

TEST_F(FairQueueTest, CallersWithEqualJobsTakeTurns) {
  AddMany("a", 4, kLarge);
  AddMany("b", 3, kLarge);
  EXPECT_THAT(TakeAll(), ElementsAre("a", "b", "a", "b", "a", "b", "a"));
}

TEST_F(FairQueueTest, LargeJobsPayForWhatTheyUse) {
  AddMany("large", 200, kLarge);
  AddMany("small", 60'000, kSmall);
  for (int i = 0; i < 20'000; ++i) Take();
  EXPECT_NEAR(ShareOf("small"), 0.5, 0.02);
  EXPECT_NEAR(taken_["large"] / kLarge, taken_["small"] / kLarge, 1.1);
}

TEST_F(FairQueueTest, SharesAreAsTheWeightsWhateverTheJobsCost) {
  const std::map<std::string, double> weights = {{"a", 1}, {"b", 1}, {"c", 2}, {"d", 4}};
  const std::map<std::string, absl::Duration> costs = {{"a", absl::Microseconds(700)},
                                                       {"b", absl::Milliseconds(5)},
                                                       {"c", absl::Milliseconds(2)},
                                                       {"d", absl::Microseconds(31)}};
  for (const auto& [name, weight] : weights) {
    AddMany(name, static_cast<int>(absl::Seconds(2) / costs.at(name)), costs.at(name), weight);
  }
  for (absl::Duration all; all < absl::Seconds(2);) all += queue_.Take(Which::kAny)->charge.cost;
  // Half of the jobs are left. The flows have taken the others by their weights.
  for (const auto& [name, weight] : weights) {
    absl::Duration left;
    for (const auto& [other, cost] : costs) {
      if (other == name) left = queue_.size_of(name) * cost;
    }
    const absl::Duration put = static_cast<int>(absl::Seconds(2) / costs.at(name)) * costs.at(name);
    EXPECT_NEAR((put - left) / absl::Milliseconds(1), weight / 8 * 2000, 2000 * 0.005) << name;
  }
}

TEST_F(FairQueueTest, IdleTimeGathersNoCredit) {
  AddMany("a", 1000, kLarge);
  AddMany("b", 1, kLarge);
  for (int i = 0; i < 500; ++i) Take();  // b has none for most of it
  taken_.clear();
  AddMany("b", 200, kLarge);
  for (int i = 0; i < 100; ++i) Take();
  EXPECT_NEAR(ShareOf("b"), 0.5, 0.02);
}

TEST_F(FairQueueTest, NobodyWaitsForMoreThanATurnOfEachOther) {
  for (int flow = 0; flow < 50; ++flow) AddMany(std::to_string(flow), 100, kLarge);
  std::map<std::string, int> last;
  for (int i = 1; i <= 5000; ++i) {
    const std::string name = Take();
    EXPECT_LE(i - last[name], 51) << name;
    last[name] = i;
  }
}

TEST_F(FairQueueTest, AQuickJobPassesItsCallersLargeOnesThatCameJustBefore) {
  for (int i = 0; i < 3; ++i) Add("large", Claim("a", kLarge, 4));
  now_ += 4 * FairQueue::kHeadStart - absl::Milliseconds(1);
  Add("quick", Claim("a", kSmall, kQuickBand));
  EXPECT_THAT(TakeAll(), ElementsAre("quick", "large", "large", "large"));
}

TEST_F(FairQueueTest, ALargeJobThatHasWaitedLongEnoughIsPassedByNone) {
  Add("large", Claim("a", kLarge, 4));
  now_ += 4 * FairQueue::kHeadStart + absl::Milliseconds(1);
  Add("quick", Claim("a", kSmall, kQuickBand));
  EXPECT_THAT(TakeAll(), ElementsAre("large", "quick"));
}

TEST_F(FairQueueTest, AFloodOfQuickJobsStarvesNoLargeOneOfTheirCaller) {
  Add("large", Claim("a", kLarge, kLastBand));
  const absl::Time begun = now_;
  for (bool served = false; !served;) {
    for (int i = 0; i < 3; ++i) Add("quick", Claim("a", kSmall, kQuickBand));
    now_ += absl::Milliseconds(1);  // the backlog grows without end
    served = Take() == "large";
    ASSERT_LE(now_ - begun, kLastBand * FairQueue::kHeadStart * 4) << "starved";
  }
}

// However much longer than estimated they take.
TEST_F(FairQueueTest, QuickJobsTakenWhileNobodyElseWaitsLeaveNoDebt) {
  AddMany("a", 1, kLarge);
  for (int i = 0; i < 400; ++i) {
    Add("quick", Claim("a", kSmall, kQuickBand));
    ASSERT_EQ(Take(Which::kQuick), "quick");
    queue_.Settle(Which::kQuick, charge_, 100 * kSmall);
  }
  AddMany("b", 100, kLarge);
  int before = 0;
  while (Take() != "a") ++before;
  EXPECT_LE(before, 1);
}

TEST_F(FairQueueTest, AStreamForQuickJobsTakesThoseAlone) {
  EXPECT_EQ(Take(Which::kQuick), "");
  Add("large", Claim("a", kLarge));
  EXPECT_EQ(Take(Which::kQuick), "");
  Add("quick", Claim("a", kSmall, kQuickBand));
  EXPECT_EQ(Take(Which::kQuick), "quick");
  EXPECT_EQ(Take(Which::kQuick), "");
  EXPECT_EQ(Take(), "large");
}

// One of a's jobs runs: b may have as much in advance.
TEST_F(FairQueueTest, WhatQuickStreamsGiveIsPaidForOnTheOthers) {
  AddMany("a", 1000, kLarge);
  AddMany("b", 1000, kLarge);
  EXPECT_EQ(Take(), "a");
  for (int i = 0; i < 1000; ++i) Add("b", Claim("b", kSmall, kQuickBand));
  // b's credit for its own turn, and the advance of a.
  for (int i = 0; i < 2 * kLarge / kSmall; ++i) ASSERT_EQ(Take(Which::kQuick), "b") << i;
  for (int i = 0; i < 100; ++i) Take();
  EXPECT_NEAR((taken_["a"] - taken_["b"]) / kLarge, 0, 1.1);
}

TEST_F(FairQueueTest, AQuickStreamPassesOverAFlowInDebtWhileAnotherWaits) {
  AddMany("a", 3, kLarge);
  EXPECT_EQ(Take(), "a");
  for (int i = 0; i < 1000; ++i) Add("b", Claim("b", kSmall, kQuickBand));
  const auto in_advance = [this] {
    int jobs = 0;
    while (!Take(Which::kQuick).empty()) ++jobs;
    return jobs;
  };
  EXPECT_EQ(in_advance(), kLarge / kSmall + 1);
  EXPECT_FALSE(queue_.InDebt(Claim("c", kSmall, kQuickBand)));
  EXPECT_TRUE(queue_.InDebt(Claim("b", kSmall, kQuickBand)));
  EXPECT_EQ(Take(), "a");
  queue_.Settle(Which::kAny, charge_, kLarge);
  EXPECT_EQ(in_advance(), kLarge / kSmall) << "a's turn made up for as much";
  EXPECT_EQ(Take(), "a");
  EXPECT_EQ(Take(Which::kQuick), "b") << "nobody else waits";
}

TEST_F(FairQueueTest, DebtIsKeptInFull) {
  AddMany("a", 1000, kLarge);
  Take();
  std::optional<FairQueue::Charge> charge =
      queue_.Pass(Which::kQuick, Claim("b", kSmall, kQuickBand));
  ASSERT_TRUE(charge.has_value());
  queue_.Settle(Which::kQuick, *charge, 100 * kLarge);
  taken_.clear();
  AddMany("b", 1, kLarge);
  while (Take() != "b") {
  }
  EXPECT_NEAR(taken_["a"] / kLarge, 100, 1.1);
}

TEST_F(FairQueueTest, TheFlowsInDebtThatAreRememberedAreBounded) {
  AddMany("a", 1, kLarge);
  const auto claim = [](size_t i) { return Claim(std::to_string(i), kSmall, kQuickBand); };
  for (size_t i = 0; i <= FairQueue::kMostDebtors; ++i) {
    EXPECT_TRUE(queue_.Pass(Which::kQuick, claim(i)).has_value());
    EXPECT_TRUE(queue_.InDebt(claim(i))) << "no other job runs";
  }
  EXPECT_FALSE(queue_.InDebt(claim(0))) << "forgotten";
  EXPECT_TRUE(queue_.InDebt(claim(1)));
  queue_.ForgetDebts();
  EXPECT_FALSE(queue_.InDebt(claim(1)));
}

TEST_F(FairQueueTest, ARemovedJobIsGoneAndSoIsItsFlow) {
  Add("x", Claim("a", kLarge));
  const Runnable* const removed = Add("y", Claim("a", kLarge));
  Add("z", Claim("a", kLarge, kQuickBand));
  const Runnable* const alone = Add("b", Claim("b", kLarge));
  EXPECT_EQ(queue_.Remove(removed).use_count(), 1);
  EXPECT_EQ(queue_.Remove(removed), nullptr);
  EXPECT_NE(queue_.Remove(alone), nullptr);
  EXPECT_EQ(queue_.flows(), 1);
  EXPECT_EQ(queue_.size_of("a"), 2);
  EXPECT_EQ(queue_.size_of("b"), 0);
  EXPECT_EQ(queue_.cost(), 2 * kLarge);
  EXPECT_EQ(queue_.Ahead(Claim("c", absl::Hours(1)), Which::kAny, now_), 2 * kLarge);
  EXPECT_THAT(TakeAll(), ElementsAre("z", "x"));
}

TEST_F(FairQueueTest, AnyWeightEndsTheWait) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // The weights of one with many jobs, and of one with a single job.
  const std::vector<std::pair<double, double>> weights = {{kInfinity, 1}, {1e300, 1}, {1, 0},
                                                          {1, -1},        {1, kNaN},  {1, 1e-300}};
  for (const auto& [many, one] : weights) {
    AddMany("many", 1100, kLarge, many);
    AddMany("one", 1, kLarge, one);
    int before = 0;
    while (Take() == "many") ++before;
    EXPECT_LE(before, 1001) << many << " " << one;
    TakeAll();
  }
}

// The estimate beside the real wait, over mixes of flows, weights, costs and bands.
TEST_F(FairQueueTest, AheadIsWhatRunsBeforeANewJob) {
  std::mt19937 random(1);
  const auto draw = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  for (int round = 0; round < 300; ++round) {
    absl::Duration largest;
    const int flows = 1 + draw(5);
    for (int i = draw(300); i > 0; --i) {
      const int flow = draw(flows);
      const int band = draw(3);
      StreamClaim claim = Claim(std::to_string(flow),
                                absl::Microseconds(100 + draw(100)) * (1 << (3 * band)), band);
      claim.weight = 1 << flow;
      largest = std::max(largest, claim.cost.device_time);
      Add("old", claim);
      now_ += absl::Milliseconds(1);
    }
    for (int i = draw(20); i > 0; --i) Take();
    StreamClaim claim = Claim(std::to_string(draw(flows)), absl::Milliseconds(1), draw(3));
    claim.weight = 1 << (claim.flow[0] - '0');
    const absl::Duration ahead = queue_.Ahead(claim, Which::kAny, now_);
    Add("new", claim);
    taken_.clear();
    while (Take() != "new") {
    }
    EXPECT_NEAR(absl::ToDoubleMilliseconds(ahead), absl::ToDoubleMilliseconds(taken_["old"]),
                absl::ToDoubleMilliseconds(2 * flows * largest))
        << round;
    TakeAll();
  }
}

TEST_F(FairQueueTest, AheadOnQuickStreamsAreQuickJobs) {
  AddMany("a", 1000, kLarge);
  const StreamClaim quick = Claim("b", kSmall, kQuickBand);
  EXPECT_EQ(queue_.Ahead(quick, Which::kQuick, now_), absl::ZeroDuration());
  for (int i = 0; i < 10; ++i) Add("b", quick);
  EXPECT_EQ(queue_.Ahead(quick, Which::kQuick, now_), 10 * kSmall);
  EXPECT_EQ(queue_.Ahead(Claim("c", kSmall, kQuickBand), Which::kQuick, now_), kSmall);
}

}  // namespace
}  // namespace gemmd
