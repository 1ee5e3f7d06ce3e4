#include "server/engine/core.h"

#include <algorithm>
#include <tuple>

#include "server/engine/upload_impl.h"

namespace gemmd {

EngineCore::EngineCore() = default;
EngineCore::~EngineCore() = default;

std::vector<size_t> EngineCore::DevicesByLoad() const {
  std::vector<std::tuple<int64_t, size_t, size_t>> loads;  // work, memory, index
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i]->Health().ok()) continue;
    const int64_t work = schedulers[i]->streams().used + schedulers[i]->queued();
    loads.emplace_back(work, devices[i]->memory().used(), i);
  }
  std::sort(loads.begin(), loads.end());
  std::vector<size_t> indices;
  for (const auto& load : loads) indices.push_back(std::get<2>(load));
  return indices;
}

size_t EngineCore::IndexOf(const Device& device) const {
  const auto it = std::find_if(devices.begin(), devices.end(),
                               [&](const auto& one) { return one.get() == &device; });
  return static_cast<size_t>(it - devices.begin());
}

}  // namespace gemmd
