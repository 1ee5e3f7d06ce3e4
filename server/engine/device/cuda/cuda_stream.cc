// Calls of the runtime, with errors told apart from the loss of the device.
#include "server/engine/device/cuda/cuda_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/check.h"
#include "gemm/run.h"
#include "server/engine/device/copy_plan.h"
#include "server/engine/device/cuda/cuda_device.h"

namespace gemmd {
namespace {

cudaError_t Copy(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                 const CopyRect& rect, cudaMemcpyKind kind, cudaStream_t stream) {
  if (rect.height == 1) return cudaMemcpyAsync(to, from, rect.width, kind, stream);
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, rect.width, rect.height, kind, stream);
}

// Priorities of the current device: a lower number goes first.
cudaError_t PriorityOf(CudaStreamUse use, int* priority) {
  int least = 0, greatest = 0;
  const cudaError_t result = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  *priority = use == CudaStreamUse::kQuick ? greatest : least;
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(const CudaStreamContext& context,
                                                               int channel, CudaStreamUse use,
                                                               gemm::CheckOutcome* outcome) {
  UseCudaDevice(context.device);
  int priority = 0;
  absl::Status status =
      context.health->Check(PriorityOf(use, &priority), "cudaDeviceGetStreamPriorityRange");
  if (!status.ok()) return status;
  cudaStream_t handle = nullptr;
  status =
      context.health->Check(cudaStreamCreateWithPriority(&handle, cudaStreamNonBlocking, priority),
                            "cudaStreamCreateWithPriority");
  if (!status.ok()) return status;
  std::unique_ptr<CudaStream> stream(new CudaStream(context, channel, handle, outcome));
  if (use != CudaStreamUse::kCopies) {
    absl::StatusOr<std::shared_ptr<gemm::Libraries>> libraries = gemm::CreateLibraries(handle);
    if (!libraries.ok()) return libraries.status();
    stream->libraries_ = *std::move(libraries);
  }
  return stream;
}

CudaStream::~CudaStream() {
  UseCudaDevice(context_.device);
  cudaStreamSynchronize(stream_);
  libraries_.reset();
  cudaStreamDestroy(stream_);
}

absl::Status CudaStream::Begin() const {
  if (context_.health->lost()) return context_.health->status();
  UseCudaDevice(context_.device);
  return absl::OkStatus();
}

absl::Status CudaStream::FromKernels(absl::Status status) const {
  if (status.ok()) return status;
  // A library may leave its error behind, and the next launch on this thread would
  // take it for its own.
  cudaGetLastError();
  const cudaError_t state = cudaStreamQuery(stream_);
  if (state != cudaSuccess && state != cudaErrorNotReady) {
    context_.health->Check(state, "cudaStreamQuery").IgnoreError();
  }
  return context_.health->lost() ? context_.health->status() : status;
}

absl::Status CudaStream::Upload(const std::byte* staging, const Pitched& to, size_t offset,
                                size_t bytes) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckRange(to, offset, bytes); !status.ok()) return status;
  for (const CopyRect& rect : PlanCopy(to, offset, bytes)) {
    absl::Status status = context_.health->Check(
        Copy(to.data + rect.matrix_offset, rect.matrix_pitch, staging + rect.dense_offset,
             rect.dense_pitch, rect, cudaMemcpyHostToDevice, stream_),
        "copy to the device");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CudaStream::Download(const Pitched& from, size_t offset, size_t bytes,
                                  std::byte* staging) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckRange(from, offset, bytes); !status.ok()) return status;
  for (const CopyRect& rect : PlanCopy(from, offset, bytes)) {
    absl::Status status = context_.health->Check(
        Copy(staging + rect.dense_offset, rect.dense_pitch, from.data + rect.matrix_offset,
             rect.matrix_pitch, rect, cudaMemcpyDeviceToHost, stream_),
        "copy from the device");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CudaStream::CopyFrom(const Device& device, const std::byte* from, std::byte* to,
                                  size_t bytes) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  // CanCopyFrom says so of CUDA devices alone.
  const int peer = static_cast<const CudaDevice&>(device).index();
  return context_.health->Check(
      cudaMemcpyPeerAsync(to, context_.device, from, peer, bytes, stream_),
      "copy from another device");
}

absl::Status CudaStream::CheckComputes() const {
  if (libraries_ != nullptr) return absl::OkStatus();
  return absl::InternalError("a shared stream only copies: its errors would have no owner");
}

absl::Status CudaStream::Generate(const gemm::GeneratorSpec& spec,
                                  const gemm::GeneratorTarget& target, StopFlag) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckComputes(); !status.ok()) return status;
  return FromKernels(gemm::GenerateCuda(spec, target, stream_));
}

