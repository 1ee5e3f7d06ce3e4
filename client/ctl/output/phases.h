// The phases of a job and their times, in the form that all commands print.
#pragma once

#include <array>
#include <cstddef>

#include "absl/time/time.h"

namespace gemmd::ctl {

// In the order of the contract.
enum Phase : size_t { kReceive, kQueue, kHostToDevice, kKernel, kDeviceToHost, kSend, kTotal };
inline constexpr size_t kPhaseCount = 7;
inline constexpr std::array<const char*, kPhaseCount> kPhaseNames = {
    "receive", "queue", "h2d", "kernel", "d2h", "send", "total"};
using PhaseDurations = std::array<absl::Duration, kPhaseCount>;

}  // namespace gemmd::ctl
