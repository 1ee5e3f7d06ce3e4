#include "client/ctl/load/schedule.h"

#include <algorithm>

namespace gemmd::ctl {
namespace {

// How often a sleeping worker checks whether the test was stopped.
constexpr absl::Duration kStopPoll = absl::Milliseconds(50);

}  // namespace

Schedule::Schedule(const SchedulePlan& plan, Clock& clock)
    : plan_(plan), clock_(clock), start_(clock.Now()) {}

std::optional<Slot> Schedule::Next() {
  if (stopped()) return std::nullopt;
  Slot slot{.index = next_index_.fetch_add(1, std::memory_order_relaxed)};
  slot.planned =
      plan_.rate > 0 ? absl::Seconds(static_cast<double>(slot.index) / plan_.rate) : Elapsed();
  if (slot.planned >= plan_.warmup + plan_.duration) return std::nullopt;
  slot.counted = slot.planned >= plan_.warmup;
  if (slot.counted && plan_.requests > 0 &&
      counted_.fetch_add(1, std::memory_order_relaxed) >= plan_.requests) {
    return std::nullopt;
  }
  return slot;
}

bool Schedule::WaitFor(const Slot& slot) {
  for (;;) {
    if (stopped()) return false;
    const absl::Duration ahead = slot.planned - Elapsed();
    if (ahead <= absl::ZeroDuration()) return true;
    clock_.SleepFor(std::min(ahead, kStopPoll));
  }
}

}  // namespace gemmd::ctl
