// Builds a CUDA device and takes it down in order.
#include "server/engine/device/cuda/cuda_device.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

// The share of the free memory, unless an option says otherwise. The rest is for the driver, which
// loads kernels and grows its own buffers as it runs.
constexpr double kDefaultMemoryFraction = 0.8;

}  // namespace

CudaDevice::CudaDevice(int index)
    : index_(index),
      health_(absl::StrCat("cuda:", index)),
      cuda_memory_(index, health_),
      marks_(index, cudaEventDisableTiming, health_),
      timed_events_(index, cudaEventDefault, health_) {}

absl::StatusOr<std::unique_ptr<Device>> CudaDevice::Create(int index,
                                                           const EngineOptions& options) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(index));
  if (absl::Status status = device->Describe(); !status.ok()) return status;
  // Streams and libraries come first: the memory takes a share of the rest.
  if (absl::Status status = device->CreateStreams(options); !status.ok()) return status;
  if (absl::Status status = device->TakeMemory(options); !status.ok()) return status;
  return device;
}

CudaDevice::~CudaDevice() {
  // The poller first: it runs pending work down, and its callbacks may still
  // use the streams. Then the streams, before the memory they work on.
  poller_.reset();
  quick_streams_.clear();
  compute_streams_.clear();
  upload_stream_.reset();
  download_stream_.reset();
  MutexLock lock(mutex_);
  for (const std::unique_ptr<CudaEvent>& event : events_) {
    if (event->handle().ok()) timed_events_.Recycle(*event->handle());
  }
}

absl::Status CudaDevice::Describe() {
  UseCudaDevice(index_);
  cudaDeviceProp properties{};
  absl::Status status =
      health_.Check(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
  if (!status.ok()) return status;
  info_.name = absl::StrCat("cuda:", index_);
  info_.model = properties.name;
  absl::StatusOr<gemm::Machine> machine = gemm::CudaMachine(index_);
  if (!machine.ok()) return machine.status();
  info_.machine = *std::move(machine);
  absl::StatusOr<gemm::DeviceCaps> caps = gemm::CudaCaps(index_);
  if (!caps.ok()) return caps.status();
  info_.caps = *caps;
  return absl::OkStatus();
}

absl::Status CudaDevice::CreateStreams(const EngineOptions& options) {
  constexpr int kTransferStreams = 2;
  poller_ = std::make_unique<CompletionPoller>(
      absl::StrCat(info_.name, "-done"),
      kTransferStreams + options.streams_per_device + options.quick_streams,
      options.completion_spin, probe_);
  const size_t outcomes = options.streams_per_device + options.quick_streams;
  absl::StatusOr<std::byte*> pinned =
      cuda_memory_.AllocatePinned(outcomes * sizeof(gemm::CheckOutcome));
  if (!pinned.ok()) return pinned.status();
  free_outcomes_ = new (*pinned) gemm::CheckOutcome[outcomes];
  int channel = 0;
  for (auto* transfer : {&upload_stream_, &download_stream_}) {
    absl::StatusOr<std::unique_ptr<CudaStream>> stream =
        CudaStream::Create(Context(), channel++, CudaStreamUse::kCopies, nullptr);
    if (!stream.ok()) return stream.status();
    *transfer = *std::move(stream);
  }
  absl::Status status = AddComputeStreams(options.streams_per_device, CudaStreamUse::kCompute,
                                          channel, compute_streams_);
  if (!status.ok()) return status;
  return AddComputeStreams(options.quick_streams, CudaStreamUse::kQuick, channel, quick_streams_);
}

absl::Status CudaDevice::AddComputeStreams(int count, CudaStreamUse use, int& channel,
                                           std::vector<std::unique_ptr<Stream>>& streams) {
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<std::unique_ptr<CudaStream>> stream =
        CudaStream::Create(Context(), channel++, use, free_outcomes_++);
    if (!stream.ok()) return stream.status();
    streams.push_back(*std::move(stream));
  }
  return absl::OkStatus();
}

