#include "server/engine/policy/placement.h"

#include <algorithm>
#include <tuple>

#include "server/base/clock.h"

namespace gemmd {
void RankByEnd(std::vector<Placement>& devices) {
  std::stable_sort(devices.begin(), devices.end(), [](const Placement& x, const Placement& y) {
    return std::tuple(x.end(), x.missing_bytes) < std::tuple(y.end(), y.missing_bytes);
  });
}

PlacedWork::Share& PlacedWork::Share::operator=(Share&& other) noexcept {
  if (this == &other) return *this;
  End();
  work_ = std::exchange(other.work_, nullptr);
  time_ = other.time_;
  quick_ = other.quick_;
  running_ = other.running_;
  return *this;
}

void PlacedWork::Share::Begin() {
  if (work_ == nullptr || running_) return;
  running_ = true;
  MutexLock lock(work_->mutex_);
  work_->Pass(SteadyNow());
  work_->lanes_[quick_].running += time_;
  ++work_->running_;
}

void PlacedWork::Share::End() {
  PlacedWork* const work = std::exchange(work_, nullptr);
  if (work == nullptr) return;
  MutexLock lock(work->mutex_);
  work->Pass(SteadyNow());
  Lane& lane = work->lanes_[quick_];
  lane.placed -= time_;
  if (!running_) return;
  lane.running -= time_;
  // What took longer than its estimate does not count for those that still run.
  lane.done = std::min(std::max(lane.done - time_, absl::ZeroDuration()), lane.running);
  --work->running_;
}

PlacedWork::Share PlacedWork::Add(absl::Duration time, bool quick) {
  Share share;
  share.work_ = this;
  share.time_ = time;
  share.quick_ = quick;
  MutexLock lock(mutex_);
  lanes_[quick].placed += time;
  return share;
}

// The time is divided among the lanes by what runs of each.
void PlacedWork::Pass(absl::Time now) {
  if (running_ > 0) {
    const absl::Duration passed = std::max(now - last_, absl::ZeroDuration());
    const absl::Duration running = lanes_[0].running + lanes_[1].running;
    for (Lane& lane : lanes_) lane.done += passed * absl::FDivDuration(lane.running, running);
  }
  last_ = now;
}

// Jobs that are late are expected to take as long again as they are late by now: one that hangs
// keeps others away.
absl::Duration PlacedWork::backlog(bool quick) const {
  MutexLock lock(mutex_);
  absl::Duration passed, backlog;
  if (running_ > 0) passed = std::max(SteadyNow() - last_, absl::ZeroDuration());
  const absl::Duration running = lanes_[0].running + lanes_[1].running;
  for (const bool lane_quick : {false, true}) {
    if (quick && !lane_quick) continue;
    const Lane& lane = lanes_[lane_quick];
    absl::Duration done = lane.done;
    if (running_ > 0) done += passed * absl::FDivDuration(lane.running, running);
    backlog += lane.placed - lane.running + absl::AbsDuration(lane.running - done);
  }
  return backlog;
}

}  // namespace gemmd
