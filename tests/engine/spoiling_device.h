// A host device whose kernels give a wrong element where the test says so.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/device/device.h"
#include "server/engine/device/host/host_stream.h"

namespace gemmd {

// The new value of element (0, 0) of a kernel's product; nullopt leaves it.
using Spoil = std::function<std::optional<double>(absl::string_view kernel)>;

class SpoilingStream final : public Stream {
 public:
  SpoilingStream(const Spoil& spoil, HostStream::Use use, CompletionQueue& completions,
                 const DeviceHealth& health)
      : spoil_(spoil), host_("spoiling", use, completions, health) {}

  absl::Status Upload(const std::byte* staging, const Pitched& to, size_t offset,
                      size_t bytes) override {
    return host_.Upload(staging, to, offset, bytes);
  }
  absl::Status Download(const Pitched& from, size_t offset, size_t bytes,
                        std::byte* staging) override {
    return host_.Download(from, offset, bytes, staging);
  }
  absl::Status Generate(const gemm::GeneratorSpec& spec, const gemm::GeneratorTarget& target,
                        StopFlag stop) override {
    return host_.Generate(spec, target, std::move(stop));
  }
  absl::Status Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                      const gemm::Operands& operands, gemm::Workspace workspace,
                      const gemm::LaunchParams& params, const LaunchHow& how) override {
    absl::Status status = host_.Launch(kernel, problem, operands, workspace, params, how);
    const std::optional<double> wrong = spoil_(kernel.name);
    if (!status.ok() || !wrong.has_value()) return status;
    const gemm::GeneratorSpec spec{.low_or_mean = *wrong, .high_or_stddev = *wrong};
    return host_.Generate(
        spec,
        {.data = operands.d, .type = problem.types.d, .rows = 1, .cols = 1, .pitch_bytes = 16},
        /*stop=*/nullptr);
  }
  absl::Status Check(const gemm::Check& check) override { return host_.Check(check); }
  gemm::CheckOutcome check_outcome() const override { return host_.check_outcome(); }
  absl::Status Finish(const gemm::Problem& problem, const gemm::Operands& operands,
                      void* accumulators) override {
    return host_.Finish(problem, operands, accumulators);
  }
  absl::Status Record(Event& event) override { return host_.Record(event); }
  absl::Status Wait(const Event& event) override { return host_.Wait(event); }
  void Notify(absl::AnyInvocable<void(absl::Status)> done, const Notice& how) override {
    host_.Notify(std::move(done), how);
  }

 private:
  const Spoil& spoil_;
  HostStream host_;
};

class SpoilingDevice final : public Device {
 public:
  explicit SpoilingDevice(Spoil spoil)
      : spoil_(std::move(spoil)), memory_bytes_(kMemory + kAlign), staging_bytes_(4 * kStaging) {
    info_ = {.name = "host:0", .caps = {.target = gemm::Target::kHost}, .memory_bytes = kMemory};
    const auto begin = reinterpret_cast<uintptr_t>(memory_bytes_.data());
    memory_ =
        std::make_unique<Arena>(memory_bytes_.data() + (kAlign - begin % kAlign) % kAlign, kMemory);
    constexpr size_t kBlocks = 16;
    upload_staging_ =
        std::make_unique<StagingPool>(staging_bytes_.data(), kStaging / kBlocks, kBlocks);
    download_staging_ = std::make_unique<StagingPool>(staging_bytes_.data() + kStaging,
                                                      kStaging / kBlocks, kBlocks);
    completions_ = std::make_unique<CompletionQueue>("spoiling-done");
    upload_stream_ = Make(HostStream::Use::kCopies);
    download_stream_ = Make(HostStream::Use::kCopies);
    compute_streams_.push_back(Make(HostStream::Use::kCompute));
  }
  ~SpoilingDevice() override {
    compute_streams_.clear();
    upload_stream_.reset();
    download_stream_.reset();
    completions_.reset();
  }

  EventPtr AcquireEvent() override { return EventPtr(new HostEvent, EventRecycler{this}); }
  absl::Duration Elapsed(const Event&, const Event&) override { return absl::Milliseconds(1); }
  absl::Status Health() const override { return absl::OkStatus(); }
  void Lose(absl::string_view) override {}
  bool Idle() override { return true; }
  int64_t driver_allocations() const override { return 0; }
  bool CompletionThreadIsBusy() override { return false; }

 private:
  static constexpr size_t kMemory = 16 * kMiB;
  static constexpr size_t kAlign = 4096;
  static constexpr size_t kStaging = 16 * kMinStagingBlockBytes;

  std::unique_ptr<Stream> Make(HostStream::Use use) {
    return std::make_unique<SpoilingStream>(spoil_, use, *completions_, health_);
  }
  void RecycleEvent(Event* event) override { delete event; }

  const Spoil spoil_;
  const DeviceHealth health_{"host:0"};
  std::vector<std::byte> memory_bytes_, staging_bytes_;
  std::unique_ptr<CompletionQueue> completions_;
};

}  // namespace gemmd
