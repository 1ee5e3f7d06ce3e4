#include "server/engine/core/tuning.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>

namespace gemmd {

Tuning::Tuning(const gemm::TuningTable& table, absl::Span<const std::unique_ptr<Device>> devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    choices_.push_back(std::make_unique<KernelChoices>());
  }
  load_.entries = table.size();
  if (table.size() == 0) return;
  std::set<std::string> skipped;
  devices_.reserve(devices.size());
  for (const auto& device : devices) {
    const DeviceInfoRecord& info = device->info();
    const TunedKernels& tuned = devices_.emplace_back(table, info.machine, info.caps);
    load_.used = std::max(load_.used, tuned.size());
    load_.other_versions = std::max(load_.other_versions, tuned.of_other_versions());
    skipped.insert(tuned.skipped().begin(), tuned.skipped().end());
  }
  load_.skipped.assign(skipped.begin(), skipped.end());
}

}  // namespace gemmd
