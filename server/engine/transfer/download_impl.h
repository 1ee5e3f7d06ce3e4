// One GetMatrix call.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/gate.h"
#include "server/base/mutex.h"
#include "server/engine/core/core.h"
#include "server/engine/core/guards.h"
#include "server/engine/transfer/download.h"
#include "server/engine/transfer/result_download.h"

namespace gemmd {

class DownloadImpl final : public Download,
                           public Cancellable,
                           public std::enable_shared_from_this<DownloadImpl> {
 public:
  // The codes are those of Engine::BeginDownload.
  static absl::StatusOr<std::shared_ptr<DownloadImpl>> Begin(
      EngineCore& core, DownloadSpec spec, std::shared_ptr<DownloadListener> listener);
  DownloadImpl(EngineCore& core, const DownloadSpec& spec, ByteSpan range, AdmissionTicket ticket,
               MatrixPin pin, std::shared_ptr<DownloadListener> listener);

  const MatrixRecord& matrix() const override { return record_; }
  ByteSpan range() const override { return range_; }
  void Start() override;
  void Cancel(absl::Status why) override;
  absl::string_view Where() override { return "in transfer"; }
  bool Needs(const Device& device) override { return &device == &device_; }

 private:
  void End(const absl::Status& status);

  EngineCore& core_;
  const Device& device_;
  const ByteSpan range_;
  const ReceiverId receiver_;
  const absl::Time deadline_;
  const absl::Time arrived_;
  const MatrixRecord record_;
  DeadlineGuard deadline_guard_;
  ListenerGate gate_;

  Mutex mutex_;
  AdmissionTicket ticket_ ABSL_GUARDED_BY(mutex_);
  MatrixPin pin_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ResultDownload> download_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<DownloadListener> listener_ ABSL_GUARDED_BY(mutex_);  // null once ended
};

}  // namespace gemmd
