// Which device a job goes to, by the streams that are free for it.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/engine/job/job_admission.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_core.h"

namespace gemmd {
namespace {

// Keeps its stream.
class Holding final : public Runnable {
 public:
  void Run(StreamLease stream) override { lease_ = std::move(stream); }

 private:
  StreamLease lease_;
};

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
  void Run(size_t device, int jobs, int band) {
    for (int i = 0; i < jobs; ++i) {
      busy_.push_back(std::make_shared<Holding>());
      const StreamClaim claim{.flow = "busy", .cost = {.band = band}};
      ASSERT_TRUE(fake_.core.schedulers[device]->Submit(busy_.back(), claim).ok());
    }
  }
  size_t DeviceOf(const JobSpec& spec) {
    const absl::StatusOr<AdmittedJob> job = AdmitJob(fake_.core, spec);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->device_index : fake_.core.devices.size();
  }

  TestClock clock_;
  FakeCore fake_{Roomy(), 2, {.streams = 2, .quick_streams = 2, .memory_bytes = 8 * kMiB}};
  std::vector<std::shared_ptr<Holding>> busy_;
};

TEST_F(JobPlacementTest, ADeviceWhoseQuickStreamsAloneAreFreeIsBusyForALargeJob) {
  JobSpec spec;
  spec.a = Resident(0, kLarger);
  spec.b = Resident(1, kLarge);
  EXPECT_EQ(DeviceOf(spec), 0u) << "the smaller operand moves";
  Run(0, 2, 1);
  EXPECT_EQ(DeviceOf(spec), 1u);
  Run(1, 2, 1);
  EXPECT_EQ(DeviceOf(spec), 0u) << "both are";
}

TEST_F(JobPlacementTest, AndNotForAQuickOne) {
  JobSpec spec;
  spec.a = Resident(0, kTiny);
  spec.b = Resident(1, {16, 8, gemm::DType::kF32});
  Run(0, 2, 1);
  EXPECT_EQ(DeviceOf(spec), 0u);
  Run(0, 2, kQuickBand);
  EXPECT_EQ(DeviceOf(spec), 1u);
}

TEST_F(JobPlacementTest, ALargeJobWithoutResidentOperandsGoesWhereAStreamIsFreeForIt) {
  Run(0, 2, 1);
  Run(1, 2, kQuickBand);
  Run(1, 1, 1);
  JobSpec spec;
  spec.a = {kLarge, FromPayload{}};
  spec.b = spec.a;
  EXPECT_EQ(DeviceOf(spec), 1u) << "three jobs run there, and two on the other";
}

}  // namespace
}  // namespace gemmd
