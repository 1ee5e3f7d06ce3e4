// The store's replicas: who uses them, and which make way.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "server/engine/store/store.h"

namespace gemmd {
namespace {

// "a/b/" of "a/b/c"; empty where there is no '/'.
absl::string_view FolderOf(absl::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == absl::string_view::npos ? absl::string_view() : name.substr(0, slash + 1);
}

// The first matrices of a folder say where it lies: all of them may be too many to look at.
constexpr int kMostSeenOfAFolder = 256;

// Under the store's lock.
bool Lists(const ResidentMatrix& matrix, const ResidentReplica& replica) {
  const auto it = matrix.replicas.find(replica.device_index);
  return it != matrix.replicas.end() && it->second.get() == &replica;
}

}  // namespace

ReplicaPin MatrixStore::FindReplica(const MatrixPin& pin, size_t device_index, Dropped& dropped) {
  auto& replicas = pin.matrix_->replicas;
  const auto it = replicas.find(device_index);
  if (it == replicas.end()) return ReplicaPin();
  if (it->second->replica->failed()) {
    // Its users will hear of that. The next user begins a new copy.
    dropped.replicas.push_back(std::move(it->second));
    replicas.erase(it);
    return ReplicaPin();
  }
  EndIdleness(*it->second);
  ++it->second->in_use;
  ++shares_[device_index].replicas.reused;
  return ReplicaPin(this, pin.matrix_, it->second, /*reused=*/true);
}

ReplicaPin MatrixStore::PinReplica(const MatrixPin& pin, size_t device_index) {
  Dropped dropped;
  MutexLock lock(mutex_);
  return FindReplica(pin, device_index, dropped);
}

std::optional<uint64_t> MatrixStore::MissingBytes(const MatrixPin& pin, size_t device_index) const {
  const ResidentMatrix& matrix = *pin.matrix_;
  const absl::Status health = matrix.memory->device->Health();
  MutexLock lock(mutex_);
  if (health.ok() && matrix.room.device_index_ == device_index) return 0;
  const auto it = matrix.replicas.find(device_index);
  const bool there = it != matrix.replicas.end() && !it->second->replica->failed();
  const uint64_t missing =
      there ? it->second->replica->missing_bytes() : matrix.memory->shape.pitched_bytes();
  if (missing > 0 && !health.ok()) return std::nullopt;
  return missing;
}

absl::StatusOr<StoreReservation> MatrixStore::ReserveReplica(size_t device_index, uint64_t bytes) {
  Dropped dropped;
  MutexLock lock(mutex_);
  absl::Status status = MakeRoom(device_index, bytes, dropped);
  if (!status.ok()) return status;
  shares_[device_index].used_bytes += bytes;
  shares_[device_index].replicas.bytes += static_cast<int64_t>(bytes);
  StoreReservation room;
  room.store_ = this;
  room.device_index_ = device_index;
  room.bytes_ = bytes;
  return room;
}

ReplicaPin MatrixStore::AddReplica(const MatrixPin& pin, StoreReservation room,
                                   std::shared_ptr<Replica> replica) {
  auto added = std::make_shared<ResidentReplica>();
  added->device_index = room.device_index_;
  added->bytes = room.bytes_;
  added->replica = std::move(replica);
  added->room = std::move(room);
  Dropped dropped;
  MutexLock lock(mutex_);
  if (ReplicaPin first = FindReplica(pin, added->device_index, dropped)) {
    dropped.replicas.push_back(std::move(added));
    return first;
  }
  ReplicaStats& stats = shares_[added->device_index].replicas;
  ++(added->replica->route() == CopyRoute::kPeer ? stats.begun_peer : stats.begun_host);
  stats.copied_bytes += static_cast<int64_t>(added->bytes);
  added->in_use = 1;
  pin.matrix_->replicas.emplace(added->device_index, added);
  return ReplicaPin(this, pin.matrix_, std::move(added), /*reused=*/false);
}

void MatrixStore::UnpinReplica(ResidentMatrix& matrix,
                               const std::shared_ptr<ResidentReplica>& held) {
  Dropped dropped;
  {
    MutexLock lock(mutex_);
    if (--held->in_use > 0) return;
    const auto found = by_id_.find(matrix.record.id);
    ResidentMatrix* const resident = found != by_id_.end() ? found->second.get() : nullptr;
    // If another replica took the place of `matrix`, this replica went along.
    const bool stays = resident != nullptr && Lists(*resident, *held);
    if (stays && held->replica->complete()) {
      DeviceShare& share = shares_[held->device_index];
      held->idle_since = next_idle_++;
      share.idle.emplace(held->idle_since, resident);
      share.idle_bytes += held->bytes;
      return;
    }
    if (ResidentMatrix& owner = stays ? *resident : matrix; Lists(owner, *held)) {
      const auto it = owner.replicas.find(held->device_index);
      dropped.replicas.push_back(std::move(it->second));
      owner.replicas.erase(it);
    }
  }
  held->replica->Abort();
}

void MatrixStore::EndIdleness(ResidentReplica& replica) {
  if (replica.idle_since == 0) return;
  DeviceShare& share = shares_[replica.device_index];
  share.idle.erase(std::exchange(replica.idle_since, 0));
  share.idle_bytes -= replica.bytes;
}

void MatrixStore::DropOldestIdle(size_t device_index, Dropped& dropped) {
  DeviceShare& share = shares_[device_index];
  ResidentMatrix& matrix = *share.idle.begin()->second;
  const auto it = matrix.replicas.find(device_index);
  std::shared_ptr<ResidentReplica>& replica = dropped.replicas.emplace_back(std::move(it->second));
  matrix.replicas.erase(it);
  EndIdleness(*replica);
  // Given back here and now, as the room is wanted under this very lock.
  replica->room.store_ = nullptr;
  share.used_bytes -= replica->bytes;
  share.replicas.bytes -= static_cast<int64_t>(replica->bytes);
  ++share.replicas.dropped;
}

bool MatrixStore::DropIdleReplica(size_t device_index) {
  Dropped dropped;
  MutexLock lock(mutex_);
  if (shares_[device_index].idle.empty()) return false;
  DropOldestIdle(device_index, dropped);
  return true;
}

std::optional<size_t> MatrixStore::DeviceOfFolder(const KeepSpec& keep) const {
  const absl::string_view folder = FolderOf(keep.name);
  if (folder.empty()) return std::nullopt;
  std::vector<uint64_t> bytes;
  MutexLock lock(mutex_);
  bytes.resize(shares_.size());
  NameKey first = NameOf(keep);
  first.name = std::string(folder);
  int seen = 0;
  for (auto it = by_name_.lower_bound(first);
       it != by_name_.end() && it->first.shared == first.shared && it->first.owner == first.owner &&
       absl::StartsWith(it->first.name, folder) && seen < kMostSeenOfAFolder;
       ++it, ++seen) {
    if (FolderOf(it->first.name) == folder) bytes[it->second.device_index] += it->second.bytes;
  }
  const auto most = std::max_element(bytes.begin(), bytes.end());
  if (*most == 0) return std::nullopt;
  return static_cast<size_t>(most - bytes.begin());
}

uint64_t MatrixStore::idle_replica_bytes(size_t device_index) const {
  MutexLock lock(mutex_);
  return shares_[device_index].idle_bytes;
}

ReplicaStats MatrixStore::replica_stats(size_t device_index) const {
  MutexLock lock(mutex_);
  return shares_[device_index].replicas;
}

}  // namespace gemmd
