// The device cases on the host device, what only the host can show, and the
// choice of devices.
#include "server/engine/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/kernel.h"
#include "server/engine/device/device_kinds.h"
#include "tests/engine/device_suite.h"

namespace gemmd {

INSTANTIATE_TEST_SUITE_P(Host, DeviceSuite, ::testing::Values("host"));

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A kernel that holds its stream up until told to go on, so that a case knows
// what has not run yet. Outlives its launch.
class Gate {
 public:
  static absl::Status Hold(const gemm::Launch& launch) {
    return static_cast<Gate*>(launch.operands.d)->Pass();
  }
  absl::Status CloseOn(Stream& stream) { return stream.Launch(kKernel, {}, {.d = this}, {}, {}); }
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  static constexpr gemm::Kernel kKernel = {
      .name = "gate", .target = gemm::Target::kHost, .launch = Hold};

  absl::Status Pass() {
    MutexLock lock(mutex_);
    while (!open_) changed_.Wait(mutex_);
    return absl::OkStatus();
  }

  Mutex mutex_;
  CondVar changed_;
  bool open_ = false;
};

class HostDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto devices = CreateDevices(SmallDeviceOptions("host"));
    ASSERT_TRUE(devices.ok()) << devices.status();
    device_ = std::move(devices->front());
  }
  Stream& compute(int i) { return *device_->compute_streams()[i]; }

  std::unique_ptr<Device> device_;
};

TEST_F(HostDeviceTest, StreamsRunBesideEachOther) {
  Gate gate;
  ASSERT_EQ(gate.CloseOn(compute(0)), absl::OkStatus());
  EXPECT_EQ(Finish(compute(1)), absl::OkStatus());
  EXPECT_EQ(Finish(device_->upload_stream()), absl::OkStatus());
  gate.Open();
  EXPECT_EQ(Finish(compute(0)), absl::OkStatus());
}

TEST_F(HostDeviceTest, AWaitHoldsUntilTheEventIsReached) {
  Gate gate;
  const EventPtr event = device_->AcquireEvent();
  std::atomic<bool> passed{false};
  ASSERT_EQ(gate.CloseOn(compute(0)), absl::OkStatus());
  ASSERT_EQ(compute(0).Record(*event), absl::OkStatus());
  ASSERT_EQ(compute(1).Wait(*event), absl::OkStatus());
  compute(1).Notify([&](absl::Status) { passed = true; });
  EXPECT_EQ(Finish(compute(2)), absl::OkStatus());
  EXPECT_FALSE(passed);
  EXPECT_EQ(device_->Elapsed(*event, *event), absl::ZeroDuration());
  gate.Open();
  EXPECT_EQ(Finish(compute(1)), absl::OkStatus());
  EXPECT_TRUE(passed);
}

TEST_F(HostDeviceTest, AWaitMeansTheRecordBeforeIt) {
  Gate gate;
  const EventPtr event = device_->AcquireEvent();
  ASSERT_EQ(compute(0).Record(*event), absl::OkStatus());
  ASSERT_EQ(compute(1).Wait(*event), absl::OkStatus());
  ASSERT_EQ(gate.CloseOn(compute(0)), absl::OkStatus());
  // Recorded again behind the gate: the wait above does not see it.
  ASSERT_EQ(compute(0).Record(*event), absl::OkStatus());
  EXPECT_EQ(Finish(compute(1)), absl::OkStatus());
  gate.Open();
  EXPECT_EQ(Finish(compute(0)), absl::OkStatus());
}

TEST_F(HostDeviceTest, AWaitOutlivesItsEvent) {
  Gate gate;
  std::atomic<bool> passed{false};
  {
    const EventPtr event = device_->AcquireEvent();
    ASSERT_EQ(gate.CloseOn(compute(0)), absl::OkStatus());
    ASSERT_EQ(compute(0).Record(*event), absl::OkStatus());
    ASSERT_EQ(compute(1).Wait(*event), absl::OkStatus());
  }
  compute(1).Notify([&](absl::Status) { passed = true; });
  EXPECT_EQ(Finish(compute(2)), absl::OkStatus());
  EXPECT_FALSE(passed);
  gate.Open();
  EXPECT_EQ(Finish(compute(1)), absl::OkStatus());
}

