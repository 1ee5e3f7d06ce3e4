#include "tests/engine/faulty_device.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gemm/dtype.h"
#include "server/base/clock.h"
#include "server/engine/device/device_kinds.h"
#include "server/engine/device/host/host_device.h"
#if GEMM_HAS_CUDA
#include "server/engine/device/cuda/cuda_device.h"
#include "tests/engine/broken_kernels.h"
#endif

namespace gemmd {

// A stream of a FaultyDevice. Notify reports the error of a kernel, and passes everything else on.
class FaultyStream final : public Stream {
 public:
  FaultyStream(FaultyDevice& device, Stream& inner) : device_(device), inner_(inner) {}

  absl::Status Upload(const std::byte* staging, const Pitched& to, size_t offset,
                      size_t bytes) override {
    absl::Status status = Suffer(device_.Strike(Operation::kUpload));
    return status.ok() ? inner_.Upload(staging, to, offset, bytes) : status;
  }
  absl::Status Download(const Pitched& from, size_t offset, size_t bytes,
                        std::byte* staging) override {
    absl::Status status = Suffer(device_.Strike(Operation::kDownload));
    return status.ok() ? inner_.Download(from, offset, bytes, staging) : status;
  }
  absl::Status CopyFrom(const Device&, const std::byte* from, std::byte* to,
                        size_t bytes) override {
    absl::Status status = Suffer(device_.Strike(Operation::kPeerCopy));
    if (!status.ok()) return status;
    const auto line = static_cast<int64_t>(bytes);
    return inner_.Upload(from, {.data = to, .lines = 1, .line_bytes = line, .pitch_bytes = line}, 0,
                         bytes);
  }
  absl::Status Generate(const gemm::GeneratorSpec& spec, const gemm::GeneratorTarget& target,
                        StopFlag stop) override {
    absl::Status status = Suffer(device_.Strike(Operation::kGenerate));
    return status.ok() ? inner_.Generate(spec, target, std::move(stop)) : status;
  }
  absl::Status Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                      const gemm::Operands& operands, gemm::Workspace workspace,
                      const gemm::LaunchParams& params, const LaunchHow& how) override;
  absl::Status Check(const gemm::Check& check) override {
    absl::Status status = Suffer(device_.Strike(Operation::kCheck));
    return status.ok() ? inner_.Check(check) : status;
  }
  gemm::CheckOutcome check_outcome() const override { return inner_.check_outcome(); }
  absl::Status Finish(const gemm::Problem& problem, const gemm::Operands& operands,
                      void* accumulators) override {
    return inner_.Finish(problem, operands, accumulators);
  }
  absl::Status Record(Event& event) override {
    absl::Status status = Suffer(device_.Strike(Operation::kRecord));
    return status.ok() ? inner_.Record(event) : status;
  }
  absl::Status Wait(const Event& event) override { return inner_.Wait(event); }
  void Notify(absl::AnyInvocable<void(absl::Status)> done, const Notice& how) override;

 private:
  // The effect on the stream before the operation. Not OK: the operation is not done.
  absl::Status Suffer(const std::optional<Injection>& injection);

  FaultyDevice& device_;
  Stream& inner_;
  Mutex mutex_;
  absl::Status late_ ABSL_GUARDED_BY(mutex_);  // for the next Notify
  int hung_ ABSL_GUARDED_BY(mutex_) = 0;       // operations since the last Notify
};

namespace {

// Flips one bit of D.
void FlipBit(uint64_t bit, const gemm::Problem& problem, const gemm::Operands& operands) {
  const auto element_bytes = static_cast<uint64_t>(gemm::SizeOf(problem.types.d));
  const uint64_t element = bit / (8 * element_bytes) % static_cast<uint64_t>(problem.m * problem.n);
  const uint64_t row = element / problem.n, column = element % problem.n;
  auto* const bytes = static_cast<std::byte*>(operands.d) +
                      (row * operands.ldd + column) * element_bytes + bit / 8 % element_bytes;
  *bytes ^= std::byte{1} << bit % 8;
}

}  // namespace

absl::Status FaultyStream::Suffer(const std::optional<Injection>& injection) {
  if (!injection.has_value()) return absl::OkStatus();
  switch (injection->fault) {
    case Fault::kSlow:
      device_.Hold(inner_, injection->delay);
      return absl::OkStatus();
    case Fault::kRefused:
      return absl::InternalError("injected: the operation is refused");
    case Fault::kFailedLate: {
      MutexLock lock(mutex_);
      late_ = absl::InternalError("injected: the kernel has failed");
      return absl::OkStatus();
    }
    case Fault::kSticky:
      device_.Call(inner_, [&device = device_] { device.Break(); });
      return absl::OkStatus();
    case Fault::kHung: {
      device_.Hang(inner_);
      MutexLock lock(mutex_);
      ++hung_;
      return absl::OkStatus();
    }
    case Fault::kWrongBit:
    case Fault::kOtherKernel:
      return absl::OkStatus();  // Launch sees to it
  }
  return absl::OkStatus();
}

