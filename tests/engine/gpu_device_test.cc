// The device cases on a GPU, and what only a GPU can show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gemm/catalogue.h"
#include "server/engine/device/device_kinds.h"
#include "server/engine/job/warm_up.h"
#include "tests/engine/device_suite.h"
#if GEMM_HAS_CUDA
#include <cuda_runtime_api.h>

#include "server/engine/device/cuda/cuda_stream.h"

// No event is made while this is true.
static std::atomic<bool> events_fail{false};
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's
extern "C" cudaError_t __real_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
extern "C" cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (events_fail) return cudaErrorMemoryAllocation;
  return __real_cudaEventCreateWithFlags(event, flags);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
#endif

namespace gemmd {

INSTANTIATE_TEST_SUITE_P(Gpu, DeviceSuite, ::testing::Values("cuda:0"));

namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class GpuDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (DeviceCount("cuda") == 0) GTEST_SKIP() << "skipped: no CUDA device";
    // A fresh process for each death test: a forked one cannot use CUDA.
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
};

TEST_F(GpuDeviceTest, AnArgumentThatCudaRefusesDoesNotLoseTheDevice) {
  const auto devices = CreateDevices(SmallDeviceOptions("cuda:0"));
  ASSERT_TRUE(devices.ok()) << devices.status();
  Device& device = *devices->front();
  // A destination that no device knows.
  const Pitched nowhere = {
      .data = reinterpret_cast<std::byte*>(16), .lines = 4, .line_bytes = 16, .pitch_bytes = 32};
  std::vector<std::byte> bytes(64);
  const absl::Status status = device.upload_stream().Upload(bytes.data(), nowhere, 0, 64);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuda:0: copy to the device: cudaError"));
  EXPECT_EQ(device.Health(), absl::OkStatus());
  EXPECT_EQ(Finish(device.upload_stream()), absl::OkStatus());
}