absl::Status CudaStream::Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                                const gemm::Operands& operands, gemm::Workspace workspace,
                                const gemm::LaunchParams& params, const LaunchHow& how) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckComputes(); !status.ok()) return status;
  if (kernel.target != gemm::Target::kCuda) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", kernel.name, " does not run on a CUDA device"));
  }
  CudaEvent* const event = static_cast<CudaEvent*>(how.transposed);
  gemm::TransposeMark mark;
  if (event != nullptr && event->handle().ok()) mark.event = *event->handle();
  absl::Status status =
      FromKernels(gemm::RunProduct(kernel, {.problem = problem,
                                            .operands = operands,
                                            .workspace = workspace,
                                            .params = params,
                                            .stream = stream_,
                                            .libraries = libraries_.get(),
                                            .transposed = mark.event ? &mark : nullptr,
                                            .piece = how.piece}));
  if (mark.recorded) event->set_recorded(true);
  return status;
}

absl::Status CudaStream::Check(const gemm::Check& check) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckComputes(); !status.ok()) return status;
  return FromKernels(gemm::CheckCuda(check, outcome_, stream_));
}

absl::Status CudaStream::Finish(const gemm::Problem& problem, const gemm::Operands& operands,
                                void* accumulators) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (absl::Status status = CheckComputes(); !status.ok()) return status;
  return FromKernels(gemm::FinishCuda(problem, operands, accumulators, stream_));
}

absl::Status CudaStream::Record(Event& event) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  CudaEvent& cuda_event = static_cast<CudaEvent&>(event);
  if (!cuda_event.handle().ok()) return cuda_event.handle().status();
  absl::Status status =
      context_.health->Check(cudaEventRecord(*cuda_event.handle(), stream_), "cudaEventRecord");
  if (status.ok()) cuda_event.set_recorded(true);
  return status;
}

absl::Status CudaStream::Wait(const Event& event) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  const CudaEvent& cuda_event = static_cast<const CudaEvent&>(event);
  if (!cuda_event.recorded()) return absl::OkStatus();
  return context_.health->Check(cudaStreamWaitEvent(stream_, *cuda_event.handle(), 0),
                                "cudaStreamWaitEvent");
}

void CudaStream::Notify(CompletionCallback done, const Notice& how) {
  MutexLock lock(notify_mutex_);
  if (absl::Status status = Begin(); !status.ok()) {
    return context_.poller->PostEnded(channel_, std::move(status), std::move(done));
  }
  if (const auto* event = static_cast<const CudaEvent*>(how.last);
      event != nullptr && event->recorded()) {
    return context_.poller->PostBorrowed(channel_, *event->handle(), std::move(done), how.urgency);
  }
  const absl::StatusOr<cudaEvent_t> mark = context_.marks->Acquire();
  absl::Status status = mark.status();
  if (mark.ok()) {
    status = context_.health->Check(cudaEventRecord(*mark, stream_), "cudaEventRecord");
    if (status.ok()) return context_.poller->Post(channel_, *mark, std::move(done), how.urgency);
    context_.marks->Recycle(*mark);
  }
  // Whatever the error: `done` releases memory that the work may still use, and nobody can see when
  // that ends. The memory of a lost device is never used again.
  context_.poller->PostEnded(
      channel_,
      context_.health->Lose(absl::StrCat("the end of its work cannot be seen: ", status.message())),
      std::move(done));
}

bool CudaStream::Idle() const {
  UseCudaDevice(context_.device);
  const cudaError_t result = cudaStreamQuery(stream_);
  if (result == cudaSuccess) return true;
  cudaGetLastError();
  return result != cudaErrorNotReady;  // after an error nothing runs any more
}

}  // namespace gemmd
