// Which device a job goes to, by the work that was placed on each and the operands that it lacks.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/engine/job/job_admission.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_core.h"

namespace gemmd {
namespace {

// Two devices with streams of both kinds.
class JobPlacementTest : public ::testing::Test {
 protected:
  static constexpr Shape kTiny{16, 16, gemm::DType::kF32};
  // No quick job: of more than 256 x 256 x 256.
  static constexpr Shape kLarge{300, 300, gemm::DType::kF32};
  static constexpr Shape kLarger{320, 300, gemm::DType::kF32};

  static EngineOptions Roomy() {
    EngineOptions options = FakeCore::DefaultOptions();
    options.store_bytes = 4 * kMiB;
    return options;
  }
  OperandSpec Resident(size_t device, const Shape& shape) {
    MatrixStore& store = *fake_.core.store;
    StoreReservation room = *store.Reserve(device, shape.pitched_bytes(), {});
    const auto memory = *fake_.core.AllocateMatrix(device, shape, Lifetime::kMatrix);
    return {std::nullopt, FromResident{{.id = store.Add(std::move(room), memory)->id}, false}};
  }
  // Work that waits or runs there.
  void Place(size_t device, absl::Duration time, bool quick) {
    placed_.push_back(fake_.core.placed[device]->Add(time, quick));
  }
  size_t DeviceOf(const JobSpec& spec) {
    const absl::StatusOr<AdmittedJob> job = AdmitJob(fake_.core, spec);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->device_index : fake_.core.devices.size();
  }

  TestClock clock_;
  FakeCore fake_{Roomy(), 2, {.streams = 2, .quick_streams = 2, .memory_bytes = 8 * kMiB}};
  std::vector<PlacedWork::Share> placed_;
};

TEST_F(JobPlacementTest, ABusyDeviceSharesWithTheOtherHolder) {
  JobSpec spec;
  spec.a = Resident(0, kLarger);
  spec.b = Resident(1, kLarge);
  EXPECT_EQ(DeviceOf(spec), 0u) << "the smaller operand moves";
  Place(0, absl::Milliseconds(100), false);
  EXPECT_EQ(DeviceOf(spec), 1u);
  Place(1, absl::Milliseconds(200), false);
  EXPECT_EQ(DeviceOf(spec), 0u) << "both are busy";
}

TEST_F(JobPlacementTest, LargeJobsKeepNoQuickOneAway) {
  JobSpec spec;
  spec.a = Resident(0, kTiny);
  spec.b = Resident(1, {16, 8, gemm::DType::kF32});
  Place(0, absl::Milliseconds(100), false);
  EXPECT_EQ(DeviceOf(spec), 0u);
  Place(0, absl::Milliseconds(100), true);
  EXPECT_EQ(DeviceOf(spec), 1u);
}

TEST_F(JobPlacementTest, AJobWithoutResidentOperandsGoesWhereLessWorkIsPlaced) {
  Place(0, absl::Milliseconds(20), false);
  for (int i = 0; i < 3; ++i) Place(1, absl::Milliseconds(5), false);
  JobSpec spec;
  spec.a = {kLarge, FromPayload{}};
  spec.b = spec.a;
  EXPECT_EQ(DeviceOf(spec), 1u) << "three jobs there take less time than one on the other";
}

TEST_F(JobPlacementTest, OneResidentMatrixIsBroughtToADeviceWhereItsJobEndsSooner) {
  JobSpec spec;
  spec.a = {kLarge, FromPayload{}};
  spec.b = Resident(0, kLarge);
  EXPECT_EQ(DeviceOf(spec), 0u);
  Place(0, absl::Milliseconds(100), false);
  const absl::StatusOr<AdmittedJob> job = AdmitJob(fake_.core, spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->device_index, 1u);
  EXPECT_TRUE((*job->holdings)[Role::kB].replica);
}

// The jobs that were admitted count, whether their payload has come or not.
TEST_F(JobPlacementTest, AdmittedJobsAreWorkUntilTheyEnd) {
  JobSpec spec;
  spec.a = {kLarge, FromPayload{}};
  spec.b = spec.a;
  std::vector<AdmittedJob> jobs;
  std::vector<int> on(2);
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(*AdmitJob(fake_.core, spec));
    ++on[jobs.back().device_index];
  }
  EXPECT_EQ(on, (std::vector<int>{2, 2}));
  jobs.clear();
  EXPECT_EQ(fake_.core.placed[0]->backlog(false), absl::ZeroDuration());
}

}  // namespace
}  // namespace gemmd
