// The store's matrices when a device is lost: some move, the others are remembered as lost.
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "server/engine/store/store.h"

namespace gemmd {

StoreLoss MatrixStore::LoseDevice(size_t device_index) {
  StoreLoss loss;
  std::vector<Dropped> dropped;  // outlives the lock
  MutexLock lock(mutex_);
  shares_[device_index].lost = true;
  for (auto it = by_id_.begin(); it != by_id_.end();) {
    const auto next = std::next(it);
    ResidentMatrix& matrix = *it->second;
    Dropped& one = dropped.emplace_back();
    if (matrix.room.device_index_ != device_index) {
      const auto replica = matrix.replicas.find(device_index);
      if (replica != matrix.replicas.end()) {
        EndIdleness(*replica->second);
        one.replicas.push_back(std::move(replica->second));
        matrix.replicas.erase(replica);
      }
    } else if (MoveToReplica(it, one)) {
      ++loss.moved;
    } else {
      ++loss.lost;
      RememberLost(matrix);
      one = Erase(it);
    }
    it = next;
  }
  return loss;
}

bool MatrixStore::IsGood(const ResidentReplica& replica) const {
  return replica.replica->complete() && !shares_[replica.device_index].lost &&
         replica.replica->memory()->device->Health().ok();
}

// The matrix gets a new ResidentMatrix, since pins read the memory of the old one without
// the lock. They keep that, which nobody finds any more. Other good replicas are the new one's.
bool MatrixStore::MoveToReplica(Matrices::iterator it, Dropped& dropped) {
  const std::shared_ptr<ResidentMatrix> old = it->second;
  std::shared_ptr<ResidentReplica> replica;
  for (const auto& [device_index, one] : old->replicas) {
    if (IsGood(*one)) replica = one;
  }
  if (replica == nullptr) return false;
  const size_t device_index = replica->device_index;
  const size_t lost_index = old->room.device_index_;

  auto matrix = std::make_shared<ResidentMatrix>();
  matrix->memory = replica->replica->memory();
  matrix->record = old->record;
  matrix->record.device = matrix->memory->device->info().name;
  matrix->ttl = old->ttl;
  // The holders of the old one still use it, and do not tell the new one of their end.
  matrix->last_used = old->in_use > 0 ? SteadyNow() : old->last_used;
  for (auto& [other_index, other] : old->replicas) {
    if (other != replica && IsGood(*other)) {
      if (other->idle_since != 0) shares_[other_index].idle[other->idle_since] = matrix.get();
      matrix->replicas.emplace(other_index, std::move(other));
    } else {
      EndIdleness(*other);
      dropped.replicas.push_back(std::move(other));
    }
  }
  old->replicas.clear();

  // The two rooms change their places. The id, the name and the place in the count go with the
  // matrix. The memory on the lost device counts as a replica as long as it is used.
  matrix->room = std::move(old->room);
  matrix->room.device_index_ = device_index;
  old->room = std::move(replica->room);
  old->room.device_index_ = lost_index;
  const auto bytes = static_cast<int64_t>(replica->bytes);
  shares_[device_index].replicas.bytes -= bytes;
  shares_[lost_index].replicas.bytes += bytes;
  const auto named = by_name_.find(NameOf(matrix->room.keep_));
  if (named != by_name_.end() && named->second.id == it->first) {
    named->second.device_index = device_index;
  }
  dropped.matrix = std::exchange(it->second, std::move(matrix));
  return true;
}

void MatrixStore::RememberLost(const ResidentMatrix& matrix) {
  if (lost_.size() >= static_cast<size_t>(max_matrices_)) return;
  const MatrixRecord& record = matrix.record;
  lost_.emplace(record.id, record);
  const KeepSpec keep = {.name = record.name, .owner = record.owner, .shared = record.shared};
  if (!record.name.empty()) lost_names_.insert_or_assign(NameOf(keep), record.id);
}

const MatrixRecord* MatrixStore::FindLost(const MatrixKey& key) const {
  std::string id = key.id;
  if (id.empty()) {
    const auto named = lost_names_.find(NameOf(key));
    if (named == lost_names_.end()) return nullptr;
    id = named->second;
  }
  const auto it = lost_.find(id);
  if (it == lost_.end()) return nullptr;
  const MatrixRecord& record = it->second;
  const bool seen = (record.shared || key.any_owner || record.owner == key.caller) &&
                    key.owner.value_or(record.owner) == record.owner;
  return seen ? &record : nullptr;
}

absl::Status MatrixStore::CheckLost(const MatrixKey& key) const {
  const MatrixRecord* const record = FindLost(key);
  if (record == nullptr) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "the matrix with id ", gemm::Quoted(record->id),
      record->name.empty() ? "" : absl::StrCat(" and name ", gemm::Quoted(record->name)),
      " is lost: its only copy was on ", record->device,
      ", which the server has lost; put it again"));
}

void MatrixStore::ForgetLost(const NameKey& name) {
  const auto named = lost_names_.find(name);
  if (named == lost_names_.end()) return;
  lost_.erase(named->second);
  lost_names_.erase(named);
}

void MatrixStore::ForgetLost(const MatrixRecord& record) {
  const KeepSpec keep = {.name = record.name, .owner = record.owner, .shared = record.shared};
  const std::string id = record.id;  // `record` may be the entry
  const auto named = lost_names_.find(NameOf(keep));
  if (named != lost_names_.end() && named->second == id) lost_names_.erase(named);
  lost_.erase(id);
}

}  // namespace gemmd
