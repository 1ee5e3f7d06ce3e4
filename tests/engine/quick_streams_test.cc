// Quick streams: small jobs do not wait behind large ones, and take nothing from the shares.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/fairness_fixture.h"

namespace gemmd {
namespace {

class QuickStreamTest : public FairnessTest {
 protected:
  QuickStreamTest() : FairnessTest(/*streams=*/2, /*quick_streams=*/1) {}
};

TEST_F(QuickStreamTest, AQuickJobBeginsAtOnceBesideLargeOnes) {
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Submit(Claim("large", kLargeTime)).ok());
  EXPECT_EQ(TakeBegun().size(), 2u) << "none of them on the quick stream";
  const StreamClaim quick = Claim("large", kSmallTime, 1, kQuickBand);
  ASSERT_TRUE(Submit(quick).ok());
  EXPECT_EQ(running_.size(), 3u);
  EXPECT_EQ(&*running_.back()->lease, &device_.quick(0));
  ASSERT_TRUE(Submit(quick).ok());
  EXPECT_EQ(running_.size(), 3u) << "the second waits";
  EXPECT_EQ(scheduler_.streams().used, 3);
  EXPECT_EQ(scheduler_.streams().limit, 3);
  std::swap(running_.front(), running_.back());
  EndOne(kSmallTime);
  EXPECT_EQ(&*running_.back()->lease, &device_.quick(0)) << "and is next on the quick stream";
  std::swap(running_.front(), running_.back());
  EndOne(kSmallTime);
  EXPECT_EQ(running_.size(), 2u) << "which large jobs leave free";
}

TEST_F(QuickStreamTest, AQuickJobTakesAnyFreeStream) {
  const StreamClaim quick = Claim("a", kSmallTime, 1, kQuickBand);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Submit(quick).ok());
  EXPECT_EQ(running_.size(), 3u);
  ASSERT_TRUE(Submit(quick).ok());
  EXPECT_EQ(running_.size(), 3u);
  std::swap(running_.front(), running_.back());
  EndOne(kSmallTime);
  EXPECT_EQ(running_.size(), 3u) << "whichever ends";
}

TEST_F(QuickStreamTest, LargeJobsAheadAreNoWaitForAQuickOne) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Submit(Claim("large", kLargeTime)).ok());
  for (int i = 0; i < 20; ++i) EndOne(kLargeTime / 2);
  StreamClaim quick = Claim("large", kSmallTime, 1, kQuickBand);
  quick.deadline = SteadyNow() + absl::Milliseconds(5);
  ASSERT_TRUE(Submit(quick).ok());
  EXPECT_TRUE(scheduler_.CheckWait(quick).ok()) << "while the quick stream is in use, too";
}

// "large" has both streams, and more jobs that wait; "quick" had more of the quick stream than it
// may have in advance.
class DebtTest : public QuickStreamTest {
 protected:
  static inline const StreamClaim kLarge = Claim("large", kLargeTime, 1, 2);
  static inline const StreamClaim kQuick = Claim("quick", kSmallTime, 1, kQuickBand);

  void SubmitLarge(int jobs) {
    for (int i = 0; i < jobs; ++i) ASSERT_TRUE(Submit(kLarge).ok());
  }
  void RunUpDebt() {
    TakeBegun();
    ASSERT_TRUE(Submit(kQuick).ok());
    ASSERT_EQ(TakeBegun(), std::vector<std::string>{"quick"});
    // Two of the other's jobs run.
    std::swap(running_.front(), running_.back());
    EndOne(2.5 * kLargeTime * 3);
    ASSERT_TRUE(Submit(kQuick).ok());
    ASSERT_EQ(TakeBegun(), std::vector<std::string>());
    ASSERT_EQ(running_.size(), 2u);
  }
};

TEST_F(DebtTest, AFreeQuickStreamIsNoneForALargeJobNorForACallerInDebt) {
  SubmitLarge(3);
  RunUpDebt();
  EXPECT_EQ(scheduler_.streams().used, 2);
  EXPECT_EQ(scheduler_.streams().limit, 3);
  ASSERT_TRUE(Submit(kLarge).ok());
  ASSERT_TRUE(Submit(Claim("new", kLargeTime, 1, 2)).ok());
  EXPECT_EQ(TakeBegun(), std::vector<std::string>());
  ASSERT_TRUE(Submit(Claim("new", kSmallTime, 1, kQuickBand)).ok());
  EXPECT_EQ(TakeBegun(), std::vector<std::string>{"new"});
  EXPECT_EQ(scheduler_.streams().used, 3);
}

TEST_F(DebtTest, TheTurnOfTheOthersMakesUpForIt) {
  SubmitLarge(12);
  RunUpDebt();
  EndOne(kLargeTime);
  EXPECT_EQ(TakeBegun(), (std::vector<std::string>{"large", "quick"}));
  EXPECT_EQ(&*running_.back()->lease, &device_.quick(0));
}

