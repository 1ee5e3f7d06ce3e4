// Uploads of matrices to the store, by one call or split over several.
#pragma once

#include <atomic>
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
#include "server/engine/core/guards.h"
#include "server/engine/transfer/payload_upload.h"
#include "server/engine/transfer/upload.h"

namespace gemmd {

class UploadImpl;

// Identifies an upload: by its owner's upload_id if it is split, else by a unique number.
struct UploadKey {
  std::string owner;
  std::string upload_id;
  uint64_t whole = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const UploadKey&, const UploadKey&) = default;
};

// The most calls of one upload. Each is remembered until the upload ends.
inline constexpr int kMostUploadCalls = 4096;

// One matrix being uploaded, by one call or by several with the same upload_id.
// Thread-safe. Held by its calls and by UploadGroups.
class UploadGroup {
 public:
  UploadGroup(EngineCore& core, const UploadSpec& spec, UploadKey key,
              std::shared_ptr<MatrixMemory> memory, StoreReservation room);

  // Claims the range of a further call. INVALID_ARGUMENT if the call differs from the
  // first one, or its range overlaps another's, or there were kMostUploadCalls.
  absl::Status Join(const UploadSpec& spec, ByteSpan range);
  // From here on Fail ends `member`, too. ABORTED if another call has failed since this
  // one joined.
  absl::Status AddMember(std::weak_ptr<UploadImpl> member);

  // Called when a range is on the device. The last range adds the matrix to the store;
  // errors as of MatrixStore::Add. ABORTED if another call has failed.
  absl::StatusOr<UploadResult> Land(ByteSpan range);
  // Release the memory and end the calls. Fail: one call has failed with `why`, and the
  // others end with ABORTED. Expire: all end with `why`.
  void Fail(const absl::Status& why);
  void Expire(const absl::Status& why);

  // Count bytes that a call received, and bytes that were then copied or dropped.
  void Received(uint64_t bytes);
  void Consumed(uint64_t bytes);
  // Since when the server has waited for the clients' next byte. Now, if the server has
  // yet to take received bytes, or holds a call back.
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
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t landed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t unconsumed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_activity_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<UploadImpl>> members_ ABSL_GUARDED_BY(mutex_);
};

// The uploads under way whose bytes clients send. Each holds a place in the store, which
// bounds their number, and ends when no byte arrives for --upload-timeout. Thread-safe.
class UploadGroups {
 public:
  explicit UploadGroups(EngineCore& core) : core_(core) {}

  // Returns the group of the call, with the call's range claimed.
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

// One PutMatrix call. Its bytes are copied on the upload stream as they arrive, or its
// elements are generated on a compute stream once the scheduler has assigned one.
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
  bool Needs(const Device& device) override { return &device == &this->device(); }
  void Run(StreamLease stream) override;
  // As UploadSpec has it.
  bool held_back() const { return spec_.held_back != nullptr && *spec_.held_back; }

 private:
  Device& device() const { return *core_.devices[device_index_]; }
  // The target memory; null once the call or its group has ended.
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
  const JobWork work_;  // of its generator
  DeadlineGuard deadline_guard_;

  std::atomic<bool> stopped_{false};  // written once, as group_ goes: a generator that runs ends

  Mutex mutex_;
  AdmissionTicket ticket_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<UploadGroup> group_ ABSL_GUARDED_BY(mutex_);  // null once ended
  std::shared_ptr<PayloadUpload> upload_ ABSL_GUARDED_BY(mutex_);
  bool copied_ ABSL_GUARDED_BY(mutex_) = false;         // the last copy was enqueued
  bool payload_ended_ ABSL_GUARDED_BY(mutex_) = false;  // and nothing was missing
  UploadDone done_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