absl::Status FailWithNumber(const gemm::Launch& launch) {
  return absl::InternalError("failure " + std::to_string(launch.params[0]));
}

TEST_F(HostDeviceTest, TheNextNotifyTellsOfTheFirstFailedKernel) {
  constexpr gemm::Kernel kFailing = {
      .name = "failing", .target = gemm::Target::kHost, .launch = FailWithNumber};
  Gate gate;
  ASSERT_EQ(gate.CloseOn(compute(0)), absl::OkStatus());
  Mutex mutex;
  std::vector<std::string> told;
  const auto tell = [&](absl::Status status) {
    MutexLock lock(mutex);
    told.push_back(std::string(status.message()));
  };
  EXPECT_EQ(compute(0).Launch(kFailing, {}, {}, {}, {1}), absl::OkStatus());
  EXPECT_EQ(compute(0).Launch(kFailing, {}, {}, {}, {2}), absl::OkStatus());
  compute(0).Notify(tell);
  compute(0).Notify(tell);
  EXPECT_EQ(compute(0).Launch(kFailing, {}, {}, {}, {3}), absl::OkStatus());
  compute(0).Notify(tell);
  gate.Open();
  EXPECT_EQ(Finish(compute(0)), absl::OkStatus());
  MutexLock lock(mutex);
  EXPECT_THAT(told, ElementsAre("failure 1", "", "failure 3"));
}

// Runs until it is stopped.
absl::Status Endless(const gemm::Launch& launch) {
  if (launch.stop == nullptr) return absl::InternalError("nobody can stop it");
  launch.stop->wait(false);
  return gemm::Stopped();
}

TEST_F(HostDeviceTest, AKernelIsStoppedWhileItRunsAndItsNotifyTellsOfThat) {
  constexpr gemm::Kernel kEndless = {
      .name = "endless", .target = gemm::Target::kHost, .launch = Endless};
  auto stop = std::make_shared<std::atomic<bool>>(false);
  EXPECT_EQ(compute(0).Launch(kEndless, {}, {}, {}, {}, {.stop = stop}), absl::OkStatus());
  *stop = true;
  stop->notify_all();
  EXPECT_EQ(Finish(compute(0)), gemm::Stopped());
  EXPECT_EQ(Finish(compute(0)), absl::OkStatus()) << "what comes next is not stopped";
}

TEST_F(HostDeviceTest, AGeneratorOfAnUnsupportedTypeIsRefusedAtOnce) {
  const gemm::GeneratorTarget target = {
      .data = this, .type = gemm::DType::kS32, .rows = 1, .cols = 1, .pitch_bytes = 16};
  EXPECT_EQ(compute(0).Generate({}, target).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Finish(compute(0)), absl::OkStatus());
}

TEST(CreateDevices, MakesAsManyHostDevicesAsAskedFor) {
  const auto devices = CreateDevices(SmallDeviceOptions("host:4"));
  ASSERT_TRUE(devices.ok()) << devices.status();
  std::vector<std::string> names;
  for (const std::unique_ptr<Device>& device : *devices) {
    names.push_back(device->info().name);
    EXPECT_EQ(Finish(device->upload_stream()), absl::OkStatus());
  }
  EXPECT_THAT(names, ElementsAre("host:0", "host:1", "host:2", "host:3"));
}

TEST(CreateDevices, AutoIsTheHostWhereThereIsNoGpu) {
  if (DeviceCount("cuda") > 0) GTEST_SKIP() << "a CUDA device is present";
  const auto devices = CreateDevices(SmallDeviceOptions("auto"));
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ(devices->front()->info().name, "host:0");
}

TEST(CreateDevices, DefaultsToTwoGibibytesOnTheHost) {
  EngineOptions options = SmallDeviceOptions("host");
  options.device_memory_bytes = 0;
  const auto devices = CreateDevices(options);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->front()->info().memory_bytes, 2 * kGiB);
}

