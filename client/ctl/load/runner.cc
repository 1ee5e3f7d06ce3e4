#include "client/ctl/load/runner.h"

#include <algorithm>
#include <mutex>
#include <thread>

namespace gemmd::ctl {
namespace {

// The pause after UNAVAILABLE, so that a closed loop does not become a busy loop.
constexpr absl::Duration kUnavailablePause = absl::Milliseconds(10);

// How often the thread that waits for the workers polls.
constexpr absl::Duration kPoll = absl::Milliseconds(20);

// One worker: takes slots from `begin` on until there are none. Returns the end of its last counted
// request, as the time since the start.
absl::Duration Work(const RunPlan& plan, Clock& clock, Schedule& schedule, size_t worker,
                    Caller& caller, Statistics& statistics, absl::Duration begin) {
  absl::Duration last_end;
  const auto measured = [&](absl::Duration since_start) {
    return since_start - plan.schedule.warmup;
  };
  if (!schedule.WaitUntil(begin)) return last_end;
  while (const std::optional<Slot> slot = schedule.Next()) {
    if (!schedule.WaitFor(*slot)) break;
    const absl::Duration late = schedule.Elapsed() - slot->planned;
    if (plan.schedule.rate > 0 && late > plan.max_delay) {
      if (slot->counted)
        statistics.AddNotSent(worker, caller.ChoiceOf(*slot), late, measured(slot->planned + late));
      continue;
    }
    const Outcome outcome = caller.Call(*slot);
    const absl::Duration end = schedule.Elapsed();
    if (slot->counted) {
      statistics.AddOutcome(worker, caller.ChoiceOf(*slot), outcome, end - slot->planned,
                            measured(end));
      last_end = end;
    }
    if (outcome.status.ok()) {
      const Verdict verdict = caller.Finish(*slot);
      if (slot->counted) statistics.AddVerdict(worker, caller.ChoiceOf(*slot), verdict);
    } else if (outcome.status.code() == absl::StatusCode::kUnavailable) {
      clock.SleepFor(kUnavailablePause);
    }
  }
  return last_end;
}

}  // namespace

absl::Duration RunLoad(const RunPlan& plan, Clock& clock,
                       absl::Span<const std::unique_ptr<Caller>> callers,
                       const std::atomic<bool>& stop, Statistics& statistics,
                       const std::function<void(absl::Duration)>& each_second) {
  Schedule schedule(plan.schedule, clock);
  std::atomic<size_t> running{callers.size()};
  std::mutex mutex;
  absl::Duration last_end = plan.schedule.warmup;
  std::vector<std::thread> threads;
  threads.reserve(callers.size());
  for (size_t worker = 0; worker < callers.size(); ++worker) {
    threads.emplace_back([&, worker] {
      // The workers of a closed loop begin one after another within the ramp.
      const absl::Duration begin = plan.schedule.rate > 0
                                       ? absl::ZeroDuration()
                                       : plan.schedule.ramp * static_cast<double>(worker) /
                                             static_cast<double>(callers.size());
      const absl::Duration end =
          Work(plan, clock, schedule, worker, *callers[worker], statistics, begin);
      {
        const std::lock_guard lock(mutex);
        last_end = std::max(last_end, end);
      }
      running.fetch_sub(1);
    });
  }
  absl::Duration next_report = absl::Seconds(1);
  while (running.load() > 0) {
    absl::SleepFor(kPoll);
    if (stop.load()) schedule.Stop();
    const absl::Duration elapsed = schedule.Elapsed();
    if (elapsed >= next_report) {
      each_second(elapsed);
      next_report = absl::Floor(elapsed, absl::Seconds(1)) + absl::Seconds(1);
    }
  }
  for (std::thread& thread : threads) thread.join();
  return last_end - plan.schedule.warmup;
}

}  // namespace gemmd::ctl
