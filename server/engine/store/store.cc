#include "server/engine/store/store.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gemm/quote.h"
#include "server/base/clock.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {
namespace {

// How often a matrix in use is looked at once its time has passed, or less often by its ttl.
constexpr absl::Duration kLookInUse = absl::Milliseconds(100);

std::string RandomPrefix() {
  std::random_device random;
  return absl::StrFormat("m%08x", random());
}

std::string Describe(const MatrixKey& key) {
  return absl::StrCat(
      key.id.empty() ? absl::StrCat(key.shared ? "shared name " : "name ", gemm::Quoted(key.name))
                     : absl::StrCat("id ", gemm::Quoted(key.id)),
      key.owner.has_value() ? absl::StrCat(" and owner ", gemm::Quoted(*key.owner)) : "");
}

// No room, said so that whoever replaces a matrix knows why.
absl::Status NoRoom(const KeepSpec& keep, const absl::Status& why) {
  if (!keep.replace) return why;
  return BoundError(*ReachedBoundOf(why),
                    absl::StrCat(why.message(),
                                 "; the matrix to replace keeps its room until the "
                                 "new one is complete"));
}

absl::Status CheckVersion(const MatrixKey& key, uint64_t version) {
  if (key.version.value_or(version) == version) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("version is ", *key.version, ", but the matrix with ",
                                         Describe(key), " has version ", version));
}

absl::Status CheckMayDelete(const MatrixKey& key, absl::string_view owner) {
  if (key.any_owner || owner == key.caller) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the shared matrix with ", Describe(key),
                                                  " belongs to ", gemm::Quoted(owner),
                                                  ": its owner and administrators may delete it"));
}

absl::Status CheckOwner(const CallerLedger& owners, const CallerQuotaPtr& quota,
                        absl::string_view owner, uint64_t bytes) {
  if (quota == nullptr) return absl::OkStatus();
  return owners.Check(owner, {.count_bound = "matrices",
                              .bytes_bound = "store-bytes",
                              .most = quota->matrices,
                              .most_bytes = quota->store_bytes,
                              .bytes = bytes,
                              .passes = false,
                              .what_to_do = "delete some matrices or let them expire"});
}

}  // namespace

StoreReservation& StoreReservation::operator=(StoreReservation&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  store_ = std::exchange(other.store_, nullptr);
  device_index_ = other.device_index_;
  bytes_ = other.bytes_;
  id_ = std::move(other.id_);
  keep_ = std::move(other.keep_);
  return *this;
}

void StoreReservation::Reset() {
  if (MatrixStore* store = std::exchange(store_, nullptr)) store->Return(*this);
}

MatrixPin& MatrixPin::operator=(MatrixPin&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  store_ = std::exchange(other.store_, nullptr);
  matrix_ = std::move(other.matrix_);
  return *this;
}

void MatrixPin::Reset() {
  if (const std::shared_ptr<ResidentMatrix> matrix = std::exchange(matrix_, nullptr)) {
    store_->Unpin(*matrix);
  }
}

ReplicaPin& ReplicaPin::operator=(ReplicaPin&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  store_ = std::exchange(other.store_, nullptr);
  matrix_ = std::move(other.matrix_);
  held_ = std::move(other.held_);
  reused_ = other.reused_;
  return *this;
}

void ReplicaPin::Reset() {
  const std::shared_ptr<ResidentMatrix> matrix = std::exchange(matrix_, nullptr);
  const std::shared_ptr<ResidentReplica> held = std::exchange(held_, nullptr);
  if (held != nullptr) store_->UnpinReplica(*matrix, held);
}

MatrixStore::MatrixStore(size_t device_count, uint64_t quota_bytes, int max_matrices, Timer& timer)
    : quota_bytes_(quota_bytes),
      max_matrices_(max_matrices),
      id_prefix_(RandomPrefix()),
      timer_(timer),
      shares_(device_count) {}

MatrixStore::~MatrixStore() {
  Matrices matrices;  // they give their room back through this store
  {
    MutexLock lock(mutex_);
    matrices.swap(by_id_);
    for (const auto& [id, timer_id] : expiries_) timer_.Cancel(timer_id);
  }
}