TEST_F(DebtTest, NobodyIsInDebtOnceNobodyElseWaits) {
  SubmitLarge(3);
  RunUpDebt();
  scheduler_.Withdraw(jobs_[2].get());
  EXPECT_EQ(TakeBegun(), std::vector<std::string>{"quick"});
  EXPECT_EQ(&*running_.back()->lease, &device_.quick(0));
}

TEST_F(DebtTest, ItKeepsNobodyElseFromTheQuickStream) {
  SubmitLarge(12);
  RunUpDebt();
  ASSERT_TRUE(Submit(Claim("other", kSmallTime, 1, kQuickBand)).ok());
  EXPECT_EQ(TakeBegun(), std::vector<std::string>{"other"});
}

TEST_F(DebtTest, ItOutlivesTheJobsThatWait) {
  SubmitLarge(12);
  RunUpDebt();
  scheduler_.Withdraw(jobs_.back().get());
  ASSERT_TRUE(Submit(kQuick).ok());
  EXPECT_EQ(TakeBegun(), std::vector<std::string>());
}

TEST_F(DebtTest, ItIsForgottenWhereThereIsRoomForEverybody) {
  SubmitLarge(3);
  RunUpDebt();
  for (int i = 0; i < 4; ++i) EndOne(kLargeTime);
  EXPECT_EQ(scheduler_.streams().used, 0);
  SubmitLarge(3);
  RunUpDebt();  // it has none at first
}

TEST_F(DebtTest, ItIsAReasonToRefuseAJobForItsDeadline) {
  SubmitLarge(12);
  for (int i = 0; i < 5; ++i) EndOne(kLargeTime);  // the pace is known
  RunUpDebt();
  StreamClaim claim = kQuick;
  claim.deadline = SteadyNow() + kLargeTime;
  EXPECT_EQ(scheduler_.CheckWait(claim).code(), absl::StatusCode::kResourceExhausted);
  claim.flow = "other";
  EXPECT_TRUE(scheduler_.CheckWait(claim).ok());
}

// Callers who always have as many jobs.
class QuickSharesTest : public FairnessTest {
 protected:
  struct Load {
    StreamClaim claim;
    int outstanding = 0;
    absl::Duration takes = claim.cost.device_time;
  };
  static Load Quick(const std::string& caller, double weight, int outstanding = 64) {
    return {Claim(caller, kSmallTime, weight, kQuickBand), outstanding};
  }
  static Load Large(const std::string& caller, double weight, absl::Duration time = kLargeTime) {
    return {Claim(caller, time, weight, 2), 16};
  }

  QuickSharesTest() : FairnessTest(/*streams=*/4, /*quick_streams=*/2) {}

  void Begin(const std::vector<Load>& loads) {
    for (const Load& load : loads) {
      for (int i = 0; i < load.outstanding; ++i) {
        ASSERT_TRUE(Submit(load.claim, load.takes).ok());
      }
      absl::Duration& slack = slack_[load.claim.flow];
      slack = std::max(slack, 6 * std::max(load.takes, load.claim.cost.device_time));
      weights_[load.claim.flow] = load.claim.weight;
    }
  }
  void RunFor(absl::Duration time) {
    const absl::Time end = SteadyNow() + time;
    while (true) {
      absl::Duration left = absl::InfiniteDuration();
      for (const TimedJob* job : running_) left = std::min(left, job->left);
      const auto running = static_cast<int64_t>(running_.size());
      if (SteadyNow() + left * running > end) {
        const absl::Duration rest = end - SteadyNow();
        for (TimedJob* job : running_) job->left -= rest / running;
        return clock_.Advance(rest);
      }
      const TimedJob& ended = RunOne();
      if (weights_.contains(ended.claim.flow)) {
        ASSERT_TRUE(Submit(ended.claim, ended.takes).ok());
      }
    }
  }
  // How much more device time the first has had than the second, of what both of weight 1 are due,
  // beyond one job on each stream.
  absl::Duration TooMuch(const std::string& one, const std::string& other) {
    const absl::Duration more =
        device_time_[one] / weights_[one] - device_time_[other] / weights_[other];
    return more - slack_[one] / weights_[one] - slack_[other] / weights_[other];
  }
  void ExpectFairAfter(absl::Duration time) {
    RunFor(time);
    for (const auto& [one, weight] : weights_) {
      for (const auto& [other, others_weight] : weights_) {
        EXPECT_LE(TooMuch(one, other), absl::ZeroDuration())
            << one << " had " << device_time_[one] << " for its weight of " << weight << ", "
            << other << " " << device_time_[other] << " for " << others_weight;
      }
    }
  }

