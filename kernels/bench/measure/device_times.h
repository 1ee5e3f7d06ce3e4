// Measures a device of which nothing is known: every kernel that `auto` may take, on a few dozen
// products of each class.
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

// Products that are alike nobody's in particular: of the class's 96, with operands stored so, by a
// sequence that fills the space of sizes evenly, 8 to 8192 each, up to 3e10 operations.
std::vector<Shape> ShapesToMeasure(const Layout& layout);

// For Estimates::FromTimes. A kernel whose result is wrong is left out. As the budget runs out
// kernels and then products are left out. CANCELLED where `cancelled` says so; any other error
// means that the device is lost.
absl::StatusOr<std::vector<TimedProduct>> MeasureTimes(
    Backend& backend, absl::Duration budget, const std::function<bool()>& cancelled = nullptr,
    const std::function<absl::Time()>& now = absl::Now);

}  // namespace gemm::bench
