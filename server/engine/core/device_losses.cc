#include "server/engine/core/device_losses.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(100);
constexpr double kOfAnElement = 10;  // operations to generate it, and to move it

}  // namespace

double WorkOf(const gemm::Problem& problem) {
  const auto m = static_cast<double>(problem.m), n = static_cast<double>(problem.n),
             k = static_cast<double>(problem.k);
  // In a group, one of m and k is the sum over the products. Matrices without that dimension exist
  // once for each product.
  const auto products = static_cast<double>(problem.extents.size());
  const double of_b = problem.grouped == gemm::GroupedBy::kM ? products : 1;
  const double of_d = problem.grouped == gemm::GroupedBy::kK ? products : 1;
  return gemm::Flops(problem) +
         static_cast<double>(problem.batch) * kOfAnElement * (m * k + of_b * k * n + of_d * m * n);
}

double WorkOf(const Shape& generated) {
  return kOfAnElement * static_cast<double>(generated.rows) * static_cast<double>(generated.cols);
}

absl::Duration LongestTime(gemm::Target target, double operations, absl::Duration measured) {
  if (target == gemm::Target::kHost) return absl::Seconds(operations / kSlowestHost);
  const absl::Duration slowest = absl::Seconds(operations / kSlowestCuda);
  if (measured == absl::ZeroDuration()) return slowest;
  return std::min(slowest, kMostOfMeasured * measured);
}

absl::Duration HangLimit(absl::Duration job_timeout, int streams, absl::Duration longest) {
  return job_timeout + streams * longest;
}

absl::Duration HangGrace(absl::Duration limit) { return std::min(limit, absl::Seconds(5)); }

DeviceLosses::DeviceLosses(EngineCore& core)
    : core_(core),
      stats_(core.devices.size()),
      under_way_(core.devices.size()),
      dealt_with_(core.devices.size(), false) {}

void DeviceLosses::Watch() {
  Look();
  core_.timer->Schedule(SteadyNow() + kPeriod, [this] { Watch(); });
}

void DeviceLosses::Look() {
  for (size_t i = 0; i < core_.devices.size(); ++i) {
    const absl::Status health = core_.devices[i]->Health();
    if (health.ok()) continue;
    {
      MutexLock lock(mutex_);
      if (dealt_with_[i]) continue;
      dealt_with_[i] = true;
    }
    Deal(i, health);
  }
}

void DeviceLosses::Arm(size_t device_index, uint64_t ticket, Work& work, absl::Time at) {
  work.due =
      core_.timer->Schedule(at, [this, device_index, ticket] { OnLate(device_index, ticket); });
}

absl::Duration DeviceLosses::LimitOf(size_t device_index, const Work& work) const {
  Device& device = *core_.devices[device_index];
  const size_t streams = device.compute_streams().size() + device.quick_streams().size();
  return HangLimit(core_.options.job_timeout, static_cast<int>(streams), work.longest_beside);
}

uint64_t DeviceLosses::BeginWork(size_t device_index, absl::Duration longest) {
  MutexLock lock(mutex_);
  std::map<uint64_t, Work>& under_way = under_way_[device_index];
  absl::Duration longest_beside = longest;
  for (auto& [ticket, other] : under_way) {
    longest_beside = std::max(longest_beside, other.longest);
    // The rest of the other may run after this.
    other.longest_beside = std::max(other.longest_beside, longest);
  }
  const uint64_t ticket = ++last_ticket_;
  Work& work = under_way[ticket];
  work = {.longest = longest, .longest_beside = longest_beside, .begun = SteadyNow()};
  Arm(device_index, ticket, work, work.begun + LimitOf(device_index, work));
  return ticket;
}

void DeviceLosses::EndWork(size_t device_index, uint64_t ticket) {
  MutexLock lock(mutex_);
  const auto ended = under_way_[device_index].extract(ticket);
  if (!ended.empty()) core_.timer->Cancel(ended.mapped().due);
}

void DeviceLosses::OnLate(size_t device_index, uint64_t ticket) {
  {
    MutexLock lock(mutex_);
    const auto it = under_way_[device_index].find(ticket);
    if (it == under_way_[device_index].end()) return;
    Work& work = it->second;
    const absl::Duration limit = LimitOf(device_index, work);
    // Larger work has begun meanwhile.
    if (const absl::Time due = work.begun + limit; !work.late && SteadyNow() < due) {
      return Arm(device_index, ticket, work, due);
    }
    const absl::Duration grace = HangGrace(limit);
    if (!std::exchange(work.late, true)) {
      return Arm(device_index, ticket, work, SteadyNow() + grace);
    }
    Device& device = *core_.devices[device_index];
    if (device.Health().ok()) ++stats_[device_index].hangs;
    // With the lock: the work does not end between the look at it and the loss.
    device.Lose(
        absl::StrCat("work on it did not end within ", absl::FormatDuration(limit + grace),
                     ", which is --job-timeout, the longest time of what was under way and ",
                     absl::FormatDuration(grace), " more"));
  }
  Look();
}

void DeviceLosses::Deal(size_t device_index, const absl::Status& why) {
  Device& device = *core_.devices[device_index];
  const StoreLoss matrices = core_.store->LoseDevice(device_index);
  {
    MutexLock lock(mutex_);
    stats_[device_index].matrices_lost = matrices.lost;
    stats_[device_index].matrices_moved = matrices.moved;
  }
  if (core_.observer != nullptr) {
    core_.observer->OnDeviceLost({.device = device.info().name,
                                  .why = why,
                                  .matrices_lost = matrices.lost,
                                  .matrices_moved = matrices.moved});
  }
  core_.admission->CancelOn(device, why);
}

DeviceLossStats DeviceLosses::stats(size_t device_index) const {
  MutexLock lock(mutex_);
  return stats_[device_index];
}

}  // namespace gemmd