absl::StatusOr<StoreReservation> MatrixStore::Reserve(size_t device_index, uint64_t bytes,
                                                      const KeepSpec& keep,
                                                      const CallerQuotaPtr& quota) {
  Dropped dropped;
  MutexLock lock(mutex_);
  if (const absl::Status status = CheckOwner(owners_, quota, keep.owner, bytes); !status.ok()) {
    return NoRoom(keep, status);
  }
  if (count_ >= max_matrices_) {
    return NoRoom(
        keep, BoundError({.bound = "max-matrices"},
                         absl::StrCat("the store holds ", count_, " matrices, and its limit is ",
                                      max_matrices_, ": delete some or let them expire")));
  }
  absl::Status status = CheckName(keep);
  if (!status.ok()) return status;
  status = MakeRoom(device_index, bytes, dropped);
  if (!status.ok()) return NoRoom(keep, status);
  std::string id = absl::StrFormat("%s%010x", id_prefix_, next_id_++);
  if (ReservesName(keep)) {
    by_name_.emplace(NameOf(keep), Named{id, keep.owner, device_index, bytes});
  }
  ++count_;
  owners_.Add(keep.owner, bytes);
  shares_[device_index].used_bytes += bytes;
  StoreReservation room;
  room.store_ = this;
  room.device_index_ = device_index;
  room.bytes_ = bytes;
  room.id_ = std::move(id);
  room.keep_ = keep;
  return room;
}

absl::Status MatrixStore::MakeRoom(size_t device_index, uint64_t bytes, Dropped& dropped) {
  DeviceShare& share = shares_[device_index];
  const uint64_t lasting = share.used_bytes - share.idle_bytes;
  if (bytes > quota_bytes_) {
    return BoundError({.bound = "store-bytes"},
                      absl::StrCat("the matrix needs ", bytes, " bytes of the store, which holds ",
                                   "at most ", quota_bytes_, " bytes (--store-bytes)"));
  }
  if (lasting > quota_bytes_ - bytes) {
    return BoundError(
        {.bound = "store-bytes"},
        absl::StrCat("the matrix needs ", bytes, " bytes of the store, which holds ", lasting,
                     " of at most ", quota_bytes_, " bytes (--store-bytes): delete some matrices"));
  }
  while (share.used_bytes > quota_bytes_ - bytes) DropOldestIdle(device_index, dropped);
  return absl::OkStatus();
}

void MatrixStore::Return(const StoreReservation& room) {
  MutexLock lock(mutex_);
  DeviceShare& share = shares_[room.device_index_];
  share.used_bytes -= room.bytes_;
  if (room.id_.empty()) {
    share.replicas.bytes -= static_cast<int64_t>(room.bytes_);
    return;
  }
  --count_;
  owners_.Remove(room.keep_.owner, room.bytes_);
  deleted_early_.erase(room.id_);
  if (room.keep_.name.empty()) return;
  // A deleted matrix's name may have gone to another one since.
  const auto it = by_name_.find(NameOf(room.keep_));
  if (it != by_name_.end() && it->second.id == room.id_) by_name_.erase(it);
}

absl::StatusOr<MatrixRecord> MatrixStore::Add(StoreReservation room,
                                              std::shared_ptr<MatrixMemory> memory) {
  Dropped dropped;
  auto matrix = std::make_shared<ResidentMatrix>();
  const absl::Time now = SteadyNow();
  matrix->record.id = room.id_;
  matrix->record.name = room.keep_.name;
  matrix->record.owner = room.keep_.owner;
  matrix->record.shared = room.keep_.shared;
  matrix->record.shape = memory->shape;
  matrix->record.device = memory->device->info().name;
  matrix->record.created = absl::Now();
  matrix->ttl = room.keep_.ttl;
  matrix->last_used = now;
  matrix->memory = std::move(memory);
  matrix->room = std::move(room);
  MatrixRecord record;
  {
    MutexLock lock(mutex_);
    const auto early = deleted_early_.extract(matrix->record.id);
    const bool deleted = !early.empty();
    // Before the name is taken: the matrix that had it may lie elsewhere, and stays.
    if (const Device& device = *matrix->memory->device;
        !deleted && (shares_[matrix->room.device_index_].lost || !device.Health().ok())) {
      return absl::UnavailableError(absl::StrCat("device ", device.info().name, " is lost"));
    }
    absl::Status status =
        deleted ? CheckOvertaken(matrix->room.keep_, early.mapped()) : TakeName(*matrix, dropped);
    if (!status.ok()) return status;
    record = RecordOf(*matrix);
    if (deleted) return record;
    by_id_.emplace(record.id, matrix);
  }
  if (matrix->ttl.has_value()) ExpireAt(now + *matrix->ttl, record.id);
  return record;
}

