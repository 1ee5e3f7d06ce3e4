// The resident matrices and their replicas: names, ids, quotas, times to live, and who
// uses what.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/base/timer.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/store/matrix.h"
#include "server/engine/store/matrix_memory.h"
#include "server/engine/store/replica.h"

namespace gemmd {

class MatrixStore;

// Room in the store for a matrix that is still being made: its bytes, its place
// in the count, its id and its name; for a replica the bytes alone. Gives all of it
// back on destruction unless the matrix was added. Empty when moved from.
class StoreReservation {
 public:
  StoreReservation() = default;
  StoreReservation(StoreReservation&& other) noexcept { *this = std::move(other); }
  StoreReservation& operator=(StoreReservation&& other) noexcept;
  ~StoreReservation() { Reset(); }
  const std::string& id() const { return id_; }
  explicit operator bool() const { return store_ != nullptr; }

 private:
  friend class MatrixStore;
  void Reset();

  MatrixStore* store_ = nullptr;
  size_t device_index_ = 0;
  uint64_t bytes_ = 0;
  std::string id_;  // empty: a replica's room
  KeepSpec keep_;
};

// A replica in the store. It stays when its last user has gone, until its memory is
// wanted for something else, or until its matrix goes.
struct ResidentReplica {
  std::shared_ptr<Replica> replica;
  size_t device_index = 0;
  uint64_t bytes = 0;
  // Guarded by the store's lock.
  StoreReservation room;
  int in_use = 0;
  uint64_t idle_since = 0;  // its key among the idle ones of its device; 0: not idle
};

// A resident matrix. `memory` and `shape` never change.
struct ResidentMatrix {
  std::shared_ptr<MatrixMemory> memory;
  MatrixRecord record;  // but for in_use and expires
  std::optional<absl::Duration> ttl;
  StoreReservation room;  // the quota is held as long as the memory is
  // Guarded by the store's lock.
  int in_use = 0;
  absl::Time last_used;
  std::map<size_t, std::shared_ptr<ResidentReplica>> replicas;  // by device
};

// Use of a matrix: while held, the matrix stays in memory and does not expire.
class MatrixPin {
 public:
  MatrixPin() = default;
  MatrixPin(MatrixPin&& other) noexcept = default;
  MatrixPin& operator=(MatrixPin&& other) noexcept;
  ~MatrixPin() { Reset(); }
  explicit operator bool() const { return matrix_ != nullptr; }
  const std::shared_ptr<MatrixMemory>& memory() const { return matrix_->memory; }
  const ResidentMatrix& matrix() const { return *matrix_; }

 private:
  friend class MatrixStore;
  MatrixPin(MatrixStore* store, std::shared_ptr<ResidentMatrix> matrix)
      : store_(store), matrix_(std::move(matrix)) {}
  void Reset();

  MatrixStore* store_ = nullptr;
  std::shared_ptr<ResidentMatrix> matrix_;
};

// Use of a matrix's replica: while held, the replica stays in memory. One that is not
// complete when its last user lets go of it is given up. Empty when moved from.
class ReplicaPin {
 public:
  ReplicaPin() = default;
  ReplicaPin(ReplicaPin&& other) noexcept = default;
  ReplicaPin& operator=(ReplicaPin&& other) noexcept;
  ~ReplicaPin() { Reset(); }
  explicit operator bool() const { return held_ != nullptr; }
  const std::shared_ptr<Replica>& replica() const { return held_->replica; }
  // Whether it was there already, or on its way, for somebody else.
  bool reused() const { return reused_; }

 private:
  friend class MatrixStore;
  ReplicaPin(MatrixStore* store, std::shared_ptr<ResidentMatrix> matrix,
             std::shared_ptr<ResidentReplica> held, bool reused)
      : store_(store), matrix_(std::move(matrix)), held_(std::move(held)), reused_(reused) {}
  void Reset();

  MatrixStore* store_ = nullptr;
  std::shared_ptr<ResidentMatrix> matrix_;
  std::shared_ptr<ResidentReplica> held_;
  bool reused_ = false;
};

// Thread-safe. Must outlive its reservations and pins.
class MatrixStore {
 public:
  // `quota_bytes` is for each of `device_count` devices.
  MatrixStore(size_t device_count, uint64_t quota_bytes, int max_matrices, Timer& timer);
  ~MatrixStore();

