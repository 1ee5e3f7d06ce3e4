// The engine: admits jobs and transfers, runs them on its devices, and keeps the
// resident matrices. It does not depend on gRPC.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/engine/bounds/options.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/core/report.h"
#include "server/engine/core/tuning.h"
#include "server/engine/device/device.h"
#include "server/engine/job/job.h"
#include "server/engine/job/ranking.h"
#include "server/engine/store/matrix.h"
#include "server/engine/transfer/download.h"
#include "server/engine/transfer/upload.h"

namespace gemmd {

// Thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;

  // INVALID_ARGUMENT names the option, its value and what is allowed. `observer` may be
  // null, and must outlive the engine.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const EngineOptions& options,
                                                        EngineObserver* observer);

  // Checks the job, picks its device and kernel, and reserves all the memory that it
  // needs. Errors:
  // - INVALID_ARGUMENT: the request is wrong on any server.
  // - NOT_FOUND: unknown matrix, kernel or family, or another caller's matrix.
  // - DATA_LOSS: a matrix whose only copy was on a device that is lost.
  // - PERMISSION_DENIED: a shared matrix to release or replace that belongs to another caller.
  // - FAILED_PRECONDITION: the devices of this server cannot run it.
  // - RESOURCE_EXHAUSTED: past a bound, or the queue is too long for the deadline.
  // - ALREADY_EXISTS: another matrix has the name of the result to keep.
  // - ABORTED: a matrix has another version than the one asked for.
  // - DEADLINE_EXCEEDED: the deadline has passed, or is too near for the job by itself.
  // - UNAVAILABLE: the server is draining, no device is healthy, or the one that holds an
  //   operand was lost just now.
  virtual absl::StatusOr<std::shared_ptr<Job>> Admit(JobSpec spec,
                                                     std::shared_ptr<JobListener> listener) = 0;

  // Which kernels take a product, and which of them a job without a choice of its own gets.
  // Errors as of Admit, for the device, the types and the family.
  virtual absl::StatusOr<KernelRanking> RankKernels(const RankingQuestion& question) const = 0;

  virtual absl::StatusOr<std::shared_ptr<Upload>> BeginUpload(UploadSpec spec, UploadDone done) = 0;
  virtual absl::StatusOr<std::shared_ptr<Download>> BeginDownload(
      DownloadSpec spec, std::shared_ptr<DownloadListener> listener) = 0;
  virtual absl::StatusOr<MatrixRecord> DeleteMatrix(const MatrixKey& key) = 0;
  // NOT_FOUND, ABORTED and DATA_LOSS as of Admit. Counts as no use of the matrix.
  virtual absl::StatusOr<MatrixRecord> DescribeMatrix(const MatrixKey& key) = 0;
  // Ordered by id.
  virtual absl::StatusOr<MatrixPage> ListMatrices(const MatrixQuery& query) = 0;
  // At most `most` of each order.
  virtual MatrixExtremes FirstMatrices(size_t most) const = 0;
  // The callers with the most waiting jobs on a device, by its index; at most `most`.
  virtual std::vector<WaitingFlow> WaitingFlows(size_t device, size_t most) const = 0;

  // The products that are worth tuning, since the start or the last ReloadTuning. They left the
  // choice of a kernel to the engine, and the tuning tables had no entry for their shape and this
  // device's versions. The `limit` that took the most time, the most first.
  virtual std::vector<TrafficEntry> ListTraffic(size_t limit) const = 0;

  virtual absl::Span<const std::unique_ptr<Device>> devices() const = 0;
  virtual const EngineOptions& options() const = 0;  // with the zeros filled in
  virtual EngineStats Stats() const = 0;
  // Takes one lock for a moment.
  virtual EngineActivity Activity() const = 0;
  // The outcome of the last reading of --tuning-tables and --idle-tuning.
  virtual TuningLoad tuning() const = 0;
  // Reads the files of --tuning-tables and --idle-tuning again, on a thread of its own. All later
  // choices go by them. FAILED_PRECONDITION if there are none, or if one cannot be read or is
  // wrong. The tables read before then stay in force. RESOURCE_EXHAUSTED where too many wait for a
  // reading. `done` may be called before this returns.
  virtual void ReloadTuning(TuningReloads::Done done) = 0;
  // Whether results wait because other receivers hold the staging memory of a device.
  virtual bool ResultStagingIsScarce() const = 0;

  // Whether an engine that was destroyed has left devices behind on which work still runs
  // that nothing can stop. The process must then end without exit handlers: those of the
  // driver may wait for that work.
  static bool LeftWorkBehind();

  // OK while any device is healthy.
  virtual absl::Status Health() const = 0;

  // From now on refuses new jobs and uploads with UNAVAILABLE, and downloads where no job runs that
  // may have kept its result, or has kept it just now (Admission::kTimeToFetch).
  virtual void StopAdmitting() = 0;
  // Waits until nothing runs, and cancels what is left at `deadline`. Returns whether
  // everything ended by itself.
  virtual bool Drain(absl::Time deadline) = 0;
};

}  // namespace gemmd
