// The resident matrices and their replicas: names, ids, quotas, times to live, and use
// counts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/base/timer.h"
#include "server/engine/bounds/caller_quota.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/store/matrix.h"
#include "server/engine/store/matrix_memory.h"

namespace gemmd {

class MatrixStore;

// Room in the store for a matrix that is still being made: its bytes, its place in the count, its
// id and its name. A matrix that is to replace another does not hold the name. A replica holds only
// bytes. Returns all of it on destruction, unless the matrix was added. Empty when moved from.
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

// A replica in the store. Without users it is idle, and stays until its memory is needed
// or its matrix is deleted.
struct ResidentReplica {
  std::shared_ptr<Replica> replica;
  size_t device_index = 0;
  uint64_t bytes = 0;
  // Guarded by the store's lock.
  StoreReservation room;
  int in_use = 0;
  uint64_t idle_since = 0;  // its key in DeviceShare::idle; 0: not idle
};

// A resident matrix. `memory` and `shape` never change.
struct ResidentMatrix {
  std::shared_ptr<MatrixMemory> memory;
  MatrixRecord record;  // but for in_use and expires
  std::optional<absl::Duration> ttl;
  StoreReservation room;  // holds the quota as long as the memory
  // Guarded by the store's lock.
  int in_use = 0;
  int64_t uses = 0;
  absl::Time last_used;
  std::map<size_t, std::shared_ptr<ResidentReplica>> replicas;  // by device
};

// Use of a matrix. While held, the matrix stays in memory and does not expire.
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

// Use of a matrix's replica. While held, the replica stays in memory. A replica that is
// not complete when its last pin is released is abandoned. Empty when moved from.
class ReplicaPin {
 public:
  ReplicaPin() = default;
  ReplicaPin(ReplicaPin&& other) noexcept = default;
  ReplicaPin& operator=(ReplicaPin&& other) noexcept;
  ~ReplicaPin() { Reset(); }
  explicit operator bool() const { return held_ != nullptr; }
  const std::shared_ptr<Replica>& replica() const { return held_->replica; }
  // Whether it already existed, complete or under way.
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

// The outcome for the matrices of a device that was lost.
struct StoreLoss {
  int64_t lost = 0;
  int64_t moved = 0;  // their replica took their place
};

// Thread-safe. Must outlive its reservations and pins.
class MatrixStore {
 public:
  // `quota_bytes` is for each of `device_count` devices.
  MatrixStore(size_t device_count, uint64_t quota_bytes, int max_matrices, Timer& timer);
  ~MatrixStore();

  // RESOURCE_EXHAUSTED past the quota or the count; a replacement needs room beside the matrix that
  // it replaces. Drops idle replicas of the device if there is no room, the least recently used
  // first. If the name is taken, by a matrix or a reservation: ALREADY_EXISTS without `replace`,
  // PERMISSION_DENIED where it is another caller's, ABORTED where `if_version` does not allow it.
  // `quota`: the owner's bounds, which replicas do not count towards; null: none.
  absl::StatusOr<StoreReservation> Reserve(size_t device_index, uint64_t bytes,
                                           const KeepSpec& keep,
                                           const CallerQuotaPtr& quota = nullptr);
  // Adds the matrix, unless it was deleted meanwhile. From here on requests can refer to
  // it. One that is to replace another takes its name in the same step; if that is not
  // allowed any more, the errors are Reserve's and nothing is added.
  absl::StatusOr<MatrixRecord> Add(StoreReservation room, std::shared_ptr<MatrixMemory> memory);

