// The kernel that is chosen for a product, and the latest choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"
#include "server/base/mutex.h"
#include "server/engine/core/report.h"

namespace gemmd {

struct KernelPick {
  const gemm::Kernel* kernel = nullptr;
  gemm::LaunchParams params{};
  std::map<std::string, int64_t> named_params;  // as they are used, defaults included
  std::string reason;
  ChoiceRule rule = ChoiceRule::kNone;
  std::optional<TunedFrom> tuned;  // where the rule is a table's
  gemm::Compute compute = gemm::Compute::kF32;
};

// The choices on one device, with one reading of the tables, for requests that left the choice
// open. A choice looks at every kernel, or at the entries of a table near the product, which may
// take longer than all else that a small job's admission does. Thread-safe.
class KernelChoices {
 public:
  static constexpr size_t kMost = 4096;

  // Null: not known, as of every group. `max_workspace_bytes` is that of PickSite.
  std::shared_ptr<const KernelPick> Find(const gemm::Problem& problem,
                                         size_t max_workspace_bytes) const;
  // Forgets all others first if there are kMost.
  void Add(const gemm::Problem& problem, size_t max_workspace_bytes,
           std::shared_ptr<const KernelPick> pick);

 private:
  // All that a choice looks at. A factor counts as 0, 1 or neither, as it came and as f32. One
  // choice holds for all of the last kind, such as the scales of quantised tensors.
  using Key = std::tuple<int64_t, int64_t, int64_t, gemm::DType, gemm::DType, gemm::DType,
                         gemm::Compute, bool, bool, int, int, gemm::BiasAxis, gemm::Activation, int,
                         int64_t, gemm::ScaleBlocks, gemm::ScaleBlocks, size_t>;
  static Key KeyOf(const gemm::Problem& problem, size_t max_workspace_bytes);

  mutable Mutex mutex_;
  absl::flat_hash_map<Key, std::shared_ptr<const KernelPick>> picks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
