// Listeners that record their calls, for tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "server/base/mutex.h"
#include "server/engine/engine.h"

namespace gemmd {

// Collects a job's result. Keeps the first `hold` pieces until Release, as a
// slow receiver would.
class JobRecorder : public JobListener {
 public:
  explicit JobRecorder(size_t hold = 0) : hold_(hold) {}

  void OnResult(ResultPiece piece) override {
    MutexLock lock(mutex_);
    if (done_.has_value()) called_after_end_ = true;
    if (piece.offset != bytes_.size()) out_of_order_ = true;
    bytes_.insert(bytes_.end(), piece.bytes.begin(), piece.bytes.end());
    if (held_.size() < hold_) held_.push_back(std::move(piece));
    changed_.NotifyAll();
  }
  void OnDone(absl::StatusOr<JobResult> result) override {
    MutexLock lock(mutex_);
    if (done_.has_value()) called_after_end_ = true;
    done_ = std::move(result);
    changed_.NotifyAll();
  }

  // The result, or DEADLINE_EXCEEDED of the test's own.
  absl::StatusOr<JobResult> Wait(absl::Duration timeout = absl::Seconds(30)) {
    const absl::Time deadline = absl::Now() + timeout;
    MutexLock lock(mutex_);
    while (!done_.has_value() && absl::Now() < deadline) {
      changed_.WaitFor(mutex_, std::min(deadline - absl::Now(), absl::Hours(1)));
    }
    if (!done_.has_value()) return absl::DeadlineExceededError("the test waited in vain");
    return *done_;
  }
  void WaitForBytes(size_t count) {
    MutexLock lock(mutex_);
    while (bytes_.size() < count && !done_.has_value()) changed_.Wait(mutex_);
  }
  void Release() {
    std::vector<ResultPiece> held;
    {
      MutexLock lock(mutex_);
      hold_ = 0;
      held.swap(held_);
    }
  }
  std::vector<std::byte> bytes() {
    MutexLock lock(mutex_);
    return bytes_;
  }
  bool misused() {
    MutexLock lock(mutex_);
    return called_after_end_ || out_of_order_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  size_t hold_ ABSL_GUARDED_BY(mutex_);
  std::vector<ResultPiece> held_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::byte> bytes_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::StatusOr<JobResult>> done_ ABSL_GUARDED_BY(mutex_);
  bool called_after_end_ ABSL_GUARDED_BY(mutex_) = false;
  bool out_of_order_ ABSL_GUARDED_BY(mutex_) = false;
};

class DownloadRecorder : public DownloadListener {
 public:
  void OnBytes(ResultPiece piece) override {
    MutexLock lock(mutex_);
    bytes_.insert(bytes_.end(), piece.bytes.begin(), piece.bytes.end());
  }
  void OnDone(absl::Status status) override {
    MutexLock lock(mutex_);
    done_ = std::move(status);
    changed_.NotifyAll();
  }
  absl::Status Wait() {
    MutexLock lock(mutex_);
    while (!done_.has_value()) changed_.Wait(mutex_);
    return *done_;
  }
  std::vector<std::byte> bytes() {
    MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::byte> bytes_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> done_ ABSL_GUARDED_BY(mutex_);
};

// Waits for an upload's end.
class UploadRecorder {
 public:
  UploadDone done() {
    return [this](absl::StatusOr<UploadResult> result) {
      MutexLock lock(mutex_);
      result_ = std::move(result);
      changed_.NotifyAll();
    };
  }
  // The result, or DEADLINE_EXCEEDED of the test's own.
  absl::StatusOr<UploadResult> Wait(absl::Duration timeout = absl::InfiniteDuration()) {
    const absl::Time deadline = absl::Now() + timeout;
    MutexLock lock(mutex_);
    while (!result_.has_value() && absl::Now() < deadline) {
      changed_.WaitFor(mutex_, std::min(deadline - absl::Now(), absl::Hours(1)));
    }
    if (!result_.has_value()) return absl::DeadlineExceededError("the test waited in vain");
    return *result_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<absl::StatusOr<UploadResult>> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