absl::Status FaultyStream::Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                                  const gemm::Operands& operands, gemm::Workspace workspace,
                                  const gemm::LaunchParams& params, const LaunchHow& how) {
  const std::optional<Injection> injection = device_.Strike(Operation::kLaunch);
  absl::Status status = Suffer(injection);
  if (!status.ok()) return status;
  const bool other = injection.has_value() && injection->fault == Fault::kOtherKernel;
  status =
      inner_.Launch(other ? *injection->kernel : kernel, problem, operands, workspace, params, how);
  if (injection.has_value() && injection->fault == Fault::kWrongBit) {
    // On a lost device this is called at once, while the kernel may still write.
    device_.Call(inner_, [&device = device_, bit = injection->bit, problem, operands] {
      if (device.Health().ok()) FlipBit(bit, problem, operands);
    });
  }
  return status;
}

void FaultyStream::Notify(absl::AnyInvocable<void(absl::Status)> done, const Notice& how) {
  absl::Status late;
  int hung = 0;
  {
    MutexLock lock(mutex_);
    late = std::exchange(late_, absl::OkStatus());
    hung = std::exchange(hung_, 0);
  }
  if (!late.ok()) {
    done = [done = std::move(done), late = std::move(late)](absl::Status status) mutable {
      status.Update(late);
      done(std::move(status));
    };
  }
  inner_.Notify(std::move(done), how);
  if (hung > 0) device_.AddAwaitedHangs(hung);
}

FaultyDevice::FaultyDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {
  info_ = inner_->info();
  inner_memory_.push_back(*inner_->memory().Allocate(inner_->memory().capacity()));
  memory_ = std::make_unique<Arena>(inner_memory_[0].data(), inner_memory_[0].bytes());
  upload_staging_ = Take(inner_->upload_staging());
  download_staging_ = Take(inner_->download_staging());
  upload_stream_ = std::make_unique<FaultyStream>(*this, inner_->upload_stream());
  download_stream_ = std::make_unique<FaultyStream>(*this, inner_->download_stream());
  for (const std::unique_ptr<Stream>& stream : inner_->compute_streams()) {
    compute_streams_.push_back(std::make_unique<FaultyStream>(*this, *stream));
  }
  for (const std::unique_ptr<Stream>& stream : inner_->quick_streams()) {
    quick_streams_.push_back(std::make_unique<FaultyStream>(*this, *stream));
  }
}

FaultyDevice::~FaultyDevice() {
  timer_.Stop();
  Release();
  std::vector<std::shared_ptr<HostMark>> slow;
  {
    MutexLock lock(mutex_);
    slow.swap(slow_);
  }
  for (const std::shared_ptr<HostMark>& mark : slow) mark->Reach();
  // Work that is left on the streams ends before its memory is freed.
  AwaitCallbacks(*inner_);
  inner_memory_.clear();
  inner_staging_.clear();
}

std::unique_ptr<StagingPool> FaultyDevice::Take(StagingPool& pool) {
  std::byte* first = nullptr;  // a pool's blocks lie side by side
  while (StagingBlock block = pool.TryAcquire()) {
    if (first == nullptr || block.data() < first) first = block.data();
    inner_staging_.push_back(std::move(block));
  }
  return std::make_unique<StagingPool>(first, pool.block_bytes(), pool.blocks());
}

void FaultyDevice::Inject(const Injection& injection) {
  MutexLock lock(mutex_);
  injections_.push_back(injection);
}

std::optional<Injection> FaultyDevice::Strike(Operation operation) {
  MutexLock lock(mutex_);
  std::optional<Injection> strikes;
  for (auto it = injections_.begin(); it != injections_.end();) {
    if (it->operation != operation || it->skip-- > 0 || strikes.has_value()) {
      ++it;
    } else {
      strikes = *it;
      it = injections_.erase(it);
      struck_.push_back(strikes->fault);
    }
  }
  return strikes;
}

void FaultyDevice::Hold(Stream& stream, absl::Duration time) {
  auto mark = std::make_shared<HostMark>();
  HostEvent event;
  event.set_mark(mark);
  stream.Wait(event).IgnoreError();  // of a lost device, which runs nothing more
  {
    MutexLock lock(mutex_);
    slow_.push_back(mark);  // so that it ends with the device
  }
  timer_.Schedule(SteadyNow() + time, [this, mark = std::move(mark)] {
    mark->Reach();
    MutexLock lock(mutex_);
    slow_.erase(std::remove(slow_.begin(), slow_.end(), mark), slow_.end());
  });
}

void FaultyDevice::Hang(Stream& stream) {
  auto mark = std::make_shared<HostMark>();
  HostEvent event;
  event.set_mark(mark);
  stream.Wait(event).IgnoreError();
  MutexLock lock(mutex_);
  hanging_.push_back(std::move(mark));
}

void FaultyDevice::Call(Stream& stream, absl::AnyInvocable<void()> function) {
  auto mark = std::make_shared<HostMark>();
  stream.Notify([mark, function = std::move(function)](const absl::Status&) mutable {
    function();
    mark->Reach();
  });
  HostEvent event;
  event.set_mark(std::move(mark));
  stream.Wait(event).IgnoreError();
}