TEST(CreateDevices, MemoryThatCannotBeMappedIsNamed) {
  EngineOptions options = SmallDeviceOptions("host");
  options.device_memory_bytes = size_t{1} << 60;
  const absl::Status status = CreateDevices(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1152921504606846976"));
}

// The server's kinds, on a machine with `count` devices of the first.
template <int count>
std::vector<DeviceKind> Kinds() {
  std::vector<DeviceKind> kinds(DeviceKinds().begin(), DeviceKinds().end());
  kinds[0].count = [] { return count; };
  return kinds;
}

// "cuda:0,1", or the message.
template <int count>
std::string Parsed(absl::string_view text) {
  const std::vector<DeviceKind> kinds = Kinds<count>();
  const absl::StatusOr<DeviceSpec> spec = ParseDeviceSpec(text, kinds);
  if (!spec.ok()) return std::string(spec.status().message());
  return absl::StrCat(spec->kind->name, ":", absl::StrJoin(spec->indices, ","));
}

TEST(ParseDeviceSpec, TakesEveryForm) {
  EXPECT_EQ(Parsed<2>("auto"), "cuda:0,1");
  EXPECT_EQ(Parsed<0>("auto"), "host:0");
  EXPECT_EQ(Parsed<3>("cuda"), "cuda:0,1,2");
  EXPECT_EQ(Parsed<3>("cuda:2,0"), "cuda:2,0");
  EXPECT_EQ(Parsed<3>("host"), "host:0");
  EXPECT_EQ(Parsed<3>("host:4"), "host:0,1,2,3");
  EXPECT_EQ(ParseDeviceSpec("host:64", DeviceKinds())->indices.size(), 64);
}

TEST(ParseDeviceSpec, RefusesAnythingElseByName) {
  const std::vector<DeviceKind> kinds = Kinds<8>();
  for (const std::string spec : {"",
                                 "gpu",
                                 "cuda:",
                                 "cuda:x",
                                 "cuda:-1",
                                 "cuda:0,",
                                 "cuda:,1",
                                 "cuda: 0",
                                 "cuda:+1",
                                 "cuda:0,1,0",
                                 "cuda:99999999999",
                                 "host:",
                                 "host:0",
                                 "host:65",
                                 "host:-2",
                                 "host:1.5",
                                 "Host",
                                 "host ",
                                 "auto:1",
                                 "cuda,host"}) {
    const absl::Status status = ParseDeviceSpec(spec, kinds).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--devices: '" + spec + "'"));
  }
  EXPECT_THAT(Parsed<8>("cuda:0,1,0"), HasSubstr("device 0 is named twice"));
  EXPECT_THAT(Parsed<8>("gpu"),
              HasSubstr("allowed: auto, cuda, cuda:LIST (such as cuda:0,1), host or host:COUNT"));
}

TEST(ParseDeviceSpec, AnAbsentDeviceIsAnsweredWithThosePresent) {
  absl::Status status = ParseDeviceSpec("cuda:0,5", Kinds<2>()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no cuda:5"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("present: cuda:0, cuda:1"));
  status = ParseDeviceSpec("cuda", Kinds<0>()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("present: none"));
}

TEST(CheckDeviceOptions, NamesTheOptionItsValueAndTheBound) {
  const auto message = [](const EngineOptions& options) {
    const absl::Status status = CheckDeviceOptions(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(CheckDeviceOptions({}), absl::OkStatus());
  EXPECT_EQ(message({.streams_per_device = 0}), "--streams-per-device is 0, but must be 1 to 128");
  EXPECT_EQ(message({.device_memory_bytes = 100}),
            "--device-memory-bytes is 100, but must be 0 or at least 512");
  EXPECT_EQ(message({.staging_block_bytes = 1000}),
            "--staging-block-bytes is 1000, but must be a multiple of 64 above 0");
  EXPECT_EQ(message({.staging_bytes = 64, .staging_block_bytes = 128}),
            "--staging-bytes is 64, but must be at least one block (--staging-block-bytes=128)");
}

}  // namespace
}  // namespace gemmd
