// Jobs of several callers with one resident matrix: every device does its part of them.
#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

class EnginePlacementTest : public EngineTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    EngineOptions options = SmallOptions();
    options.devices = absl::StrCat("host:", GetParam());
    Make(options);
    UploadSpec spec;
    spec.shape = {kSize, kSize, gemm::DType::kF32};
    spec.generator = {.seed = 7, .low_or_mean = -1, .high_or_stddev = 1};
    spec.device = "host:0";
    UploadRecorder recorder;
    auto upload = *engine_->BeginUpload(spec, recorder.done());
    upload->Start();
    id_ = recorder.Wait()->matrix.id;
  }

  // By a kernel that is slow, so that callers wait for each other.
  absl::StatusOr<JobResult> Multiply(uint64_t seed, std::vector<std::byte>* bytes) {
    JobSpec spec = DrawnProduct(kSize, kSize, kSize);
    spec.a.source = FromGenerator{{.seed = seed, .low_or_mean = -1, .high_or_stddev = 1}};
    spec.b = {std::nullopt, FromResident{{id_, ""}}};
    spec.kernel.name = "host_reference";
    const auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(spec, recorder);
    if (!job.ok()) return job.status();
    (*job)->Start();
    absl::StatusOr<JobResult> result = recorder->Wait();
    *bytes = recorder->bytes();
    return result;
  }

  static constexpr int64_t kSize = 300;
  std::string id_;
};

TEST_P(EnginePlacementTest, EveryDeviceTakesItsShareOfOneResidentMatrixsJobs) {
  constexpr int kCallers = 12, kRuns = 8, kSeeds = 4;
  std::vector<std::vector<std::byte>> alone(kSeeds);
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto result = Multiply(seed, &alone[seed]);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->report.device, "host:0") << "nobody else is there";
  }
  std::atomic<int> failed = 0, wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int run = 0; run < kRuns; ++run) {
        const int seed = (caller + run) % kSeeds;
        std::vector<std::byte> bytes;
        failed += !Multiply(seed, &bytes).ok();
        wrong += bytes != alone[seed];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0) << "bits differ from those of the product alone";
  const EngineStats stats = engine_->Stats();
  for (size_t i = 0; i < stats.devices.size(); ++i) {
    // A third of an equal share at least: the machine does other work, too.
    EXPECT_GE(stats.devices[i].jobs_begun, kCallers * kRuns / GetParam() / 3) << "host:" << i;
    EXPECT_EQ(stats.devices[i].replicas.begun_host, i == 0 ? 0 : 1) << "host:" << i;
  }
  ASSERT_TRUE(engine_->DeleteMatrix({.id = id_}).ok());
  for (const DeviceStats& device : engine_->Stats().devices) {
    EXPECT_EQ(device.replicas.bytes, 0) << "the copies go with their matrix";
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, EnginePlacementTest, ::testing::Values(2, 4));

}  // namespace
}  // namespace gemmd
