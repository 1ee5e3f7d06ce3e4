// A benchmark's device with the server's bounds: a limit on its memory, and an early
// end on request.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/bench/backend/backend.h"

namespace gemmd {

// Passes everything on to `device`. Allocations above `memory_bytes` in total fail with
// RESOURCE_EXHAUSTED, which names the server's flag. `stopped` is checked before every
// launch, and between parts of a long call of Time; `stop` goes with each launch
// (Launch::stop). Not thread-safe, like its device.
class BoundedBackend final : public gemm::bench::Backend {
 public:
  BoundedBackend(std::unique_ptr<gemm::bench::Backend> device, size_t memory_bytes,
                 std::function<absl::Status()> stopped, const std::atomic<bool>* stop = nullptr);
  // Every buffer must have been freed.
  ~BoundedBackend() override = default;

  gemm::DeviceCaps caps() const override { return device_->caps(); }
  gemm::bench::Metadata metadata() const override { return device_->metadata(); }
  size_t cache_bytes() const override { return device_->cache_bytes(); }
  size_t free_bytes() const override;

  absl::StatusOr<gemm::bench::Buffer> Allocate(size_t bytes) override;
  absl::Status Fill(void* data, std::byte value, size_t bytes) override;
  absl::Status Upload(void* device, const void* host, size_t bytes) override;
  absl::Status Synchronize() override { return device_->Synchronize(); }
  absl::Status Read(const void* from, size_t pitch, size_t width, size_t height, void* to) override;
  gemm::Launch MakeLaunch(const gemm::Problem& problem, const gemm::Operands& operands,
                          gemm::Workspace workspace, const gemm::LaunchParams& params) override;
  absl::StatusOr<double> Time(const std::function<absl::Status(int)>& enqueue, int count,
                              double expected_seconds) override;
  std::vector<gemm::bench::LaunchFn> VendorAlgorithms(const gemm::Problem& problem,
                                                      const gemm::Operands& operands,
                                                      int count) override;

 private:
  const std::unique_ptr<gemm::bench::Backend> device_;
  const size_t memory_bytes_;
  const std::function<absl::Status()> stopped_;
  const std::atomic<bool>* const stop_;
  size_t used_bytes_ = 0;
};

}  // namespace gemmd
