#include "client/ctl/load/schedule.h"

#include <algorithm>
#include <cmath>

namespace gemmd::ctl {
namespace {

// How often a sleeping worker checks whether the test was stopped.
constexpr absl::Duration kStopPoll = absl::Milliseconds(50);

}  // namespace

Schedule::Schedule(const SchedulePlan& plan, Clock& clock)
    : plan_(plan), clock_(clock), start_(clock.Now()), random_(plan.seed) {}

std::optional<Slot> Schedule::Next() {
  if (stopped()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  Slot slot{.index = next_index_++};
  if (plan_.rate > 0) {
    slot.planned = TimeOf(expected_);
    const double uniform = static_cast<double>((random_() >> 11) + 1) * 0x1p-53;
    expected_ += plan_.arrivals == Arrivals::kPoisson ? -std::log(uniform) : 1;
  } else {
    slot.planned = Elapsed();
  }
  if (slot.planned >= plan_.warmup + plan_.duration) return std::nullopt;
  slot.counted = slot.planned >= plan_.warmup;
  if (slot.counted && plan_.requests > 0 && counted_++ >= plan_.requests) return std::nullopt;
  return slot;
}

// Until the end of the ramp R, rate t^2 / (2 R) requests are expected by the time t.
absl::Duration Schedule::TimeOf(double before) const {
  const double ramp = absl::ToDoubleSeconds(plan_.ramp);
  if (before < plan_.rate * ramp / 2)
    return absl::Seconds(std::sqrt(2 * before * ramp / plan_.rate));
  return absl::Seconds(before / plan_.rate + ramp / 2);
}

bool Schedule::WaitUntil(absl::Duration since_start) {
  for (;;) {
    if (stopped()) return false;
    const absl::Duration ahead = since_start - Elapsed();
    if (ahead <= absl::ZeroDuration()) return true;
    clock_.SleepFor(std::min(ahead, kStopPoll));
  }
}

}  // namespace gemmd::ctl
