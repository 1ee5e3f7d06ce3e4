// Builds a host device, and keeps its events.
#include "server/engine/device/host/host_device.h"

#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gemm/machine.h"
#include "server/base/cgroup.h"

namespace gemmd {
namespace {

constexpr size_t kDefaultMemoryBytes = 2 * kGiB;

}  // namespace

absl::StatusOr<HostMapping> HostMapping::Create(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("host memory: ", bytes, " bytes could not be mapped: ", strerror(errno)));
  }
  return HostMapping(static_cast<std::byte*>(data), bytes);
}

HostMapping& HostMapping::operator=(HostMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostMapping::~HostMapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

absl::StatusOr<std::unique_ptr<Device>> HostDevice::Create(int index,
                                                           const EngineOptions& options) {
  const std::string name = absl::StrCat("host:", index);
  std::unique_ptr<HostDevice> device(new HostDevice(name));
  const size_t memory_bytes =
      options.device_memory_bytes != 0 ? options.device_memory_bytes : kDefaultMemoryBytes;
  const size_t block_bytes = options.staging_block_bytes;
  const size_t blocks = options.staging_bytes / block_bytes;

  absl::StatusOr<std::byte*> memory = device->Map(memory_bytes);
  if (!memory.ok()) return memory.status();
  device->memory_ = std::make_unique<Arena>(*memory, memory_bytes);
  for (auto* pool : {&device->upload_staging_, &device->download_staging_}) {
    absl::StatusOr<std::byte*> staging = device->Map(blocks * block_bytes);
    if (!staging.ok()) return staging.status();
    *pool = std::make_unique<StagingPool>(*staging, block_bytes, blocks);
  }

  const gemm::Machine machine = gemm::HostMachine();
  device->info_ = {.name = name,
                   .model = machine.device,
                   .machine = machine,
                   .caps = {.target = gemm::Target::kHost},
                   .memory_bytes = device->memory_->capacity()};
  device->completions_ = std::make_unique<CompletionQueue>(absl::StrCat(name, "-done"));
  CompletionQueue& completions = *device->completions_;
  const auto stream = [&](const std::string& suffix, HostStream::Use use) {
    return std::make_unique<HostStream>(name + suffix, use, completions, device->health_);
  };
  device->upload_stream_ = stream("-up", HostStream::Use::kCopies);
  device->download_stream_ = stream("-down", HostStream::Use::kCopies);
  for (int i = 0; i < options.streams_per_device; ++i) {
    device->compute_streams_.push_back(stream(absl::StrCat("-", i), HostStream::Use::kCompute));
  }
  for (int i = 0; i < options.quick_streams; ++i) {
    device->quick_streams_.push_back(stream(absl::StrCat("-q", i), HostStream::Use::kQuick));
  }
  return device;
}

HostDevice::~HostDevice() {
  // Streams before the completion thread they post to, and both before the
  // memory they work on. A stream that waits for another's event gets it: each
  // runs its queue down before its thread ends.
  quick_streams_.clear();
  compute_streams_.clear();
  upload_stream_.reset();
  download_stream_.reset();
  completions_.reset();
}

absl::StatusOr<std::byte*> HostDevice::Map(size_t bytes) {
  absl::StatusOr<HostMapping> mapping = HostMapping::Create(bytes);
  if (!mapping.ok()) return mapping.status();
  mappings_.push_back(*std::move(mapping));
  return mappings_.back().data();
}

void HostDevice::Lose(absl::string_view why) {
  health_.Lose(why).IgnoreError();
  const auto tell = [](Stream& stream) { static_cast<HostStream&>(stream).TellOfLoss(); };
  tell(*upload_stream_);
  tell(*download_stream_);
  for (const std::unique_ptr<Stream>& stream : compute_streams_) tell(*stream);
  for (const std::unique_ptr<Stream>& stream : quick_streams_) tell(*stream);
}

bool HostDevice::Idle() {
  const auto idle = [](const std::unique_ptr<Stream>& stream) {
    return static_cast<HostStream&>(*stream).Idle();
  };
  return idle(upload_stream_) && idle(download_stream_) &&
         std::all_of(compute_streams_.begin(), compute_streams_.end(), idle) &&
         std::all_of(quick_streams_.begin(), quick_streams_.end(), idle);
}

EventPtr HostDevice::AcquireEvent() {
  std::unique_ptr<HostEvent> event;
  {
    MutexLock lock(mutex_);
    if (!events_.empty()) {
      event = std::move(events_.back());
      events_.pop_back();
    }
  }
  if (event == nullptr) event = std::make_unique<HostEvent>();
  return EventPtr(event.release(), EventRecycler{this});
}

void HostDevice::RecycleEvent(Event* event) {
  std::unique_ptr<HostEvent> recycled(static_cast<HostEvent*>(event));
  recycled->set_mark(nullptr);
  MutexLock lock(mutex_);
  events_.push_back(std::move(recycled));
}

absl::Duration HostDevice::Elapsed(const Event& from, const Event& to) {
  const auto first = static_cast<const HostEvent&>(from).mark();
  const auto last = static_cast<const HostEvent&>(to).mark();
  if (first == nullptr || last == nullptr || !first->reached() || !last->reached()) {
    return absl::ZeroDuration();
  }
  return absl::FromChrono(last->time() - first->time());
}

void ShareHostCores(int devices, const EngineOptions& options) {
  // The operator may know better.
  if (std::getenv("OPENBLAS_NUM_THREADS") != nullptr) return;
  // Not the quick streams: a job of theirs is short, and would cost every large one its cores.
  const int streams = devices * options.streams_per_device;
  openblas_set_num_threads(std::max(1, CpusToUse() / std::max(1, streams)));
}

}  // namespace gemmd
