#include "server/engine/core/core.h"

#include <algorithm>
#include <tuple>

namespace gemmd {

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

absl::StatusOr<DeviceBuffer> EngineCore::Allocate(size_t device_index, size_t bytes,
                                                  Lifetime lifetime) {
  Arena& arena = devices[device_index]->memory();
  while (true) {
    absl::StatusOr<DeviceBuffer> buffer = arena.Allocate(bytes, lifetime);
    if (buffer.ok() || !CheckRoom(device_index, bytes).ok() ||
        !store->DropIdleReplica(device_index)) {
      return buffer;
    }
  }
}

absl::Status EngineCore::CheckRoom(size_t device_index, size_t bytes) const {
  const Arena& arena = devices[device_index]->memory();
  const size_t droppable = store->idle_replica_bytes(device_index);
  if (bytes <= arena.capacity() - arena.used() + droppable) return absl::OkStatus();
  return arena.NoRoom(bytes);
}

absl::StatusOr<std::shared_ptr<MatrixMemory>> EngineCore::AllocateMatrix(size_t device_index,
                                                                         const Shape& shape,
                                                                         Lifetime lifetime) {
  absl::StatusOr<DeviceBuffer> buffer = Allocate(device_index, shape.pitched_bytes(), lifetime);
  if (!buffer.ok()) return buffer.status();
  auto memory = std::make_shared<MatrixMemory>();
  memory->device = devices[device_index].get();
  memory->buffer = *std::move(buffer);
  memory->shape = shape;
  return memory;
}

}  // namespace gemmd