absl::StatusOr<MatrixStore::Matrices::iterator> MatrixStore::Find(const MatrixKey& key) {
  std::string id = key.id;
  if (id.empty()) {
    const auto named = by_name_.find(NameOf(key));
    if (named != by_name_.end()) id = named->second.id;
  }
  const auto it = by_id_.find(id);
  const bool seen = it != by_id_.end() && (it->second->record.shared || key.any_owner ||
                                           it->second->record.owner == key.caller);
  if (!seen || key.owner.value_or(it->second->record.owner) != it->second->record.owner) {
    if (absl::Status lost = CheckLost(key); !lost.ok()) return lost;
    return absl::NotFoundError(
        absl::StrCat("no matrix has ", Describe(key),
                     ": it was never put, was deleted or replaced, or has expired"));
  }
  absl::Status version = CheckVersion(key, it->second->record.version);
  if (!version.ok()) return version;
  return it;
}

absl::StatusOr<MatrixPin> MatrixStore::Pin(const MatrixKey& key, bool to_release) {
  MutexLock lock(mutex_);
  const absl::StatusOr<Matrices::iterator> it = Find(key);
  if (!it.ok()) return it.status();
  absl::Status may =
      to_release ? CheckMayDelete(key, (*it)->second->record.owner) : absl::OkStatus();
  if (!may.ok()) return may;
  ++(*it)->second->in_use;
  ++(*it)->second->uses;
  return MatrixPin(this, (*it)->second);
}

void MatrixStore::Unpin(ResidentMatrix& matrix) {
  MutexLock lock(mutex_);
  --matrix.in_use;
  matrix.last_used = SteadyNow();
}

MatrixStore::Dropped MatrixStore::Erase(Matrices::iterator it) {
  Dropped dropped;
  std::shared_ptr<ResidentMatrix>& matrix = dropped.matrix;
  matrix = std::move(it->second);
  // Those in use stay as long as that.
  for (auto& [device_index, replica] : matrix->replicas) {
    EndIdleness(*replica);
    dropped.replicas.push_back(std::move(replica));
  }
  matrix->replicas.clear();
  const auto named = by_name_.find(NameOf(matrix->room.keep_));
  if (named != by_name_.end() && named->second.id == it->first) by_name_.erase(named);
  const auto expiry = expiries_.find(it->first);
  if (expiry != expiries_.end()) {
    timer_.Cancel(expiry->second);
    expiries_.erase(expiry);
  }
  by_id_.erase(it);
  return dropped;
}

absl::StatusOr<MatrixRecord> MatrixStore::DeleteLost(const MatrixKey& key,
                                                     const MatrixRecord& lost) {
  MatrixRecord record = lost;  // outlives the entry
  absl::Status may = CheckMayDelete(key, record.owner);
  if (may.ok()) may = CheckVersion(key, record.version);
  if (!may.ok()) return may;
  ForgetLost(record);
  return record;
}

