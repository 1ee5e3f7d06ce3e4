#include "server/benchmark/first_times.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gemm/estimates.h"
#include "kernels/bench/measure/device_times.h"
#include "server/base/clock.h"
#include "server/benchmark/bounded_backend.h"

namespace gemmd {
namespace {

namespace bench = gemm::bench;

FirstTimes Measure(Device& device, size_t memory_bytes) {
  const absl::Time began = SteadyNow();
  FirstTimes result{.device = device.info().name};
  const auto times = [&]() -> absl::StatusOr<std::vector<gemm::TimedProduct>> {
    absl::StatusOr<std::unique_ptr<bench::Backend>> own = bench::CreateBackend(device.info().name);
    if (!own.ok()) return own.status();
    BoundedBackend backend(*std::move(own), memory_bytes, [] { return absl::OkStatus(); });
    return bench::MeasureTimes(backend, kFirstTimesBound);
  }();
  result.elapsed = SteadyNow() - began;
  result.status = times.status();
  if (!times.ok()) return result;
  result.products = times->size();
  device.UseEstimates(gemm::Estimates::FromTimes(device.info().machine.device, *times));
  return result;
}

}  // namespace

void SetEstimates(absl::Span<const std::unique_ptr<Device>> devices, EstimatesFrom from,
                  const BenchmarkLimits& limits,
                  const std::function<void(const FirstTimes&)>& told) {
  for (const auto& device : devices) {
    if (device->info().caps.target != gemm::Target::kCuda) continue;
    const bool known = device->estimates().estimates != nullptr;
    if (from == EstimatesFrom::kModel && known) continue;
    device->UseEstimates(std::nullopt);
    if (from != EstimatesFrom::kNone) told(Measure(*device, limits.memory_bytes));
  }
}

}  // namespace gemmd
