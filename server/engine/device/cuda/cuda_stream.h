// A stream of a CUDA device.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/libraries.h"
#include "server/base/mutex.h"
#include "server/engine/device/completion_poller.h"
#include "server/engine/device/cuda/cuda_events.h"
#include "server/engine/device/cuda/cuda_status.h"
#include "server/engine/device/device.h"

namespace gemmd {

// The state that the streams of one device share. All of it must outlive them.
struct CudaStreamContext {
  int device = 0;
  CudaHealth* health = nullptr;
  CudaEventPool* marks = nullptr;  // without timing, for Notify
  CompletionPoller* poller = nullptr;
};

enum class CudaStreamUse : uint8_t {
  kCopies,
  kCompute,
  kQuick,  // computes, before the blocks of other streams that wait for an SM
};

class CudaStream final : public Stream {
 public:
  // `channel`: this stream's channel of the poller. `outcome`: pinned memory for what its checks
  // find; null for a stream that only copies.
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(const CudaStreamContext& context,
                                                            int channel, CudaStreamUse use,
                                                            gemm::CheckOutcome* outcome);
  // Waits for the work enqueued so far.
  ~CudaStream() override;

  absl::Status Upload(const std::byte* staging, const Pitched& to, size_t offset,
                      size_t bytes) override;
  absl::Status Download(const Pitched& from, size_t offset, size_t bytes,
                        std::byte* staging) override;
  absl::Status CopyFrom(const Device& device, const std::byte* from, std::byte* to,
                        size_t bytes) override;
  absl::Status Generate(const gemm::GeneratorSpec& spec, const gemm::GeneratorTarget& target,
                        StopFlag) override;
  absl::Status Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                      const gemm::Operands& operands, gemm::Workspace workspace,
                      const gemm::LaunchParams& params, const LaunchHow& how) override;
  absl::Status Check(const gemm::Check& check) override;
  gemm::CheckOutcome check_outcome() const override { return *outcome_; }
  absl::Status Finish(const gemm::Problem& problem, const gemm::Operands& operands,
                      void* accumulators) override;
  absl::Status Record(Event& event) override;
  absl::Status Wait(const Event& event) override;
  void Notify(CompletionCallback done, const Notice& how) override;

  // Whether all that was enqueued has ended. Also of a lost device.
  bool Idle() const;

  // The runtime's own, borrowed.
  cudaStream_t handle() const { return stream_; }

 private:
  CudaStream(const CudaStreamContext& context, int channel, cudaStream_t stream,
             gemm::CheckOutcome* outcome)
      : context_(context), channel_(channel), stream_(stream), outcome_(outcome) {}

  // Makes the device current; UNAVAILABLE where it is lost.
  absl::Status Begin() const;
  absl::Status CheckComputes() const;
  // The kernel library's status of work that it enqueued, or the loss of the device.
  absl::Status FromKernels(absl::Status status) const;

  const CudaStreamContext context_;
  const int channel_;
  const cudaStream_t stream_;
  gemm::CheckOutcome* const outcome_;
  std::shared_ptr<gemm::Libraries> libraries_;
  // Held so that marks reach the poller in the order in which they were recorded.
  Mutex notify_mutex_;
};

}  // namespace gemmd