absl::Status CudaDevice::TakeMemory(const EngineOptions& options) {
  size_t bytes = options.device_memory_bytes;
  if (bytes == 0) {
    const absl::StatusOr<CudaMemory::Available> available = cuda_memory_.Query();
    if (!available.ok()) return available.status();
    bytes =
        static_cast<size_t>(static_cast<double>(available->free_bytes) * kDefaultMemoryFraction);
  }
  const absl::StatusOr<std::byte*> memory = cuda_memory_.AllocateDevice(bytes);
  if (!memory.ok()) return memory.status();
  memory_ = std::make_unique<Arena>(*memory, bytes);
  info_.memory_bytes = memory_->capacity();

  const size_t blocks = options.staging_bytes / options.staging_block_bytes;
  for (auto* pool : {&upload_staging_, &download_staging_}) {
    const absl::StatusOr<std::byte*> staging =
        cuda_memory_.AllocatePinned(blocks * options.staging_block_bytes);
    if (!staging.ok()) return staging.status();
    *pool = std::make_unique<StagingPool>(*staging, options.staging_block_bytes, blocks);
  }
  return absl::OkStatus();
}

CudaStreamContext CudaDevice::Context() {
  return {.device = index_, .health = &health_, .marks = &marks_, .poller = poller_.get()};
}

bool CudaDevice::Idle() {
  const auto idle = [](const std::unique_ptr<Stream>& stream) {
    return static_cast<CudaStream&>(*stream).Idle();
  };
  return idle(upload_stream_) && idle(download_stream_) &&
         std::all_of(compute_streams_.begin(), compute_streams_.end(), idle) &&
         std::all_of(quick_streams_.begin(), quick_streams_.end(), idle);
}

bool CudaDevice::CanCopyFrom(const Device& other) {
  const auto* peer = dynamic_cast<const CudaDevice*>(&other);
  if (peer == nullptr || health_.lost()) return false;
  MutexLock lock(mutex_);
  const auto [known, first] = peers_.try_emplace(peer->index_, false);
  if (!first) return known->second;
  UseCudaDevice(index_);
  int possible = 0;
  if (!health_
           .Check(cudaDeviceCanAccessPeer(&possible, index_, peer->index_),
                  "cudaDeviceCanAccessPeer")
           .ok() ||
      possible == 0) {
    return false;
  }
  const cudaError_t result = cudaDeviceEnablePeerAccess(peer->index_, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled) cudaGetLastError();
  known->second = result == cudaErrorPeerAccessAlreadyEnabled ||
                  health_.Check(result, "cudaDeviceEnablePeerAccess").ok();
  return known->second;
}

EventPtr CudaDevice::AcquireEvent() {
  std::unique_ptr<CudaEvent> event;
  {
    MutexLock lock(mutex_);
    if (!events_.empty()) {
      event = std::move(events_.back());
      events_.pop_back();
    }
  }
  if (event == nullptr) event = std::make_unique<CudaEvent>(timed_events_.Acquire());
  return EventPtr(event.release(), EventRecycler{this});
}

void CudaDevice::RecycleEvent(Event* event) {
  std::unique_ptr<CudaEvent> recycled(static_cast<CudaEvent*>(event));
  if (!recycled->handle().ok()) return;
  recycled->set_recorded(false);
  MutexLock lock(mutex_);
  events_.push_back(std::move(recycled));
}

absl::Duration CudaDevice::Elapsed(const Event& from, const Event& to) {
  const CudaEvent& first = static_cast<const CudaEvent&>(from);
  const CudaEvent& last = static_cast<const CudaEvent&>(to);
  if (!first.recorded() || !last.recorded() || health_.lost()) return absl::ZeroDuration();
  UseCudaDevice(index_);
  float milliseconds = 0;
  const cudaError_t result = cudaEventElapsedTime(&milliseconds, *first.handle(), *last.handle());
  if (!health_.Check(result, "cudaEventElapsedTime").ok()) return absl::ZeroDuration();
  return absl::Milliseconds(static_cast<double>(milliseconds));
}

absl::StatusOr<bool> CudaDevice::Probe::Reached(void* mark) {
  if (device_.health_.lost()) return device_.health_.status();
  UseCudaDevice(device_.index_);
  const cudaError_t result = cudaEventQuery(static_cast<cudaEvent_t>(mark));
  if (result == cudaSuccess) return true;
  if (result == cudaErrorNotReady) return false;
  // After any error, the state of the awaited work is unknown.
  return device_.health_.Lose(result);
}

void CudaDevice::Probe::Recycle(void* mark) {
  device_.marks_.Recycle(static_cast<cudaEvent_t>(mark));
}

int CudaDeviceCount() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    // No driver, or none that fits: no devices.
    cudaGetLastError();
    return 0;
  }
  return count;
}

}  // namespace gemmd
