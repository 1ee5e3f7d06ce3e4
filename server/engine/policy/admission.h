// Bounds the jobs and transfers under way, and their memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/bounds/caller_quota.h"
#include "server/engine/bounds/options.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/device/device.h"

namespace gemmd {

class Admission;

// A share of the bounds. Returned on destruction. Empty when moved from.
class AdmissionTicket {
 public:
  AdmissionTicket() = default;
  AdmissionTicket(AdmissionTicket&& other) noexcept { *this = std::move(other); }
  AdmissionTicket& operator=(AdmissionTicket&& other) noexcept;
  ~AdmissionTicket() { Reset(); }
  void Reset();

 private:
  friend class Admission;
  Admission* admission_ = nullptr;
  int jobs_ = 0;
  uint64_t bytes_ = 0;
  std::string caller_;  // of a job
};

// Work for a caller that can be ended early.
class Cancellable {
 public:
  virtual ~Cancellable() = default;
  virtual void Cancel(absl::Status why) = 0;
  // Its current step, for the error of a passed deadline: "in the queue".
  virtual absl::string_view Where() = 0;
  // Whether it cannot end well without this device.
  virtual bool Needs(const Device& device) = 0;
};

// Thread-safe. Must outlive its tickets.
class Admission {
 public:
  // One part in so many is kept for callers with less than that part.
  static constexpr int kReservedShare = 16;
  static constexpr absl::Duration kTimeToFetch = absl::Seconds(1);

  explicit Admission(const EngineOptions& options);

  // Admits a job that needs `bytes` of device memory. RESOURCE_EXHAUSTED past a bound, its
  // caller's or everybody's; UNAVAILABLE once closed.
  absl::StatusOr<AdmissionTicket> AdmitJob(uint64_t bytes, const CallerQuotaPtr& quota = nullptr);
  // Admits a matrix transfer. The store or its matrix bounds it, so it only counts as
  // under way. UNAVAILABLE once closed.
  absl::StatusOr<AdmissionTicket> AdmitTransfer();
  // The same of a download. Once closed these go on for as long as jobs run, and kTimeToFetch after
  // one has kept its result, which its caller may be about to fetch.
  absl::StatusOr<AdmissionTicket> AdmitDownload();
  void OnResultKept();

  // Registers work that Drain cancels when its time is up. An error means that it is up: the work
  // is not registered, and has to end by itself.
  absl::StatusOr<uint64_t> Register(std::weak_ptr<Cancellable> running);
  void Unregister(uint64_t id);

  void Close();
  // Admits no downloads either.
  void CloseDownloads();
  // Waits until every ticket was returned and the time to fetch has passed; false at `deadline`
  // where tickets are out.
  bool WaitIdle(absl::Time deadline);
  void CancelAll(const absl::Status& why);
  // Cancels what needs the device.
  void CancelOn(const Device& device, const absl::Status& why);

  // Jobs and admitted bytes of one caller.
  CallerShare share_of(absl::string_view caller) const;
  EngineActivity activity() const;
  Gauge jobs() const;
  Gauge admitted_bytes() const;

 private:
  friend class AdmissionTicket;
  void Return(const AdmissionTicket& ticket);
  AdmissionTicket Transfer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckJob(uint64_t bytes, const CallerQuotaPtr& quota) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The last part of the jobs and of their bytes is for callers with less than that, so that none
  // takes all. Callers without names have no such part.
  absl::Status CheckReserve(uint64_t bytes, const CallerQuotaPtr& quota) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<Cancellable>> Running();

  const uint64_t max_job_bytes_;
  const uint64_t max_admitted_bytes_;
  const int max_jobs_;
  mutable Mutex mutex_;
  CondVar idle_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool downloads_closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);
  absl::Time fetched_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int jobs_ ABSL_GUARDED_BY(mutex_) = 0;
  int tickets_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  CallerLedger callers_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::weak_ptr<Cancellable>> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
