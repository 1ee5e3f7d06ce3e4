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

absl::StatusOr<DeviceBuffer> EngineCore::Allocate(size_t device_index, size_t bytes, Stay stay) {
  Arena& arena = devices[device_index]->memory();
  while (true) {
    absl::StatusOr<DeviceBuffer> buffer = arena.Allocate(bytes, stay);
    if (buffer.ok() || bytes > arena.capacity() || !store->DropIdleReplica(device_index)) {
      return buffer;
    }
  }
}

absl::StatusOr<std::shared_ptr<MatrixMemory>> EngineCore::AllocateMatrix(size_t device_index,
                                                                         const Shape& shape,
                                                                         Stay stay) {
  absl::StatusOr<DeviceBuffer> buffer = Allocate(device_index, shape.pitched_bytes(), stay);
  if (!buffer.ok()) return buffer.status();
  auto memory = std::make_shared<MatrixMemory>();
  memory->device = devices[device_index].get();
  memory->buffer = *std::move(buffer);
  memory->shape = shape;
  return memory;
}

absl::StatusOr<ReplicaPin> EngineCore::PinReplica(const MatrixPin& pin, size_t device_index) {
  if (ReplicaPin there = store->PinReplica(pin, device_index)) return there;
  const std::shared_ptr<MatrixMemory>& from = pin.memory();
  absl::StatusOr<AdmissionTicket> ticket = admission->AdmitTransfer();
  if (!ticket.ok()) return ticket.status();
  absl::StatusOr<StoreReservation> room =
      store->ReserveReplica(device_index, from->shape.pitched_bytes());
  if (!room.ok()) return room.status();
  absl::StatusOr<std::shared_ptr<MatrixMemory>> to =
      AllocateMatrix(device_index, from->shape, Stay::kStaying);
  if (!to.ok()) return to.status();
  auto replica = std::make_shared<Replica>(from, *std::move(to), *std::move(ticket));
  return store->AddReplica(pin, *std::move(room), std::move(replica));
}

}  // namespace gemmd
