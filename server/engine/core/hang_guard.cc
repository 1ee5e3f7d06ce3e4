#include "server/engine/core/hang_guard.h"

#include <utility>

#include "server/base/clock.h"
#include "server/engine/core/device_losses.h"

namespace gemmd {
namespace {

// Below what every kernel of the kind reaches, on a busy machine, too.
constexpr double kSlowestCuda = 1e10;  // operations a second
constexpr double kSlowestHost = 1e8;
constexpr double kOfAnElement = 10;  // operations to generate it, and to move it

}  // namespace

double WorkOf(const gemm::Problem& problem) {
  const auto m = static_cast<double>(problem.m), n = static_cast<double>(problem.n),
             k = static_cast<double>(problem.k);
  return gemm::Flops(problem) + kOfAnElement * (m * k + k * n + m * n);
}

double WorkOf(const Shape& generated) {
  return kOfAnElement * static_cast<double>(generated.rows) * static_cast<double>(generated.cols);
}

absl::Duration HangLimit(absl::Duration job_timeout, gemm::Target target, int streams,
                         double most_work) {
  const double slowest = target == gemm::Target::kCuda ? kSlowestCuda : kSlowestHost;
  return job_timeout + absl::Seconds(streams * most_work / slowest);
}

HangGuard::HangGuard(EngineCore& core, size_t device_index, double work)
    : device_index_(device_index), work_(work) {
  if (core.options.job_timeout == absl::ZeroDuration()) return;
  Device& device = *core.devices[device_index];
  if (!device.info().can_be_given_up) return;
  core_ = &core;
  const double most_work = core.losses->BeginWork(device_index, work);
  const absl::Duration limit =
      HangLimit(core.options.job_timeout, device.info().caps.target,
                static_cast<int>(device.compute_streams().size()), most_work);
  due_ = core.timer->Schedule(SteadyNow() + limit, [&core, device_index, limit] {
    core.losses->OnHang(device_index, limit);
  });
}

HangGuard& HangGuard::operator=(HangGuard&& other) noexcept {
  if (this == &other) return *this;
  End();
  core_ = std::exchange(other.core_, nullptr);
  device_index_ = other.device_index_;
  work_ = other.work_;
  due_ = other.due_;
  return *this;
}

void HangGuard::End() {
  EngineCore* const core = std::exchange(core_, nullptr);
  if (core == nullptr) return;
  core->timer->Cancel(due_);
  core->losses->EndWork(device_index_, work_);
}

}  // namespace gemmd