  // NOT_FOUND for a matrix that does not exist, was deleted, is another caller's alone, or
  // is not of the owner that the key names. ABORTED for another version than the key's.
  // DATA_LOSS for one that went with its device.
  // PERMISSION_DENIED for one that is `to_release` and shared by another caller.
  absl::StatusOr<MatrixPin> Pin(const MatrixKey& key, bool to_release = false);
  // Deletes a matrix. Frees a name that is only reserved, by a matrix that is still being made.
  // That matrix is dropped when it is added; the record has only its id and name. A matrix that
  // went with its device is forgotten. Errors as of a matrix to release.
  absl::StatusOr<MatrixRecord> Delete(const MatrixKey& key);
  // Deletes the matrix of `pin`. Does nothing if it was deleted before.
  void Forget(const MatrixPin& pin);
  // Looks at no more than kMostSeenForAPage matrices: the store's lock is held meanwhile.
  static constexpr int kMostSeenForAPage = 4096;
  MatrixPage List(const MatrixQuery& query);
  // At most `most` of each order. The lock is released after every kMostSeenForAPage matrices, so
  // those that come or go meanwhile may be missing.
  MatrixExtremes Extremes(size_t most);

  // The device is lost: its matrices move to the place of a complete replica where they
  // have one, and keep the replicas on further devices. The others are lost, which Pin says of them
  // until they are deleted or another one takes the name (of as many as max_matrices). Replicas on
  // the device are dropped.
  StoreLoss LoseDevice(size_t device_index);

  // The replica of the matrix on the device; empty if there is no usable one.
  ReplicaPin PinReplica(const MatrixPin& pin, size_t device_index);
  // The bytes of the matrix that are not on the device yet; nullopt where they cannot be brought
  // there, as the matrix's own device is lost.
  std::optional<uint64_t> MissingBytes(const MatrixPin& pin, size_t device_index) const;
  absl::StatusOr<StoreReservation> ReserveReplica(size_t device_index, uint64_t bytes);
  // Adds and pins the replica. If another one was added before, pins that one.
  ReplicaPin AddReplica(const MatrixPin& pin, StoreReservation room,
                        std::shared_ptr<Replica> replica);
  // Drops the least recently used idle replica of the device; false if there is none.
  bool DropIdleReplica(size_t device_index);

  // The device that holds the most bytes of matrices in the folder of the name to keep. The folder
  // is the name up to its last '/'. Only names that this one would join count: the owner's, or the
  // shared ones. Nullopt if the name has no folder, or no device holds any.
  std::optional<size_t> DeviceOfFolder(const KeepSpec& keep) const;

  MatrixRecord Record(const MatrixPin& pin) const;
  // The same by its key, without a use of the matrix. Errors as of Pin.
  absl::StatusOr<MatrixRecord> Record(const MatrixKey& key);
  // Matrices and their bytes of one owner.
  CallerShare share_of(absl::string_view owner) const;
  int count() const;
  // Matrices whose time to live has passed.
  int64_t expired() const;
  uint64_t used_bytes(size_t device_index) const;
  // The part of used_bytes that idle replicas take, which are dropped if room is needed.
  uint64_t idle_replica_bytes(size_t device_index) const;
  ReplicaStats replica_stats(size_t device_index) const;
  uint64_t quota_bytes() const { return quota_bytes_; }
  int max_matrices() const { return max_matrices_; }

 private:
  friend class StoreReservation;
  friend class MatrixPin;
  friend class ReplicaPin;
  using Matrices = std::map<std::string, std::shared_ptr<ResidentMatrix>>;
  // Removed under the lock, destroyed without it. It may be the last owner of memory and room, so
  // it must be destroyed without the lock: declare it before the lock.
  struct Dropped {
    std::shared_ptr<ResidentMatrix> matrix;
    std::vector<std::shared_ptr<ResidentReplica>> replicas;
  };
  // A name among an owner's own, or among the shared ones.
  struct NameKey {
    bool shared = false;
    std::string owner;  // empty for a shared name
    std::string name;

    // NOLINTNEXTLINE(modernize-use-nullptr)
    friend auto operator<=>(const NameKey&, const NameKey&) = default;
  };
  // The holder of a name: a matrix, or a reservation for one.
  struct Named {
    std::string id;
    std::string owner;
    size_t device_index = 0;
    uint64_t bytes = 0;
    uint64_t version = 0;  // 0: a reservation
  };
  struct DeviceShare {
    uint64_t used_bytes = 0;
    uint64_t idle_bytes = 0;                   // of used_bytes
    std::map<uint64_t, ResidentMatrix*> idle;  // with an idle replica here, oldest first
    ReplicaStats replicas;
    bool lost = false;
  };

