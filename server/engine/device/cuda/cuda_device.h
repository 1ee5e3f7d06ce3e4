// A CUDA device: one allocation of its memory, a pool of streams, and one completion
// thread.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/engine/device/completion_poller.h"
#include "server/engine/device/cuda/cuda_events.h"
#include "server/engine/device/cuda/cuda_memory.h"
#include "server/engine/device/cuda/cuda_status.h"
#include "server/engine/device/cuda/cuda_stream.h"
#include "server/engine/device/device.h"

namespace gemmd {

class CudaDevice final : public Device {
 public:
  // INTERNAL for a failure of the runtime, RESOURCE_EXHAUSTED if there is not enough
  // memory. CheckDeviceOptions must accept `options`.
  static absl::StatusOr<std::unique_ptr<Device>> Create(int index, const EngineOptions& options);
  // Waits for pending work and its callbacks.
  ~CudaDevice() override;

  int index() const { return index_; }

  bool CanCopyFrom(const Device& other) override;
  EventPtr AcquireEvent() override;
  absl::Duration Elapsed(const Event& from, const Event& to) override;
  void Execute(absl::AnyInvocable<void()> function) override {
    poller_->Execute(std::move(function));
  }
  bool CompletionThreadIsBusy() override { return poller_->IsBusy(); }
  absl::Status Health() const override { return health_.status(); }
  // The completion thread tells all that waits, on its next look.
  void Lose(absl::string_view why) override { health_.Lose(why).IgnoreError(); }
  bool Idle() override;
  int64_t driver_allocations() const override { return cuda_memory_.driver_allocations(); }

 private:
  // Queries whether marks, which are CUDA events, were reached.
  class Probe final : public CompletionProbe {
   public:
    explicit Probe(CudaDevice& device) : device_(device) {}
    absl::StatusOr<bool> Reached(void* mark) override;
    void Recycle(void* mark) override;

   private:
    CudaDevice& device_;
  };

  explicit CudaDevice(int index);
  absl::Status Describe();
  CudaStreamContext Context();
  absl::Status CreateStreams(const EngineOptions& options);
  // Adds `count` streams to `streams`, on the channels from `channel` on.
  absl::Status AddComputeStreams(int count, CudaStreamUse use, int& channel,
                                 std::vector<std::unique_ptr<Stream>>& streams);
  absl::Status TakeMemory(const EngineOptions& options);
  void RecycleEvent(Event* event) override;

  const int index_;
  CudaHealth health_;
  CudaMemory cuda_memory_;
  CudaEventPool marks_;
  CudaEventPool timed_events_;
  Probe probe_{*this};
  gemm::CheckOutcome* free_outcomes_ = nullptr;  // pinned; for the streams still to be created
  std::unique_ptr<CompletionPoller> poller_;
  Mutex mutex_;
  std::vector<std::unique_ptr<CudaEvent>> events_ ABSL_GUARDED_BY(mutex_);  // recycled
  std::map<int, bool> peers_ ABSL_GUARDED_BY(mutex_);  // by index: what CUDA said
};

// 0 on a machine without a GPU, or without a driver that fits.
int CudaDeviceCount();

}  // namespace gemmd
