// The quotas of one caller for jobs, device memory and the store, and the texts of refusals.
#include "server/engine/bounds/caller_quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/bounds/bound_error.h"
#include "server/engine/policy/admission.h"
#include "server/engine/transfer/upload_impl.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_core.h"
#include "tests/engine/store_fixture.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CallerQuotaPtr QuotaOf(CallerQuota quota) {
  return std::make_shared<const CallerQuota>(std::move(quota));
}

TEST(BoundError, SaysWhatItWasGiven) {
  const absl::Status status = BoundError(
      {.bound = "jobs", .caller = "a\nb", .retry_after = absl::Milliseconds(7)}, "no more");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "no more");
  const std::optional<ReachedBound> reached = ReachedBoundOf(status);
  ASSERT_TRUE(reached.has_value());
  EXPECT_EQ(reached->bound, "jobs");
  EXPECT_EQ(reached->caller, "a\nb");
  EXPECT_EQ(reached->retry_after, absl::Milliseconds(7));
}

TEST(BoundError, MayHaveNeitherCallerNorTime) {
  const std::optional<ReachedBound> reached =
      ReachedBoundOf(BoundError({.bound = "max-job-bytes"}, ""));
  ASSERT_TRUE(reached.has_value());
  EXPECT_FALSE(reached->caller.has_value());
  EXPECT_FALSE(reached->retry_after.has_value());
  EXPECT_FALSE(ReachedBoundOf(absl::ResourceExhaustedError("another's")).has_value());
  // The caller of a server that asks nobody.
  EXPECT_EQ(ReachedBoundOf(BoundError({.bound = "jobs", .caller = ""}, ""))->caller, "");
}

TEST(CallerLedger, ForgetsWhoHasNothing) {
  CallerLedger ledger;
  for (int i = 0; i < 100; ++i) ledger.Add(absl::StrCat("caller", i), 1);
  EXPECT_EQ(ledger.callers(), 100u);
  for (int i = 0; i < 100; ++i) ledger.Remove(absl::StrCat("caller", i), 1);
  EXPECT_EQ(ledger.callers(), 0u);
}

class JobQuotaTest : public ::testing::Test {
 protected:
  static EngineOptions ManyJobs() {
    EngineOptions options;
    options.max_jobs = 10;
    options.max_job_bytes = 1000;
    options.max_admitted_bytes = 1000;
    return options;
  }
  // The refusal, or OK; the job stays.
  absl::Status Admit(const CallerQuotaPtr& quota, uint64_t bytes) {
    absl::StatusOr<AdmissionTicket> ticket = admission_.AdmitJob(bytes, quota);
    if (ticket.ok()) tickets_.push_back(*std::move(ticket));
    return ticket.status();
  }

  Admission admission_{ManyJobs()};
  std::vector<AdmissionTicket> tickets_;
};

TEST_F(JobQuotaTest, ACallerHasItsJobsAndNotOneMoreAndOthersAreServed) {
  const CallerQuotaPtr alice = QuotaOf({.caller = "alice", .jobs = 2});
  EXPECT_TRUE(Admit(alice, 1).ok());
  EXPECT_TRUE(Admit(alice, 1).ok());
  const absl::Status refused = Admit(alice, 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("jobs: the caller 'alice' has 2 of at most 2"),
                                       HasSubstr("--quotas-file")));
  EXPECT_EQ(ReachedBoundOf(refused)->bound, "jobs");
  EXPECT_EQ(ReachedBoundOf(refused)->caller, "alice");
  EXPECT_TRUE(ReachedBoundOf(refused)->retry_after.has_value()) << "jobs end";
  EXPECT_EQ(admission_.jobs().used, 2) << "what is refused takes nothing";
  EXPECT_TRUE(Admit(QuotaOf({.caller = "bob", .jobs = 2}), 1).ok());
  EXPECT_TRUE(Admit(nullptr, 1).ok());
  tickets_.erase(tickets_.begin());
  EXPECT_TRUE(Admit(alice, 1).ok());
}

TEST_F(JobQuotaTest, ACallerHasItsAdmittedBytesAndNotOneMore) {
  const CallerQuotaPtr alice = QuotaOf({.caller = "alice", .admitted_bytes = 100});
  EXPECT_TRUE(Admit(alice, 60).ok());
  const absl::Status refused = Admit(alice, 41);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("admitted-bytes: 41 more bytes"),
                                       HasSubstr("has 60 of at most 100")));
  EXPECT_TRUE(ReachedBoundOf(refused)->retry_after.has_value());
  EXPECT_TRUE(Admit(alice, 40).ok());
  EXPECT_EQ(admission_.share_of("alice").bytes, 100);
  tickets_.clear();
  EXPECT_EQ(admission_.share_of("alice").bytes, 0);
  const absl::Status never = Admit(alice, 101);
  EXPECT_FALSE(ReachedBoundOf(never)->retry_after.has_value()) << "it would never fit: " << never;
}

