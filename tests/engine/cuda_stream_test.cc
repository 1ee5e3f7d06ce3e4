// A stream of a CUDA device whose marks fail. The runtime is the test's own: the program is linked
// so that its calls come here (CMakeLists.txt). It needs no GPU.
#include "server/engine/device/cuda/cuda_stream.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {
namespace {

// The status that calls return, and the number of events.
struct FakeRuntime {
  cudaError_t create_event = cudaSuccess;
  cudaError_t record_event = cudaSuccess;
  int events = 0;
} runtime;

}  // namespace
}  // namespace gemmd

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's
extern "C" {
cudaError_t __wrap_cudaSetDevice(int) { return cudaSuccess; }
cudaError_t __wrap_cudaGetLastError() { return cudaSuccess; }
cudaError_t __wrap_cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t __wrap_cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (gemmd::runtime.create_event != cudaSuccess) return gemmd::runtime.create_event;
  *event = reinterpret_cast<cudaEvent_t>(static_cast<uintptr_t>(++gemmd::runtime.events));
  return cudaSuccess;
}
cudaError_t __wrap_cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return gemmd::runtime.record_event;
}
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t) {
  --gemmd::runtime.events;
  return cudaSuccess;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CudaStreamTest : public ::testing::Test {
 protected:
  // All that was recorded is reached at once.
  class Probe final : public CompletionProbe {
   public:
    explicit Probe(CudaEventPool& marks) : marks_(marks) {}
    absl::StatusOr<bool> Reached(void*) override { return true; }
    void Recycle(void* mark) override { marks_.Recycle(static_cast<cudaEvent_t>(mark)); }

   private:
    CudaEventPool& marks_;
  };

  CudaStreamTest() {
    runtime = FakeRuntime();
    auto stream =
        CudaStream::Create({.device = 0, .health = &health_, .marks = &marks_, .poller = &poller_},
                           0, CudaStreamUse::kCopies, nullptr);
    EXPECT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
  }

  absl::Status Finish() {
    Mutex mutex;
    CondVar changed;
    bool called = false;
    absl::Status status;
    stream_->Notify(
        [&](absl::Status ended) {
          MutexLock lock(mutex);
          status = std::move(ended);
          called = true;
          changed.NotifyOne();
        },
        {});
    MutexLock lock(mutex);
    while (!called) changed.Wait(mutex);
    return status;
  }
  // Nobody saw the work end, so its memory must not be used again.
  void ExpectLostBy(const char* call, const char* error) {
    const absl::Status told = Finish();
    EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(told.message()),
                AllOf(HasSubstr("device cuda:0 is lost"), HasSubstr(call), HasSubstr(error)));
    EXPECT_EQ(health_.status(), told);
    EXPECT_EQ(Finish(), told);
  }

  CudaHealth health_{"cuda:0"};
  CudaEventPool marks_{0, cudaEventDisableTiming, health_};
  Probe probe_{marks_};
  CompletionPoller poller_{"test-done", 1, absl::ZeroDuration(), probe_};
  std::unique_ptr<CudaStream> stream_;
};

TEST_F(CudaStreamTest, AMarkTellsOfTheEnd) {
  EXPECT_EQ(Finish(), absl::OkStatus());
  EXPECT_EQ(Finish(), absl::OkStatus());
  EXPECT_EQ(health_.status(), absl::OkStatus());
  EXPECT_EQ(runtime.events, 1) << "the mark is used again";
}

TEST_F(CudaStreamTest, AMarkThatCannotBeMadeLosesTheDevice) {
  runtime.create_event = cudaErrorMemoryAllocation;
  ExpectLostBy("cudaEventCreateWithFlags", "cudaErrorMemoryAllocation");
}

TEST_F(CudaStreamTest, AMarkThatCannotBeRecordedLosesTheDevice) {
  runtime.record_event = cudaErrorInvalidResourceHandle;
  ExpectLostBy("cudaEventRecord", "cudaErrorInvalidResourceHandle");
}

}  // namespace
}  // namespace gemmd
