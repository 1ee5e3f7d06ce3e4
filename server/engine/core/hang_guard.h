// The hang guard: gives a device up when work on it does not end in time.
#pragma once

#include <cstddef>

#include "absl/time/time.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"
#include "server/base/timer.h"
#include "server/engine/core/core.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// What a launch has to do, in operations: those of the product, and some for each element,
// which may be generated.
double WorkOf(const gemm::Problem& problem);
double WorkOf(const Shape& generated);

// How long work may take before it counts as hung: --job-timeout, and what the slowest
// kernel of such a device needs where each of its streams has as much to do. `most_work` is
// the most of what is under way on the device, since that may stand before it.
absl::Duration HangLimit(absl::Duration job_timeout, gemm::Target target, int streams,
                         double most_work);

// Nothing can stop a kernel. So when it does not end in time its device is given up
// (Device::Lose), which ends all that waits for the device. The guarded time is from the
// construction, when the work is enqueued, to End. Moved along with the work's callback.
class HangGuard {
 public:
  HangGuard() = default;
  // Guards nothing where --job-timeout is 0, or where the device cannot be given up. `core` must
  // outlive this.
  HangGuard(EngineCore& core, size_t device_index, double work);
  HangGuard(HangGuard&& other) noexcept { *this = std::move(other); }
  HangGuard& operator=(HangGuard&& other) noexcept;
  ~HangGuard() { End(); }

  void End();

 private:
  EngineCore* core_ = nullptr;  // null: guards nothing
  size_t device_index_ = 0;
  double work_ = 0;
  Timer::Id due_;
};

}  // namespace gemmd