absl::StatusOr<MatrixRecord> MatrixStore::Delete(const MatrixKey& key) {
  Dropped dropped;
  MutexLock lock(mutex_);
  const absl::StatusOr<Matrices::iterator> it = Find(key);
  if (!it.ok()) {
    const MatrixRecord* const lost = FindLost(key);
    const auto reserved = key.id.empty() ? by_name_.find(NameOf(key)) : by_name_.end();
    const bool asked = reserved != by_name_.end() && reserved->second.version == 0 &&
                       !key.version.has_value() &&
                       key.owner.value_or(reserved->second.owner) == reserved->second.owner;
    if (!asked) return lost != nullptr ? DeleteLost(key, *lost) : it.status();
    absl::Status may = CheckMayDelete(key, reserved->second.owner);
    if (!may.ok()) return may;
    // The name is free of both.
    if (lost != nullptr && CheckMayDelete(key, lost->owner).ok()) ForgetLost(*lost);
    MatrixRecord record;
    record.name = key.name;
    record.id = reserved->second.id;
    record.owner = reserved->second.owner;
    record.shared = key.shared;
    deleted_early_.emplace(reserved->second.id, /*replaced=*/false);
    by_name_.erase(reserved);
    return record;
  }
  MatrixRecord record = RecordOf(*(*it)->second);
  absl::Status may = CheckMayDelete(key, record.owner);
  if (!may.ok()) return may;
  dropped = Erase(*it);
  return record;
}

void MatrixStore::Forget(const MatrixPin& pin) {
  Dropped dropped;
  MutexLock lock(mutex_);
  const auto it = by_id_.find(pin.matrix().record.id);
  if (it != by_id_.end()) dropped = Erase(it);
}

MatrixPage MatrixStore::List(const MatrixQuery& query) {
  const auto is_asked = [&query](const MatrixRecord& record) {
    if (!absl::StartsWith(record.name, query.name_prefix)) return false;
    if (query.every_owner) return true;
    return query.shared ? record.shared : !record.shared && record.owner == query.caller;
  };
  MatrixPage page;
  int seen = 0;
  MutexLock lock(mutex_);
  for (auto it = by_id_.upper_bound(query.page_token); it != by_id_.end(); ++it) {
    if (++seen > kMostSeenForAPage) {
      page.next_token = std::prev(it)->first;
      break;
    }
    if (!is_asked(it->second->record)) continue;
    if (static_cast<int>(page.matrices.size()) == query.page_size) {
      page.next_token = page.matrices.back().id;
      break;
    }
    page.matrices.push_back(RecordOf(*it->second));
  }
  return page;
}

MatrixRecord MatrixStore::RecordOf(const ResidentMatrix& matrix) const {
  MatrixRecord record = matrix.record;
  record.in_use = matrix.in_use;
  record.uses = matrix.uses;
  record.copies = static_cast<int>(matrix.replicas.size());
  if (matrix.ttl.has_value()) record.expires = ToWall(matrix.last_used + *matrix.ttl);
  return record;
}

MatrixRecord MatrixStore::Record(const MatrixPin& pin) const {
  MutexLock lock(mutex_);
  return RecordOf(pin.matrix());
}

absl::StatusOr<MatrixRecord> MatrixStore::Record(const MatrixKey& key) {
  MutexLock lock(mutex_);
  const absl::StatusOr<Matrices::iterator> it = Find(key);
  if (!it.ok()) return it.status();
  return RecordOf(*(*it)->second);
}

void MatrixStore::ExpireAt(absl::Time at, std::string id) {
  MutexLock lock(mutex_);
  if (by_id_.count(id) == 0) return;  // deleted since
  expiries_[id] = timer_.Schedule(at, [this, id] { OnExpiry(id); });
}

void MatrixStore::OnExpiry(const std::string& id) {
  Dropped dropped;
  absl::Time again;
  {
    MutexLock lock(mutex_);
    const auto it = by_id_.find(id);
    if (it == by_id_.end()) return;
    const ResidentMatrix& found = *it->second;
    const absl::Time now = SteadyNow();
    const absl::Time due =
        found.in_use > 0 ? now + std::max(*found.ttl, kLookInUse) : found.last_used + *found.ttl;
    if (due <= now) {
      dropped = Erase(it);
      ++expired_;
      return;
    }
    again = due;
  }
  ExpireAt(again, id);
}

CallerShare MatrixStore::share_of(absl::string_view owner) const {
  MutexLock lock(mutex_);
  return owners_.of(owner);
}

int MatrixStore::count() const {
  MutexLock lock(mutex_);
  return count_;
}

int64_t MatrixStore::expired() const {
  MutexLock lock(mutex_);
  return expired_;
}

uint64_t MatrixStore::used_bytes(size_t device_index) const {
  MutexLock lock(mutex_);
  return shares_[device_index].used_bytes;
}

}  // namespace gemmd
