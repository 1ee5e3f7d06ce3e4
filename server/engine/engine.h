// The engine: admits jobs and transfers, runs them on its devices, keeps the
// resident matrices. Everything a gRPC service needs, and no gRPC.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/engine/bounds/options.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/core/report.h"
#include "server/engine/device/device.h"
#include "server/engine/job/job.h"
#include "server/engine/store/matrix.h"
#include "server/engine/transfer/download.h"
#include "server/engine/transfer/upload.h"

namespace gemmd {

// Thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;

  // INVALID_ARGUMENT names the option, its value and what is allowed.
  // `observer` may be null, and outlives the engine.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const EngineOptions& options,
                                                        EngineObserver* observer);

  // Checks the job, picks its device and kernel and reserves all the memory it
  // will need. Codes: INVALID_ARGUMENT for what no server would take,
  // NOT_FOUND for an unknown matrix or kernel, FAILED_PRECONDITION for what
  // this server's devices cannot do, UNIMPLEMENTED for types without a kernel,
  // RESOURCE_EXHAUSTED past a bound, DEADLINE_EXCEEDED, UNAVAILABLE when
  // draining or without a healthy device.
  virtual absl::StatusOr<std::shared_ptr<Job>> Admit(JobSpec spec,
                                                     std::shared_ptr<JobListener> listener) = 0;

  virtual absl::StatusOr<std::shared_ptr<Upload>> BeginUpload(UploadSpec spec, UploadDone done) = 0;
  virtual absl::StatusOr<std::shared_ptr<Download>> BeginDownload(
      DownloadSpec spec, std::shared_ptr<DownloadListener> listener) = 0;
  virtual absl::StatusOr<MatrixRecord> DeleteMatrix(const MatrixKey& key) = 0;
  // `page_size` 1 to 1000.
  virtual absl::StatusOr<MatrixPage> ListMatrices(absl::string_view name_prefix, int page_size,
                                                  absl::string_view page_token) = 0;

  virtual absl::Span<const std::unique_ptr<Device>> devices() const = 0;
  virtual const EngineOptions& options() const = 0;  // with the zeros filled in
  virtual EngineStats Stats() const = 0;
  // Whether results wait because others hold the staging memory of a device.
  virtual bool ResultStagingIsScarce() const = 0;

  // OK while any device is healthy.
  virtual absl::Status Health() const = 0;

  // Refuses new jobs and transfers from now on with UNAVAILABLE.
  virtual void StopAdmitting() = 0;
  // Waits until nothing runs, or cancels what is left at `deadline`. True where
  // everything ended by itself.
  virtual bool Drain(absl::Time deadline) = 0;
};

}  // namespace gemmd