  std::map<std::string, double> weights_;
  std::map<std::string, absl::Duration> slack_;  // a job on each stream
};

TEST_F(QuickSharesTest, OneToNinetyNine) {
  Begin({Large("large", 99), Quick("quick", 1)});
  ExpectFairAfter(absl::Seconds(5));
  EXPECT_NEAR(device_time_["quick"] / absl::Milliseconds(1), 50, 3);
}

TEST_F(QuickSharesTest, OneToFour) {
  Begin({Large("large", 4), Quick("quick", 1)});
  ExpectFairAfter(absl::Seconds(5));
}

TEST_F(QuickSharesTest, FourToOne) {
  Begin({Large("large", 1), Quick("quick", 4)});
  ExpectFairAfter(absl::Seconds(5));
}

TEST_F(QuickSharesTest, ManyCallersOfBothKinds) {
  Begin({Large("l1", 1), Large("l2", 5, absl::Milliseconds(400)), Quick("q1", 1), Quick("q2", 3)});
  ExpectFairAfter(absl::Seconds(40));
}

TEST_F(QuickSharesTest, ACallerWithJobsOfBothKindsPaysForBoth) {
  for (const double weight : {0.1, 1.0, 10.0}) {
    SCOPED_TRACE(weight);
    const std::string mixed = absl::StrCat("mixed", weight);
    Begin({Large("large", 1), Large(mixed, weight), Quick(mixed, weight)});
  }
  ExpectFairAfter(absl::Seconds(20));
}

TEST_F(QuickSharesTest, BesideACallerWithJobsOfBothKinds) {
  Begin({Large("mixed", 9), Quick("mixed", 9), Quick("quick", 1)});
  ExpectFairAfter(absl::Seconds(5));
}

TEST_F(QuickSharesTest, QuickCallersAmongThemselves) {
  Begin({Quick("q1", 1), Quick("q2", 9)});
  ExpectFairAfter(absl::Seconds(1));
}

// A flow without a waiting job keeps its debt.
TEST_F(QuickSharesTest, FewJobsAtATimeGetNoMoreThanTheirShare) {
  for (const int outstanding : {1, 2, 3}) {
    const std::string caller = absl::StrCat("quick", outstanding);
    Begin({Quick(caller, 1, outstanding)});
  }
  Begin({Large("large", 99)});
  RunFor(absl::Seconds(5));
  for (const int outstanding : {1, 2, 3}) {
    const std::string caller = absl::StrCat("quick", outstanding);
    EXPECT_LE(TooMuch(caller, "large"), absl::ZeroDuration()) << device_time_[caller];
    EXPECT_GE(device_time_[caller], absl::Milliseconds(45));
  }
}

TEST_F(QuickSharesTest, JobsThatTakeTwentyTimesAsLongAsTheirEstimate) {
  for (const int outstanding : {1, 64}) {
    Load quick = Quick(absl::StrCat("quick", outstanding), 1, outstanding);
    quick.takes = 20 * kSmallTime;
    Begin({quick});
  }
  Begin({Large("large", 4)});
  RunFor(absl::Seconds(10));
  const absl::Duration due = device_time_["large"] / 4;
  EXPECT_NEAR(absl::FDivDuration(device_time_["quick64"], due), 1, 0.05);
  EXPECT_LE(absl::FDivDuration(device_time_["quick1"], due), 1.05);
}

// The purpose of quick streams: a flow that takes less than its share does not wait, whatever the
// others have sent.
TEST_F(QuickSharesTest, ASmallCallersJobsBeginAtOnceBesideHugeBacklogs) {
  Begin({Large("l1", 50), Large("l2", 49, absl::Seconds(10))});
  const StreamClaim small = Claim("small", kSmallTime, 1, kQuickBand);
  for (int i = 0; i < 4000; ++i) {
    TakeBegun();
    ASSERT_TRUE(Submit(small).ok());
    ASSERT_EQ(TakeBegun(), std::vector<std::string>{"small"}) << i;
    RunFor(absl::Milliseconds(10));  // half a percent
  }
}

TEST_F(QuickSharesTest, NorDoesOneOfThoseJobsWaitForMoreThanAQuickOneOfOthers) {
  Begin({Large("large", 1), Quick("quick", 1)});
  const StreamClaim small = Claim("small", kSmallTime, 1, kQuickBand);
  for (int i = 0; i < 400; ++i) {
    TakeBegun();
    ASSERT_TRUE(Submit(small).ok());
    RunFor(6 * kSmallTime);  // in which each stream's job has that much
    const std::vector<std::string> begun = TakeBegun();
    ASSERT_EQ(std::count(begun.begin(), begun.end(), "small"), 1) << i;
    RunFor(absl::Milliseconds(10));
  }
}

}  // namespace
}  // namespace gemmd
