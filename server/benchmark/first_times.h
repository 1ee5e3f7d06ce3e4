// How long kernels take on devices whose model was not measured: a few seconds of measuring before
// the first call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/benchmark/benchmarks.h"
#include "server/engine/device/device.h"

namespace gemmd {

// The source of a GPU's estimates. Host devices have none.
enum class EstimatesFrom : uint8_t {
  kModel,     // what was measured of its model; where nothing was, the device itself
  kMeasured,  // the device itself
  kNone,      // formulas and ranks decide
};

// One device takes no longer.
inline constexpr absl::Duration kFirstTimesBound = absl::Seconds(30);

// The outcome for a device: how many products were measured in how long, or why none.
struct FirstTimes {
  absl::string_view device;
  absl::Status status;
  size_t products = 0;
  absl::Duration elapsed;
};

// Gives each GPU its estimates. Call before the first job. A device that cannot be measured uses
// formulas and ranks. `told` is called for each that was measured.
void SetEstimates(absl::Span<const std::unique_ptr<Device>> devices, EstimatesFrom from,
                  const BenchmarkLimits& limits,
                  const std::function<void(const FirstTimes&)>& told);

}  // namespace gemmd
