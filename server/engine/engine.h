// The engine: admits jobs and transfers, runs them on its devices, and keeps the
// resident matrices. It does not depend on gRPC.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/engine/device.h"
#include "server/engine/job.h"
#include "server/engine/matrix.h"
#include "server/engine/options.h"
#include "server/engine/stats.h"

namespace gemmd {

struct ByteSpan {
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct UploadSpec {
  Shape shape;
  KeepSpec keep;
  std::optional<gemm::GeneratorSpec> generator;  // else bytes follow
  std::string device;                            // empty: the engine chooses
  std::string upload_id;                         // empty: this call brings everything
  std::optional<ByteSpan> range;                 // only with upload_id
  absl::Time deadline = absl::InfiniteFuture();
};

struct UploadResult {
  MatrixRecord matrix;
  bool complete = false;
  uint64_t bytes = 0;
  absl::Duration elapsed;
};

// Called once at the end of an upload, from any thread, maybe from inside a call.
using UploadDone = absl::AnyInvocable<void(absl::StatusOr<UploadResult>)>;

// The upload of one PutMatrix call. Thread-safe. Same rules as Job, except that it is
// complete only once its bytes are on the device and EndOfPayload was called. So a call
// that sends more bytes than announced leaves no matrix behind.
class Upload {
 public:
  virtual ~Upload() = default;
  virtual void Start() = 0;
  virtual void Append(uint64_t offset, absl::Cord bytes, absl::AnyInvocable<void()> consumed) = 0;
  virtual void EndOfPayload() = 0;
  virtual void Cancel(absl::Status why) = 0;
};

struct DownloadSpec {
  MatrixKey key;
  bool release = false;
  std::optional<ByteSpan> range;
  ReceiverId receiver = kPromptReceiver;  // whose share of staging the bytes wait in
  absl::Time deadline = absl::InfiniteFuture();
};

// Receives the bytes of a GetMatrix call. Same rules as JobListener.
class DownloadListener {
 public:
  virtual ~DownloadListener() = default;
  virtual void OnBytes(ResultPiece piece) = 0;
  virtual void OnDone(absl::Status status) = 0;
};
class Download {
 public:
  virtual ~Download() = default;
  virtual const MatrixRecord& matrix() const = 0;
  virtual ByteSpan range() const = 0;
  virtual void Start() = 0;
  virtual void Cancel(absl::Status why) = 0;
};

struct MatrixPage {
  std::vector<MatrixRecord> matrices;
  std::string next_token;
};

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
  // - NOT_FOUND: unknown matrix, kernel or family.
  // - FAILED_PRECONDITION: the devices of this server cannot run it.
  // - UNIMPLEMENTED: integer types, which no kernel takes.
  // - RESOURCE_EXHAUSTED: past a bound.
  // - ALREADY_EXISTS: another matrix has the name of the result to keep.
  // - DEADLINE_EXCEEDED: the deadline has passed.
  // - UNAVAILABLE: the server is draining, or no device is healthy.
  virtual absl::StatusOr<std::shared_ptr<Job>> Admit(JobSpec spec,
                                                     std::shared_ptr<JobListener> listener) = 0;

  virtual absl::StatusOr<std::shared_ptr<Upload>> BeginUpload(UploadSpec spec, UploadDone done) = 0;
  virtual absl::StatusOr<std::shared_ptr<Download>> BeginDownload(
      DownloadSpec spec, std::shared_ptr<DownloadListener> listener) = 0;
  virtual absl::StatusOr<MatrixRecord> DeleteMatrix(const MatrixKey& key) = 0;
  // Ordered by id. `page_size` is 1 to 1000.
  virtual absl::StatusOr<MatrixPage> ListMatrices(absl::string_view name_prefix, int page_size,
                                                  absl::string_view page_token) = 0;

  virtual absl::Span<const std::unique_ptr<Device>> devices() const = 0;
  virtual const EngineOptions& options() const = 0;  // with the zeros filled in
  virtual EngineStats Stats() const = 0;
  // Whether results wait because other receivers hold the staging memory of a device.
  virtual bool ResultStagingIsScarce() const = 0;

  // OK while any device is healthy.
  virtual absl::Status Health() const = 0;

  // From now on refuses new jobs and transfers with UNAVAILABLE.
  virtual void StopAdmitting() = 0;
  // Waits until nothing runs, and cancels what is left at `deadline`. Returns whether
  // everything ended by itself.
  virtual bool Drain(absl::Time deadline) = 0;
};

}  // namespace gemmd
