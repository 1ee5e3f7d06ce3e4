#include "server/engine/policy/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

EngineOptions Bounds() {
  EngineOptions options;
  options.max_job_bytes = 60;
  options.max_admitted_bytes = 100;
  options.max_jobs = 3;
  return options;
}

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTicket Admit(uint64_t bytes) {
    absl::StatusOr<AdmissionTicket> ticket = admission_.AdmitJob(bytes);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return *std::move(ticket);
  }
  void ExpectHeld(int64_t jobs, int64_t bytes) {
    EXPECT_EQ(admission_.jobs().used, jobs);
    EXPECT_EQ(admission_.admitted_bytes().used, bytes);
  }

  Admission admission_{Bounds()};
};

TEST_F(AdmissionTest, ATicketIsReturnedOnce) {
  {
    AdmissionTicket ticket = Admit(40);
    ExpectHeld(1, 40);
    ticket.Reset();
    ExpectHeld(0, 0);
    ticket.Reset();
    ExpectHeld(0, 0);
  }
  { const AdmissionTicket ticket = Admit(40); }
  ExpectHeld(0, 0);
}

TEST_F(AdmissionTest, AMovedTicketIsReturnedByItsNewOwner) {
  AdmissionTicket first = Admit(40);
  AdmissionTicket second = Admit(50);
  second = std::move(first);
  ExpectHeld(1, 40);
  first.Reset();  // NOLINT: empty when moved from
  ExpectHeld(1, 40);
  second.Reset();
  ExpectHeld(0, 0);
}

TEST_F(AdmissionTest, KnowsItsLimits) {
  EXPECT_EQ(admission_.jobs().limit, 3);
  EXPECT_EQ(admission_.admitted_bytes().limit, 100);
}

TEST_F(AdmissionTest, OneJobMayTakeMaxJobBytesAndNotOneMore) {
  const AdmissionTicket ticket = Admit(60);
  const absl::Status refused = admission_.AdmitJob(61).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("needs 61 bytes"), HasSubstr("may take 60"),
                                       HasSubstr("--max-job-bytes")));
  ExpectHeld(1, 60);
}

TEST_F(AdmissionTest, AllJobsMayTakeMaxAdmittedBytesAndNotOneMore) {
  const AdmissionTicket first = Admit(60);
  const absl::Status refused = admission_.AdmitJob(41).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("needs 41 bytes"), HasSubstr("have 60 of at most 100"),
                    HasSubstr("--max-admitted-bytes")));
  ExpectHeld(1, 60);
  const AdmissionTicket second = Admit(40);
  ExpectHeld(2, 100);
}

TEST_F(AdmissionTest, MaxJobsAreAdmittedAndNotOneMore) {
  std::vector<AdmissionTicket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(Admit(1));
  const absl::Status refused = admission_.AdmitJob(1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("has 3 jobs"), HasSubstr("--max-jobs")));
  tickets.pop_back();
  const AdmissionTicket again = Admit(1);
}

// A sixteenth of the jobs and of the bytes is not for the caller with the most.
class ReserveTest : public ::testing::Test {
 protected:
  static EngineOptions Bounds() {
    EngineOptions options;
    options.max_jobs = 32;
    options.max_job_bytes = options.max_admitted_bytes = 1600;
    return options;
  }
  absl::Status Admit(const char* caller, uint64_t bytes) {
    const auto quota = std::make_shared<const CallerQuota>(CallerQuota{.caller = caller});
    absl::StatusOr<AdmissionTicket> ticket = admission_.AdmitJob(bytes, quota);
    if (ticket.ok()) tickets_.push_back(*std::move(ticket));
    return ticket.status();
  }

  Admission admission_{Bounds()};
  std::vector<AdmissionTicket> tickets_;
};

TEST_F(ReserveTest, OneCallerLeavesTheOthersJobs) {
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Admit("alice", 1).ok()) << i;
  const absl::Status refused = Admit("alice", 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("has 30 jobs of at most 32 (--max-jobs)"),
                                       HasSubstr("the last 2 are for callers with fewer than that"),
                                       HasSubstr("the caller 'alice' has 30")));
  EXPECT_TRUE(Admit("bob", 1).ok());
  EXPECT_TRUE(Admit("bob", 1).ok());
  EXPECT_THAT(Admit("carol", 1).message(), HasSubstr("has 32 jobs, its limit"));
}

TEST_F(ReserveTest, OneCallerLeavesTheOthersMemory) {
  ASSERT_TRUE(Admit("alice", 1500).ok());
  const absl::Status refused = Admit("alice", 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("needs 1 bytes"), HasSubstr("have 1500 of at most 1600"),
                    HasSubstr("the last 100 of which are for callers with fewer than that"),
                    HasSubstr("the caller 'alice' has 1500")));
  EXPECT_FALSE(Admit("bob", 101).ok());
  EXPECT_TRUE(Admit("bob", 60).ok());
  EXPECT_FALSE(Admit("bob", 41).ok());
  EXPECT_TRUE(Admit("bob", 40).ok());
}

TEST_F(ReserveTest, AJobThatNeedsAllRunsAlone) {
  EXPECT_TRUE(Admit("alice", 1600).ok());
  tickets_.clear();
  ASSERT_TRUE(Admit("bob", 1).ok());
  EXPECT_FALSE(Admit("alice", 1550).ok());
}

TEST_F(ReserveTest, IsKeptForNobodyWhereCallersHaveNoNames) {
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(Admit("", 1).ok()) << i;
}