TEST_F(JobQuotaTest, ASmallerQuotaHoldsForWhatFollows) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Admit(QuotaOf({.caller = "alice", .admitted_bytes = 300}), 100).ok());
  }
  const CallerQuotaPtr less = QuotaOf({.caller = "alice", .jobs = 1, .admitted_bytes = 50});
  EXPECT_EQ(ReachedBoundOf(Admit(less, 1))->bound, "jobs");
  tickets_.pop_back();
  tickets_.pop_back();
  tickets_.pop_back();
  EXPECT_TRUE(Admit(less, 1).ok());
}

TEST_F(JobQuotaTest, BoundsOfAllSayWhetherTheyPass) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Admit(nullptr, 1).ok());
  const std::optional<ReachedBound> jobs = ReachedBoundOf(Admit(nullptr, 1));
  ASSERT_TRUE(jobs.has_value());
  EXPECT_EQ(jobs->bound, "max-jobs");
  EXPECT_FALSE(jobs->caller.has_value());
  EXPECT_TRUE(jobs->retry_after.has_value());
  const std::optional<ReachedBound> bytes = ReachedBoundOf(Admit(nullptr, 1001));
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->bound, "max-job-bytes");
  EXPECT_FALSE(bytes->retry_after.has_value());
}

class StoreQuotaTest : public StoreTest {
 protected:
  absl::Status Refusal(size_t device, uint64_t bytes, const CallerQuota& quota) {
    return store_.Reserve(device, bytes, {.owner = quota.caller}, QuotaOf(quota)).status();
  }
};

TEST_F(StoreQuotaTest, AnOwnerHasItsBytesOnAllDevicesTogether) {
  const CallerQuota alice{.caller = "alice", .store_bytes = 100};
  const StoreReservation first = Reserve(0, 60, {.owner = "alice"});
  const absl::Status refused = Refusal(1, 41, alice);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("store-bytes: 41 more bytes"),
                                       HasSubstr("the caller 'alice' has 60 of at most 100")));
  EXPECT_FALSE(ReachedBoundOf(refused)->retry_after.has_value()) << "matrices stay";
  EXPECT_TRUE(Refusal(1, 40, alice).ok());
  EXPECT_TRUE(Refusal(1, 100, {.caller = "bob", .store_bytes = 100}).ok());
}

TEST_F(StoreQuotaTest, AnOwnerHasItsMatricesAndNotOneMore) {
  const CallerQuota alice{.caller = "alice", .matrices = 1};
  Put(0, 10, {.owner = "alice"});
  EXPECT_EQ(ReachedBoundOf(Refusal(0, 1, alice))->bound, "matrices");
  EXPECT_TRUE(Refusal(0, 1, {.caller = "bob", .matrices = 1}).ok());
}

TEST_F(StoreQuotaTest, AMatrixCountsUntilItsMemoryIsFreed) {
  const CallerQuota alice{.caller = "alice", .matrices = 1};
  absl::StatusOr<MatrixPin> pin = MatrixPin();
  {
    const std::string id = Put(0, 10, {.owner = "alice"});
    pin = store_.Pin({.id = id, .caller = "alice"});
    ASSERT_TRUE(pin.ok()) << pin.status();
    EXPECT_TRUE(store_.Delete({.id = id, .caller = "alice"}).ok());
  }
  EXPECT_FALSE(Refusal(0, 1, alice).ok()) << "a job still uses it";
  pin = MatrixPin();
  EXPECT_TRUE(Refusal(0, 1, alice).ok());
  EXPECT_EQ(store_.share_of("alice").count, 0);
}

TEST_F(StoreQuotaTest, ReplicasAreTheServersOwn) {
  const StoreReservation replica = *store_.ReserveReplica(0, 500);
  EXPECT_EQ(store_.share_of("").bytes, 0);
  EXPECT_TRUE(Refusal(0, 100, {.caller = "", .store_bytes = 100}).ok());
}

// The server reads no more of a call whose caller is too fast: that delay is not the client's.
TEST(HeldBackUpload, OutlivesItsTimeout) {
  TestClock clock;
  FakeCore fake;
  const auto held_back = std::make_shared<std::atomic<bool>>(true);
  UploadSpec spec;
  spec.shape = {4, 16, gemm::DType::kF32};
  spec.held_back = held_back;
  absl::Status ended = absl::UnknownError("not ended");
  auto upload = UploadImpl::Begin(
      fake.core, spec, [&ended](absl::StatusOr<UploadResult> result) { ended = result.status(); });
  ASSERT_TRUE(upload.ok()) << upload.status();
  (*upload)->Start();
  const auto pass = [&] {
    clock.Advance(fake.core.options.upload_timeout);
    RunDue(*fake.core.timer);
  };
  pass();
  pass();
  EXPECT_TRUE(absl::IsUnknown(ended)) << ended;
  *held_back = false;
  pass();
  EXPECT_TRUE(absl::IsDeadlineExceeded(ended)) << ended;
}

}  // namespace
}  // namespace gemmd