void FaultyDevice::ClearInjections() {
  MutexLock lock(mutex_);
  injections_.clear();
}

int FaultyDevice::struck() {
  MutexLock lock(mutex_);
  return static_cast<int>(struck_.size());
}

int FaultyDevice::struck(Fault fault) {
  MutexLock lock(mutex_);
  return static_cast<int>(std::count(struck_.begin(), struck_.end(), fault));
}

bool FaultyDevice::hung() {
  MutexLock lock(mutex_);
  return std::any_of(hanging_.begin(), hanging_.end(),
                     [](const std::shared_ptr<HostMark>& mark) { return mark->awaited(); });
}

int FaultyDevice::awaited_hangs() {
  MutexLock lock(mutex_);
  return awaited_hangs_;
}

void FaultyDevice::AddAwaitedHangs(int hangs) {
  MutexLock lock(mutex_);
  awaited_hangs_ += hangs;
}

void FaultyDevice::Release() {
  std::vector<std::shared_ptr<HostMark>> marks;
  {
    MutexLock lock(mutex_);
    marks.swap(hanging_);
  }
  for (const std::shared_ptr<HostMark>& mark : marks) mark->Reach();
}

std::vector<DeviceBuffer> FaultyDevice::TakeAllMemory() {
  std::vector<DeviceBuffer> pieces;
  while (memory().largest_free() > 0) {
    absl::StatusOr<DeviceBuffer> piece = memory().Allocate(memory().largest_free());
    if (piece.ok()) pieces.push_back(*std::move(piece));
  }
  return pieces;
}

bool FaultyDevice::CanCopyFrom(const Device& other) {
  const auto* peer = dynamic_cast<const FaultyDevice*>(&other);
  if (peer == nullptr || !peers) return false;
  return true;
}

namespace {

template <typename Value>
using FaultNames = std::vector<std::pair<absl::string_view, Value>>;

template <typename Value>
Value ValueOf(const FaultNames<Value>& names, absl::string_view text) {
  for (const auto& [name, value] : names) {
    if (name == text) return value;
  }
  std::abort();
}

// The kernel that is launched for a fault of this name; null for one that is no kernel.
const gemm::Kernel* BrokenKernel([[maybe_unused]] absl::string_view fault) {
#if GEMM_HAS_CUDA
  if (fault == "illegal") return &IllegalKernel();
  if (fault == "endless") return &EndlessKernel();
#endif
  return nullptr;
}

// The faults of one device in GEMMD_FAULTS.
void InjectFromEnvironment(FaultyDevice& device) {
  static const FaultNames<Operation> operations = {{"upload", Operation::kUpload},
                                                   {"download", Operation::kDownload},
                                                   {"generate", Operation::kGenerate},
                                                   {"launch", Operation::kLaunch}};
  static const FaultNames<Fault> faults = {
      {"slow", Fault::kSlow},          {"refused", Fault::kRefused},
      {"sticky", Fault::kSticky},      {"hung", Fault::kHung},
      {"wrong", Fault::kWrongBit},     {"illegal", Fault::kOtherKernel},
      {"endless", Fault::kOtherKernel}};
  const char* const text = std::getenv("GEMMD_FAULTS");
  for (const absl::string_view one :
       absl::StrSplit(text == nullptr ? "" : text, ';', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(one, ' ');
    Injection injection;
    if (words.size() != 4 || !absl::SimpleAtoi(words[3], &injection.skip)) std::abort();
    if (words[0] != device.info().name) continue;
    injection.operation = ValueOf(operations, words[1]);
    injection.fault = ValueOf(faults, words[2]);
    injection.kernel = BrokenKernel(words[2]);
    injection.bit = 30;  // of the first element: no f32 is nearly right without it
    const bool other = injection.fault == Fault::kOtherKernel;
    if (other && (injection.kernel == nullptr || injection.operation != Operation::kLaunch)) {
      std::abort();
    }
    device.Inject(injection);
  }
}

template <auto kCreateInner>
absl::StatusOr<std::unique_ptr<Device>> CreateFaulty(int index, const EngineOptions& options) {
  absl::StatusOr<std::unique_ptr<Device>> inner = kCreateInner(index, options);
  if (!inner.ok()) return inner.status();
  auto device = std::make_unique<FaultyDevice>(*std::move(inner));
  InjectFromEnvironment(*device);
  return device;
}

}  // namespace

void AddFaultyDeviceKinds() {
  AddDeviceKind({.name = "faulty",
                 .title = "faulty",
                 .max_made = 8,
                 .create = CreateFaulty<HostDevice::Create>,
                 .share = ShareHostCores});
#if GEMM_HAS_CUDA
  AddDeviceKind({.name = "faulty-cuda",
                 .title = "faulty CUDA",
                 .count = CudaDeviceCount,
                 .create = CreateFaulty<CudaDevice::Create>});
#endif
}

}  // namespace gemmd
