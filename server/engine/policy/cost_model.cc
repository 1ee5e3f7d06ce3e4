#include "server/engine/policy/cost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/hash/hash.h"
#include "server/base/bytes.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

// The bounds of a quick job. A product of 256^3 has at most 16 tiles of 64 x 64, and a GPU has well
// over a hundred multiprocessors.
constexpr double kQuickFlops = 2.0 * 256 * 256 * 256;
constexpr double kQuickBytes = 4.0 * kMiB;
constexpr absl::Duration kQuickTime = absl::Milliseconds(2);

// Rates of a device that nothing was measured on. Far from exact for any one.
struct Rates {
  double flops_per_second;
  double bytes_per_second;
  double seconds;             // of any job
  double seconds_of_product;  // of each one of a batch or a group
  double seconds_of_launch;   // of each one after the first; on the host there is none
};
constexpr Rates kHostRates = {2e10, 5e9, 20e-6, 3e-7, 0};
constexpr Rates kCudaRates = {5e13, 1e12, 10e-6, 2e-8, 3e-6};

// The average follows the last jobs, about so many: fewer where they were shorter. A job
// beside larger ones often seems longer than it is, since its blocks wait for theirs.
constexpr int kMemoryOfShorter = 4;
constexpr int kMemoryOfLonger = 32;
// One job moves it by no more than a job this many times as long, or as short. Its thread may have
// waited for a processor.
constexpr double kMostOff = 4;

int16_t Log2(double value) { return static_cast<int16_t>(std::ilogb(std::max(value, 1.0))); }

int BandOf(const JobWork& work, absl::Duration device_time) {
  if (work.flops <= kQuickFlops && work.bytes <= kQuickBytes && device_time <= kQuickTime) {
    return kQuickBand;
  }
  constexpr double kFlopsOfTwiceTheExtents = 3;  // as a power of two
  const double doublings = std::log2(std::max(work.flops, 1.0) / kQuickFlops);
  return std::clamp(static_cast<int>(std::ceil(doublings / kFlopsOfTwiceTheExtents)),
                    kQuickBand + 1, kLastBand);
}

}  // namespace

CostModel::CostModel(gemm::Target target) : target_(target) {
  MutexLock lock(mutex_);
  of_all_.resize(kSlots);
  of_callers_.resize(kSlots);
}

CostModel::Key CostModel::KeyOf(const JobWork& work) {
  uint32_t types = static_cast<uint32_t>(work.types.compute);
  for (const gemm::DType type : {work.types.a, work.types.b, work.types.d}) {
    types = types << 8 | static_cast<uint32_t>(type);
  }
  return {.kernel = work.kernel,
          .types = types,
          .flops_log = Log2(work.flops),
          .bytes_log = Log2(work.bytes),
          .products_log = Log2(static_cast<double>(work.products)),
          .generates = work.generates,
          .checked = work.checked};
}

double CostModel::GuessSeconds(const JobWork& work) const {
  const Rates& rates = target_ == gemm::Target::kCuda ? kCudaRates : kHostRates;
  return rates.seconds + work.flops / rates.flops_per_second + work.bytes / rates.bytes_per_second +
         static_cast<double>(work.products - 1) * rates.seconds_of_product +
         static_cast<double>(work.launches - 1) * rates.seconds_of_launch;
}

const CostModel::Slot* CostModel::Find(const Table& table, const Key& key) {
  const Slot& slot = table[absl::HashOf(key) % kSlots];
  return slot.samples > 0 && slot.key == key ? &slot : nullptr;
}

JobCost CostModel::Estimate(const JobWork& work) const {
  Key key = KeyOf(work);
  const absl::Time now = SteadyNow();
  const double guess = GuessSeconds(work);
  double seconds = guess;
  JobCost cost;
  {
    MutexLock lock(mutex_);
    if (const Slot* of_all = Find(of_all_, key)) {
      seconds *= of_all->ratio;
      if (of_all->samples >= kSamplesToRefuse) cost.measured = absl::Seconds(seconds);
    }
    key.caller = work.caller;
    const Slot* own = Find(of_callers_, key);
    if (own != nullptr && own->samples >= kSamplesToRefuse && now - own->last <= kLately) {
      cost.lately = absl::Seconds(guess * own->ratio);
    }
  }
  cost.device_time = std::max(absl::Seconds(seconds), absl::Microseconds(1));
  cost.band = BandOf(work, cost.device_time);
  return cost;
}

void CostModel::Observe(const JobWork& work, absl::Duration device_time) {
  Key key = KeyOf(work);
  const absl::Time now = SteadyNow();
  const double ratio = absl::ToDoubleSeconds(device_time) / GuessSeconds(work);
  MutexLock lock(mutex_);
  Observe(of_all_, key, ratio, now);
  key.caller = work.caller;
  Observe(of_callers_, key, ratio, now);
}

void CostModel::Observe(Table& table, const Key& key, double ratio, absl::Time now) {
  Slot& slot = table[absl::HashOf(key) % kSlots];
  if (slot.samples == 0 || slot.key != key) {
    slot = {.key = key, .samples = 1, .ratio = ratio, .last = now};
    return;
  }
  ratio = std::clamp(ratio, slot.ratio / kMostOff, slot.ratio * kMostOff);
  slot.samples = std::min(slot.samples + 1, kMemoryOfLonger);
  const int memory = ratio < slot.ratio ? std::min(slot.samples, kMemoryOfShorter) : slot.samples;
  slot.ratio += (ratio - slot.ratio) / memory;
  slot.last = now;
}

}  // namespace gemmd