TEST_F(AdmissionTest, ATransferCountsAsUnderWayAndNothingElse) {
  absl::StatusOr<AdmissionTicket> transfer = admission_.AdmitTransfer();
  ASSERT_TRUE(transfer.ok());
  ExpectHeld(0, 0);
  EXPECT_FALSE(admission_.WaitIdle(SteadyNow()));
  transfer->Reset();
  ExpectHeld(0, 0);
  EXPECT_TRUE(admission_.WaitIdle(SteadyNow()));
}

TEST_F(AdmissionTest, ClosedItAdmitsNothingNewAndKeepsWhatItHas) {
  const AdmissionTicket ticket = Admit(10);
  admission_.Close();
  EXPECT_EQ(admission_.AdmitJob(10).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(admission_.AdmitTransfer().status().code(), absl::StatusCode::kUnavailable);
  ExpectHeld(1, 10);
}

TEST_F(AdmissionTest, ClosedItLetsResultsOfItsJobsBeFetched) {
  TestClock clock;
  const auto fetch = [this] { return admission_.AdmitDownload().status().code(); };
  AdmissionTicket job = Admit(10);
  admission_.Close();
  EXPECT_EQ(fetch(), absl::StatusCode::kOk) << "the job may keep its result";
  admission_.OnResultKept();
  job.Reset();
  clock.Advance(Admission::kTimeToFetch - absl::Nanoseconds(1));
  EXPECT_EQ(fetch(), absl::StatusCode::kOk);
  std::thread waits([this] { EXPECT_TRUE(admission_.WaitIdle(absl::InfiniteFuture())); });
  clock.Advance(absl::Nanoseconds(1));
  EXPECT_EQ(fetch(), absl::StatusCode::kUnavailable);
  waits.join();
}

TEST_F(AdmissionTest, ClosedItWaitsForWhoeverIsAboutToFetch) {
  TestClock clock;
  admission_.OnResultKept();
  const absl::Time until = SteadyNow() + Admission::kTimeToFetch;
  admission_.Close();
  EXPECT_TRUE(admission_.WaitIdle(SteadyNow())) << "not beyond its time";
  std::atomic<bool> begun = false;
  std::thread waits([&] {
    begun = true;
    EXPECT_TRUE(admission_.WaitIdle(SteadyNow() + absl::Hours(1)));
    EXPECT_GE(SteadyNow(), until);
  });
  while (!begun) std::this_thread::yield();
  absl::SleepFor(absl::Milliseconds(50));
  clock.Advance(Admission::kTimeToFetch);
  waits.join();
}

TEST_F(AdmissionTest, AtTheEndNobodyFetches) {
  TestClock clock;
  {
    const AdmissionTicket job = Admit(10);
    admission_.OnResultKept();
    admission_.Close();
    admission_.CloseDownloads();
    EXPECT_EQ(admission_.AdmitDownload().status().code(), absl::StatusCode::kUnavailable);
    admission_.OnResultKept();
  }
  EXPECT_TRUE(admission_.WaitIdle(absl::InfiniteFuture())) << "though the clock stands still";
}

TEST_F(AdmissionTest, WaitIdleReturnsWhenTheLastTicketDoes) {
  AdmissionTicket first = Admit(10);
  AdmissionTicket second = Admit(10);
  first.Reset();
  EXPECT_FALSE(admission_.WaitIdle(SteadyNow())) << "one is out";
  std::thread other([&second] { second.Reset(); });
  EXPECT_TRUE(admission_.WaitIdle(absl::InfiniteFuture()));
  ExpectHeld(0, 0);
  other.join();
}

TEST_F(AdmissionTest, WaitIdleGivesUpAtItsDeadline) {
  const AdmissionTicket ticket = Admit(10);
  const absl::Time deadline = SteadyNow() + absl::Milliseconds(5);
  EXPECT_FALSE(admission_.WaitIdle(deadline));
  EXPECT_GE(SteadyNow(), deadline);
}

// Unregisters itself when it is cancelled, as everything does that ends.
class Work final : public Cancellable {
 public:
  explicit Work(Admission& admission) : admission_(admission) {}
  void Cancel(absl::Status why) override {
    cancelled.push_back(std::move(why));
    admission_.Unregister(id);
  }
  absl::string_view Where() override { return "at work"; }
  bool Needs(const Device&) override { return false; }

  std::vector<absl::Status> cancelled;
  uint64_t id = 0;

 private:
  Admission& admission_;
};

TEST_F(AdmissionTest, CancelAllEndsWhatIsRegisteredAndThereStill) {
  std::vector<std::shared_ptr<Work>> works;
  for (int i = 0; i < 4; ++i) {
    works.push_back(std::make_shared<Work>(admission_));
    works.back()->id = *admission_.Register(works.back());
  }
  admission_.Unregister(works[1]->id);
  works[2].reset();
  admission_.CancelAll(absl::UnavailableError("the drain is over"));
  for (const int i : {0, 3}) {
    ASSERT_EQ(works[i]->cancelled.size(), 1u) << i;
    EXPECT_EQ(works[i]->cancelled[0], absl::UnavailableError("the drain is over"));
  }
  EXPECT_TRUE(works[1]->cancelled.empty());
  admission_.CancelAll(absl::UnavailableError("again"));
  EXPECT_EQ(works[0]->cancelled.size(), 1u);
  EXPECT_EQ(admission_.Register(works[1]).status(), absl::UnavailableError("the drain is over"))
      << "too late";
}

}  // namespace
}  // namespace gemmd
