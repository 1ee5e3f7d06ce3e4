// Matrices on their way into the store: whole, or split over several calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/core/core.h"
#include "server/engine/core/deadline_guard.h"
#include "server/engine/transfer/payload_upload.h"
#include "server/engine/transfer/upload.h"

namespace gemmd {

class UploadImpl;

// What tells uploads apart: the upload_id of a split one, a number of its own for
// one that a single call brings.
using UploadKey = std::pair<std::string, uint64_t>;

// One matrix being uploaded, by one call or by several that share an upload_id.
// Thread-safe; held by its calls and by the UploadGroups.
class UploadGroup {
 public:
  UploadGroup(EngineCore& core, const UploadSpec& spec, UploadKey key,
              std::shared_ptr<MatrixMemory> memory, StoreReservation room);

  // A further call's range. INVALID_ARGUMENT where the call disagrees with the
  // first one, or its range overlaps another's.
  absl::Status Join(const UploadSpec& spec, ByteSpan range);
  // From here on Fail ends `member`, too. ABORTED where another call has failed
  // since the call joined, so that Fail does not know of it.
  absl::Status AddMember(std::weak_ptr<UploadImpl> member);

  // A range is on the device. The one that completes the matrix adds it to the
  // store. ABORTED where another call has failed.
  absl::StatusOr<UploadResult> Land(ByteSpan range);
  // Lets the memory go, and ends the calls: with ABORTED for one's failure, or
  // all with `why`.
  void Fail(const absl::Status& why);
  void Expire(const absl::Status& why);

  // Bytes that a call received, and that were copied or dropped since.
  void Received(uint64_t bytes);
  void Consumed(uint64_t bytes);
  // Since when the clients have owed the next byte: now, while the server has yet
  // to take bytes that it received.
  absl::Time idle_since();
  std::shared_ptr<MatrixMemory> memory();
  size_t device_index() const { return device_index_; }

 private:
  EngineCore& core_;
  const size_t device_index_;
  const UploadSpec spec_;  // of the first call
  const UploadKey key_;
  MatrixRecord pending_;  // what is known before the matrix is in the store
  Mutex mutex_;
  std::shared_ptr<MatrixMemory> memory_ ABSL_GUARDED_BY(mutex_);
  StoreReservation room_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> claimed_ ABSL_GUARDED_BY(mutex_);  // begin -> end
  uint64_t landed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t unconsumed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_activity_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<UploadImpl>> members_ ABSL_GUARDED_BY(mutex_);
};

// The uploads under way that clients bring bytes for. Each holds a place in the
// store, which bounds them, and ends where no byte comes. Thread-safe.
class UploadGroups {
 public:
  explicit UploadGroups(EngineCore& core) : core_(core) {}

  // The group that the call belongs to, with its range claimed.
  absl::StatusOr<std::shared_ptr<UploadGroup>> Join(const UploadSpec& spec, ByteSpan range);
  void Remove(const UploadKey& key, const UploadGroup* group);

 private:
  struct Entry {
    std::shared_ptr<UploadGroup> group;
    Timer::Id idle_check;
  };
  void Enter(const UploadKey& key, std::shared_ptr<UploadGroup> group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckIdleAt(const UploadKey& key, Entry& entry, absl::Time at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnIdleCheck(const UploadKey& key);

  EngineCore& core_;
  Mutex mutex_;
  uint64_t last_whole_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<UploadKey, Entry> by_key_ ABSL_GUARDED_BY(mutex_);
};

// One PutMatrix call: its bytes go over the upload stream as they come, or its
// elements are drawn on a compute stream once the scheduler has given it one.
class UploadImpl final : public Upload,
                         public Cancellable,
                         public Runnable,
                         public std::enable_shared_from_this<UploadImpl> {
 public:
  // The codes are those of Engine::BeginUpload.
  static absl::StatusOr<std::shared_ptr<UploadImpl>> Begin(EngineCore& core, UploadSpec spec,
                                                           UploadDone done);
  UploadImpl(EngineCore& core, UploadSpec spec, ByteSpan range, AdmissionTicket ticket,
             std::shared_ptr<UploadGroup> group, UploadDone done);

  void Start() override;
  void Append(uint64_t offset, absl::Cord bytes, absl::AnyInvocable<void()> consumed) override;
  void EndOfPayload() override;
  void Cancel(absl::Status why) override;
  absl::string_view Where() override { return "in transfer"; }
  void Run(StreamLease stream) override;

 private:
  // Null once the call or its group has ended.
  std::shared_ptr<MatrixMemory> Target();
  void OnCopied();
  void NotifyLanded();
  void OnLanded(const absl::Status& status);
  void End(absl::StatusOr<UploadResult> result);

  EngineCore& core_;
  const UploadSpec spec_;
  const ByteSpan range_;
  const absl::Time arrived_;
  const size_t device_index_;
  DeadlineGuard deadline_guard_;

  Mutex mutex_;
  AdmissionTicket ticket_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<UploadGroup> group_ ABSL_GUARDED_BY(mutex_);  // null once ended
  std::shared_ptr<PayloadUpload> upload_ ABSL_GUARDED_BY(mutex_);
  bool copied_ ABSL_GUARDED_BY(mutex_) = false;         // the last copy was enqueued
  bool payload_ended_ ABSL_GUARDED_BY(mutex_) = false;  // and nothing was missing
  UploadDone done_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