TEST_F(GpuDeviceTest, MemoryThatCannotBeHadIsNamed) {
  EngineOptions options = SmallDeviceOptions("cuda:0");
  options.device_memory_bytes = size_t{1} << 50;
  const absl::Status status = CreateDevices(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--device-memory-bytes: 1125899906842624"));
}

TEST_F(GpuDeviceTest, WarmingUpRunsTheLibrariesProductsAndKeepsNothing) {
  EngineOptions options = SmallDeviceOptions("cuda:0");
  options.device_memory_bytes = 256 * kMiB;
  const auto devices = CreateDevices(options);
  ASSERT_TRUE(devices.ok()) << devices.status();
  Device& device = *devices->front();
  // Without a failure: 4^3 shapes, 4 transposes, with a bias and without, for each of the
  // library's combinations of types.
  EXPECT_EQ(WarmUp(device) % 512, 0);
  EXPECT_GE(WarmUp(device), 8 * 512);
  EXPECT_EQ(device.Health(), absl::OkStatus());
  EXPECT_EQ(device.memory().used(), 0u);
  EXPECT_EQ(Finish(*device.compute_streams().front()), absl::OkStatus());
}

TEST_F(GpuDeviceTest, WarmingUpNeedsMemoryForItsOperands) {
  EngineOptions options = SmallDeviceOptions("cuda:0");
  options.device_memory_bytes = 64 * kMiB;
  const auto devices = CreateDevices(options);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(WarmUp(*devices->front()), 0);
}

#if GEMM_HAS_CUDA
// As the runtime has them: a lower number is a greater priority.
std::vector<int> PrioritiesOf(absl::Span<const std::unique_ptr<Stream>> streams) {
  std::vector<int> priorities;
  for (const std::unique_ptr<Stream>& stream : streams) {
    int priority = 0;
    const cudaStream_t handle = static_cast<const CudaStream&>(*stream).handle();
    EXPECT_EQ(cudaStreamGetPriority(handle, &priority), cudaSuccess);
    priorities.push_back(priority);
  }
  return priorities;
}

TEST_F(GpuDeviceTest, QuickStreamsGoFirst) {
  EngineOptions options = SmallDeviceOptions("cuda:0");
  options.quick_streams = 2;
  const auto devices = CreateDevices(options);
  ASSERT_TRUE(devices.ok()) << devices.status();
  Device& device = *devices->front();
  int least = 0, greatest = 0;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  ASSERT_LT(greatest, least) << "this GPU has priorities";
  EXPECT_THAT(PrioritiesOf(device.quick_streams()), ElementsAre(greatest, greatest));
  EXPECT_THAT(PrioritiesOf(device.compute_streams()), AllOf(Not(IsEmpty()), Each(least)));
}

// Holds a stream of a GPU up until it is opened.
class GpuGate {
 public:
  explicit GpuGate(Stream& stream) : stream_(static_cast<CudaStream&>(stream).handle()) {
    const auto stand = [](void* gate) { static_cast<GpuGate*>(gate)->open_.wait(false); };
    EXPECT_EQ(cudaLaunchHostFunc(stream_, stand, this), cudaSuccess);
  }
  ~GpuGate() {
    Open();
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  void Open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  const cudaStream_t stream_;
  std::atomic<bool> open_{false};
};

// The work before the mark runs on: nobody may believe that it has ended.
TEST_F(GpuDeviceTest, AMarkThatCannotBeMadeLosesTheDevice) {
  const auto devices = CreateDevices(SmallDeviceOptions("cuda:0"));
  ASSERT_TRUE(devices.ok()) << devices.status();
  Device& device = *devices->front();
  Stream& stream = *device.compute_streams()[0];
  GpuGate gate(stream);
  events_fail = true;
  const absl::Status told = Finish(stream);
  events_fail = false;
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(told.message()),
              AllOf(HasSubstr("device cuda:0 is lost"), HasSubstr("cudaErrorMemoryAllocation")));
  EXPECT_EQ(device.Health(), told);
  EXPECT_EQ(Finish(*device.compute_streams()[1]), told);
  EXPECT_FALSE(device.Idle());
}

// A group that its kernel takes apart, with operands drawn, of `rows` rows each.
class GroupOnGpu {
 public:
  static constexpr int64_t kProducts = 4096, kRows = 4, kSize = 16;

  explicit GroupOnGpu(Device& device) {
    const auto take = [&](int64_t lines) {
      buffers_.push_back(*device.memory().Allocate(static_cast<size_t>(lines * kSize * 4)));
      return buffers_.back().data();
    };
    operands_ = {.a = take(kProducts * kRows),
                 .lda = kSize,
                 .b = take(kProducts * kSize),
                 .ldb = kSize,
                 .d = take(kProducts * kRows),
                 .ldd = kSize,
                 .stride_b = kSize * kSize};
    Draw(*device.compute_streams()[0], 1, buffers_[0].data(), kProducts * kRows);
    Draw(*device.compute_streams()[0], 2, buffers_[1].data(), kProducts * kSize);
  }
  // D has nothing of a product.
  void Clear(Stream& stream) { Draw(stream, 3, buffers_[2].data(), kProducts * kRows); }
  absl::Status Launch(Stream& stream, gemm::LaunchPiece* piece) {
    const gemm::Kernel& kernel = **gemm::FindKernel("cublas_f32");
    return stream.Launch(kernel,
                         {.m = kProducts * kRows,
                          .n = kSize,
                          .k = kSize,
                          .grouped = gemm::GroupedBy::kM,
                          .extents = extents_},
                         operands_, {}, {}, {.piece = piece});
  }
  std::vector<std::byte> Result(Stream& stream) {
    std::vector<std::byte> result(buffers_[2].bytes());
    EXPECT_EQ(Finish(stream), absl::OkStatus());
    EXPECT_EQ(cudaMemcpy(result.data(), buffers_[2].data(), result.size(), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return result;
  }

 private:
  static void Draw(Stream& stream, uint64_t seed, void* data, int64_t rows) {
    const gemm::GeneratorTarget target = {.data = data,
                                          .type = gemm::DType::kF32,
                                          .rows = rows,
                                          .cols = kSize,
                                          .pitch_bytes = kSize * 4};
    EXPECT_EQ(stream.Generate({.seed = seed}, target), absl::OkStatus());
    EXPECT_EQ(Finish(stream), absl::OkStatus());
  }

  std::vector<int64_t> extents_ = std::vector<int64_t>(kProducts, kRows);
  std::vector<DeviceBuffer> buffers_;
  gemm::Operands operands_;
};

// A thread that enqueues more than the driver takes stands still until some has run. Here none
// does before the gate opens, so a piece that is too large never returns.
TEST_F(GpuDeviceTest, APieceOfALargeGroupIsEnqueuedWhileNothingRuns) {
  const auto devices = CreateDevices(SmallDeviceOptions("cuda:0"));
  ASSERT_TRUE(devices.ok()) << devices.status();
  Device& device = *devices->front();
  Stream& stream = *device.compute_streams()[0];
  GroupOnGpu group(device);
  ASSERT_EQ(group.Launch(stream, nullptr), absl::OkStatus());
  const std::vector<std::byte> at_once = group.Result(stream);
  group.Clear(stream);
  ASSERT_NE(group.Result(stream), at_once);

  GpuGate gate(stream);
  gemm::LaunchPiece piece;
  ASSERT_EQ(group.Launch(stream, &piece), absl::OkStatus());
  EXPECT_EQ(piece.next, gemm::kLaunchesInPiece);
  EXPECT_EQ(Finish(*device.compute_streams()[1]), absl::OkStatus()) << "others are told";
  gate.Open();
  int pieces = 1;
  for (; piece.more(); ++pieces) {
    ASSERT_EQ(Finish(stream), absl::OkStatus());
    ASSERT_EQ(group.Launch(stream, &piece), absl::OkStatus());
  }
  EXPECT_EQ(pieces, GroupOnGpu::kProducts / gemm::kLaunchesInPiece);
  EXPECT_EQ(group.Result(stream), at_once) << "the same bits";
}
#endif

// Ends the process with 0 where a device that a kernel broke behaves as it must.
[[noreturn]] void BreakADevice() {
  const auto check = [](bool holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "not so: %s\n", what);
    _exit(1);
  };
  auto devices = CreateDevices(SmallDeviceOptions("cuda:0"));
  check(devices.ok(), "a device is made");
  Device& device = *devices->front();
  const auto is_lost = [&](const absl::Status& status) {
    return status.code() == absl::StatusCode::kUnavailable &&
           status.message().find("device cuda:0 is lost: cudaError") != absl::string_view::npos;
  };

  // A matrix far outside of any memory.
  Stream& stream = *device.compute_streams()[0];
  const gemm::GeneratorTarget nowhere = {.data = reinterpret_cast<void*>(uintptr_t{1} << 45),
                                         .type = gemm::DType::kF32,
                                         .rows = 64,
                                         .cols = 64,
                                         .pitch_bytes = 256};
  check(stream.Generate({}, nowhere).ok(), "the launch itself succeeds");
  std::atomic<int> told{0};
  for (const std::unique_ptr<Stream>& other : device.compute_streams()) {
    for (int i = 0; i < 10; ++i) other->Notify([&](absl::Status) { ++told; });
  }
  check(is_lost(Finish(stream)), "the callback tells of the loss");
  check(is_lost(device.Health()), "Health tells of the loss");
  check(is_lost(Finish(*device.compute_streams()[1])), "other streams' callbacks do, too");
  check(is_lost(Finish(*device.compute_streams()[2])), "all of them");
  check(told == 30, "every callback is called once");
  check(is_lost(stream.Generate({}, nowhere)), "Generate fails at once");
  const EventPtr event = device.AcquireEvent();
  check(is_lost(stream.Record(*event)), "Record fails at once");
  check(is_lost(stream.Wait(*event)), "Wait fails at once");
  const Pitched matrix = {.data = nullptr, .lines = 1, .line_bytes = 1, .pitch_bytes = 1};
  check(is_lost(device.upload_stream().Upload(nullptr, matrix, 0, 1)), "Upload fails at once");
  check(is_lost(device.download_stream().Download(matrix, 0, 1, nullptr)),
        "Download fails at once");
  _exit(0);
}

TEST_F(GpuDeviceTest, AKernelFaultLosesTheDeviceAndEveryCallbackIsTold) {
  EXPECT_EXIT(BreakADevice(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gemmd