  // RESOURCE_EXHAUSTED past the quota or the count; ALREADY_EXISTS where the
  // name is taken, or promised to another matrix under way. Idle replicas of the
  // device make way, those first that were not used for the longest time.
  absl::StatusOr<StoreReservation> Reserve(size_t device_index, uint64_t bytes,
                                           const KeepSpec& keep);
  // From here on the matrix can be named, unless it was deleted meanwhile.
  MatrixRecord Add(StoreReservation room, std::shared_ptr<MatrixMemory> memory);

  // NOT_FOUND for a matrix that is not there, or was deleted.
  absl::StatusOr<MatrixPin> Pin(const MatrixKey& key);
  // Of a matrix that is still on its way under the name, the name is taken back
  // and the matrix let go as soon as it is added; the record has only id and name.
  absl::StatusOr<MatrixRecord> Delete(const MatrixKey& key);
  // Forgets a matrix that `pin` still holds; does nothing where it is gone.
  void Forget(const MatrixPin& pin);
  MatrixPage List(absl::string_view name_prefix, int page_size, absl::string_view page_token);

  // The replica of the matrix on the device; empty where there is none that serves.
  ReplicaPin PinReplica(const MatrixPin& pin, size_t device_index);
  // Whether PinReplica would find one.
  bool HasReplica(const MatrixPin& pin, size_t device_index) const;
  absl::StatusOr<StoreReservation> ReserveReplica(size_t device_index, uint64_t bytes);
  // Takes the replica in. Where another one has come first that one is pinned.
  ReplicaPin AddReplica(const MatrixPin& pin, StoreReservation room,
                        std::shared_ptr<Replica> replica);
  // Lets go of the device's idle replica that was not used for the longest time; false
  // where there is none.
  bool DropIdleReplica(size_t device_index);

  // The device that holds the most bytes of matrices whose names have the same folder,
  // what comes before the last '/'; nullopt where the name has none, or no device.
  std::optional<size_t> DeviceOfFolder(absl::string_view name) const;

  MatrixRecord Record(const MatrixPin& pin) const;
  int count() const;
  uint64_t used_bytes(size_t device_index) const;
  // Of that: replicas that make way where room is needed.
  uint64_t idle_replica_bytes(size_t device_index) const;
  ReplicaStats replica_stats(size_t device_index) const;
  uint64_t quota_bytes() const { return quota_bytes_; }
  int max_matrices() const { return max_matrices_; }

 private:
  friend class StoreReservation;
  friend class MatrixPin;
  friend class ReplicaPin;
  using Matrices = std::map<std::string, std::shared_ptr<ResidentMatrix>>;
  // What was taken out under the lock. Destroyed without it, as it may be the last
  // owner of memory and room: so declared before the lock.
  struct Dropped {
    std::shared_ptr<ResidentMatrix> matrix;
    std::vector<std::shared_ptr<ResidentReplica>> replicas;
  };
  struct Named {
    std::string id;
    size_t device_index = 0;
    uint64_t bytes = 0;
  };
  struct DeviceShare {
    uint64_t used_bytes = 0;
    uint64_t idle_bytes = 0;                   // of those
    std::map<uint64_t, ResidentMatrix*> idle;  // whose replica here, the oldest first
    ReplicaStats replicas;
  };

  absl::StatusOr<Matrices::iterator> Find(const MatrixKey& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Dropped Erase(Matrices::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the quota hold `bytes` more, or says why it cannot.
  absl::Status MakeRoom(size_t device_index, uint64_t bytes, Dropped& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldestIdle(size_t device_index, Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndIdleness(ResidentReplica& replica) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ReplicaPin FindReplica(const MatrixPin& pin, size_t device_index, Dropped& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UnpinReplica(ResidentMatrix& matrix, const std::shared_ptr<ResidentReplica>& held);
  MatrixRecord RecordOf(const ResidentMatrix& matrix) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unpin(ResidentMatrix& matrix);
  void Return(const StoreReservation& room, bool name_too);
  void ExpireAt(absl::Time at, std::string id);
  void OnExpiry(const std::string& id);

  const uint64_t quota_bytes_;
  const int max_matrices_;
  const std::string id_prefix_;  // differs from one server start to the next
  Timer& timer_;

  mutable Mutex mutex_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;  // resident, reserved, or deleted in use
  std::vector<DeviceShare> shares_ ABSL_GUARDED_BY(mutex_);  // by device
  uint64_t next_idle_ ABSL_GUARDED_BY(mutex_) = 1;
  Matrices by_id_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Named> by_name_ ABSL_GUARDED_BY(mutex_);  // reserved ones too
  std::set<std::string> deleted_early_ ABSL_GUARDED_BY(mutex_);   // ids of reservations
  std::map<std::string, Timer::Id> expiries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