  static NameKey NameOf(const KeepSpec& keep) {
    return {keep.shared, keep.shared ? "" : keep.owner, keep.name};
  }
  static NameKey NameOf(const MatrixKey& key) {
    return {key.shared, key.shared ? "" : key.caller, key.name};
  }
  // Whether the name is taken when the room is: else when the matrix is complete.
  static bool ReservesName(const KeepSpec& keep);
  // Whether a matrix may be kept so, as far as its name goes. Errors as of Reserve.
  absl::Status CheckName(const KeepSpec& keep) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the matrix a version, and the name that it was reserved for. The matrix that it
  // replaces is erased. Errors as of Add.
  absl::Status TakeName(ResidentMatrix& matrix, Dropped& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The matrix, if the caller may see it and it is the one that the key asks for.
  absl::StatusOr<Matrices::iterator> Find(const MatrixKey& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ABORTED where a matrix that was to be the first of its name was replaced before it was
  // added, else OK.
  static absl::Status CheckOvertaken(const KeepSpec& keep, bool replaced);
  Dropped Erase(Matrices::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The matrix that went with its device, if the caller may see it; else null.
  const MatrixRecord* FindLost(const MatrixKey& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // DATA_LOSS of such a matrix, else OK.
  absl::Status CheckLost(const MatrixKey& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<MatrixRecord> DeleteLost(const MatrixKey& key, const MatrixRecord& lost)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RememberLost(const ResidentMatrix& matrix) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetLost(const NameKey& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetLost(const MatrixRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the replica is complete, on a device that is not lost.
  bool IsGood(const ResidentReplica& replica) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts a good replica into the place of its matrix, which keeps the other good ones; false
  // where there is none.
  bool MoveToReplica(Matrices::iterator it, Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes room for `bytes` in the quota, or returns why it cannot.
  absl::Status MakeRoom(size_t device_index, uint64_t bytes, Dropped& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldestIdle(size_t device_index, Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndIdleness(ResidentReplica& replica) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ReplicaPin FindReplica(const MatrixPin& pin, size_t device_index, Dropped& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UnpinReplica(ResidentMatrix& matrix, const std::shared_ptr<ResidentReplica>& held);
  MatrixRecord RecordOf(const ResidentMatrix& matrix) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unpin(ResidentMatrix& matrix);
  void Return(const StoreReservation& room);
  void ExpireAt(absl::Time at, std::string id);
  void OnExpiry(const std::string& id);

  const uint64_t quota_bytes_;
  const int max_matrices_;
  const std::string id_prefix_;  // differs from one server start to the next
  Timer& timer_;

  mutable Mutex mutex_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t last_version_ ABSL_GUARDED_BY(mutex_) = 0;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;  // resident, reserved, or deleted in use
  std::vector<DeviceShare> shares_ ABSL_GUARDED_BY(mutex_);  // by device
  CallerLedger owners_ ABSL_GUARDED_BY(mutex_);              // of what count_ counts
  uint64_t next_idle_ ABSL_GUARDED_BY(mutex_) = 1;
  Matrices by_id_ ABSL_GUARDED_BY(mutex_);
  std::map<NameKey, Named> by_name_ ABSL_GUARDED_BY(mutex_);
  // Reservations whose name went before they were added, by id: whether to a replacement.
  std::map<std::string, bool> deleted_early_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Timer::Id> expiries_ ABSL_GUARDED_BY(mutex_);
  int64_t expired_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, MatrixRecord> lost_ ABSL_GUARDED_BY(mutex_);   // with their device, by id
  std::map<NameKey, std::string> lost_names_ ABSL_GUARDED_BY(mutex_);  // their ids
};

}  // namespace gemmd
