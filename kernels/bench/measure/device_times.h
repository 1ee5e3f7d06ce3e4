// Measures an unknown device: every kernel that `auto` may take, on a few dozen products of each
// class.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gemm/estimates.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/shape.h"

namespace gemm::bench {

// The classes of products that are measured, by their types.
absl::Span<const Types> ClassesToMeasure();

// Generic products: those of the class's 96 whose operands are stored in `layout`. A sequence
// spreads their sizes evenly, each 8 to 8192, up to 3e10 operations.
std::vector<Shape> ShapesToMeasure(const Layout& layout);

// For Estimates::FromTimes. A kernel whose result is wrong is left out. As the budget runs out,
// kernels and then products are left out. CANCELLED if `cancelled` says so; any other error means
// that the device is lost.
absl::StatusOr<std::vector<TimedProduct>> MeasureTimes(
    Backend& backend, absl::Duration budget, const std::function<bool()>& cancelled = nullptr,
    const std::function<absl::Time()>& now = absl::Now);

}  // namespace gemm::bench
