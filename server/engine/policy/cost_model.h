// How long jobs keep a device busy: estimated from those that ran before.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"
#include "server/base/mutex.h"

namespace gemmd {

// The work that a job brings to a device.
struct JobWork {
  const gemm::Kernel* kernel = nullptr;  // null: no product, a matrix is generated
  gemm::Types types{};
  double flops = 0;
  double bytes = 0;        // of the operands and the result
  int64_t products = 1;    // of a batch or a group
  int64_t launches = 1;    // as many as products, where the kernel takes a group apart
  bool generates = false;  // operands of a product
  bool checked = false;    // the product is checked on the device
  size_t caller = 0;       // a hash of whose it is
};

// Jobs of band 0 are quick: they are too small to fill a GPU, and they end soon. Above, a
// band has the products of up to twice the extents of the band before.
inline constexpr int kQuickBand = 0;
inline constexpr int kLastBand = 8;

struct JobCost {
  // How long the job would keep the device busy by itself, at least 1 us.
  absl::Duration device_time = absl::Microseconds(1);
  // How long several jobs like this one of the same caller took lately; zero where that is not
  // known. Only this refuses one: with operands that make a kernel slow, as subnormal numbers do
  // on a host, a caller would keep out others.
  absl::Duration lately;
  // How long several jobs like this one took, whose they ever were; zero where that is not known.
  absl::Duration measured;
  int band = 1;

  bool quick() const { return band == kQuickBand; }
};

// The estimates of one device. A guess from the device's rates is multiplied by a measured ratio: a
// moving average over the jobs with the same kernel and types, and about the same operations, bytes
// and products. Thread-safe.
//
// The tables have a fixed size. Jobs of different kinds whose slots are the same push each
// other out, and are guessed again.
class CostModel {
 public:
  explicit CostModel(gemm::Target target);

  JobCost Estimate(const JobWork& work) const;
  // A job that succeeded has kept the device busy for this long.
  void Observe(const JobWork& work, absl::Duration device_time);

  static constexpr size_t kSlots = 4096;
  // An estimate that is older is not what jobs took `lately`: it may be wrong by now, and is
  // never known to be if it keeps all such jobs out.
  static constexpr absl::Duration kLately = absl::Seconds(10);
  // Nor is one over fewer jobs `lately` or `measured`: a single one may have waited for a
  // processor, or been the first of its kernel.
  static constexpr int kSamplesToRefuse = 4;

 private:
  struct Key {
    const gemm::Kernel* kernel = nullptr;
    uint32_t types = 0;
    int16_t flops_log = 0;
    int16_t bytes_log = 0;
    int16_t products_log = 0;
    bool generates = false;
    bool checked = false;
    size_t caller = 0;  // 0: of all

    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Key& key) {
      return H::combine(std::move(hash), key.kernel, key.types, key.flops_log, key.bytes_log,
                        key.products_log, key.generates, key.checked, key.caller);
    }
  };
  struct Slot {
    Key key;
    int samples = 0;
    double ratio = 1;  // measured time to the guess
    absl::Time last;
  };
  using Table = std::vector<Slot>;

  static Key KeyOf(const JobWork& work);
  // The slot of the key; null where it has another's.
  static const Slot* Find(const Table& table, const Key& key);
  static void Observe(Table& table, const Key& key, double ratio, absl::Time now);
  double GuessSeconds(const JobWork& work) const;

  const gemm::Target target_;
  mutable Mutex mutex_;
  Table of_all_ ABSL_GUARDED_BY(mutex_);
  Table of_callers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
