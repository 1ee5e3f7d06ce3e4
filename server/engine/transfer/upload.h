// The specification of an upload into the store, and the handle to one call of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "gemm/generate.h"
#include "server/engine/bounds/caller_quota.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

struct UploadSpec {
  Shape shape;
  KeepSpec keep;
  std::optional<gemm::GeneratorSpec> generator;  // else bytes follow
  std::string device;                            // empty: the engine chooses
  std::string upload_id;                         // empty: this call brings everything
  std::optional<ByteSpan> range;                 // only with upload_id
  absl::Time deadline = absl::InfiniteFuture();
  CallerQuotaPtr quota;  // of the caller
  std::string flow;      // as in JobSpec: a generator waits for a stream
  // Whether the server itself takes no more bytes of the call for now, so that their delay is
  // not the client's. Null: it never does.
  std::shared_ptr<const std::atomic<bool>> held_back;
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

}  // namespace gemmd
