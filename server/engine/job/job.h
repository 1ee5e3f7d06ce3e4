// A product as the engine takes it, and the handle to one under way.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemm/generate.h"
#include "gemm/problem.h"
#include "server/engine/core/report.h"
#include "server/engine/device/staging.h"
#include "server/engine/store/matrix.h"
#include "server/engine/transfer/result_piece.h"

namespace gemmd {

// Where an operand's elements come from.
struct FromPayload {};  // Job::Append brings them
struct FromResident {   // a matrix in the store
  MatrixKey key;
  bool release = false;  // delete it once the job was accepted, by the queue, too
};
struct FromGenerator {
  gemm::GeneratorSpec spec;
};
struct OperandSpec {
  // Needed but for FromResident, where it must match if given.
  std::optional<Shape> shape;
  std::variant<FromPayload, FromResident, FromGenerator> source;
};

// Which kernel: by name, the best of a family, or (both empty) the engine's choice.
struct KernelRequest {
  std::string name;
  std::string family;
  std::map<std::string, int64_t> params;
};

struct JobSpec {
  OperandSpec a;
  OperandSpec b;
  std::optional<OperandSpec> c;
  std::optional<OperandSpec> bias;
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1;
  double scale_a = 1;  // an element of A, or of B, stands for its value times this
  double scale_b = 1;
  double beta = 0;
  gemm::Activation activation = gemm::Activation::kNone;
  double leaky_slope = 0.01;
  std::optional<gemm::DType> output_type;  // A's where left out, f16 for fp8
  bool output_column_major = false;
  std::optional<gemm::Compute> compute;  // by A's type where left out
  KernelRequest kernel;
  bool stream_result = true;
  // Asked about the result before anything is reserved; an error refuses the job.
  // Empty: any will do.
  std::function<absl::Status(const Shape& result)> check_result;
  std::optional<KeepSpec> keep_result;
  ReceiverId receiver = kPromptReceiver;  // whose share of staging the result waits in
  absl::Time deadline = absl::InfiniteFuture();
};

// How a job ended well.
struct JobResult {
  JobReport report;
  std::optional<MatrixRecord> kept;
};

// Whoever asked for a job. Calls come from any thread, one at a time, and may
// come from inside a call to Job, so hold no lock of yours around those.
class JobListener {
 public:
  virtual ~JobListener() = default;
  // Result bytes, in order. Hands over the piece; let it go once it was sent.
  virtual void OnResult(ResultPiece piece) = 0;
  // The last call, always made, once. For a streamed result it comes when all
  // pieces were let go, so that the report holds the send time.
  virtual void OnDone(absl::StatusOr<JobResult> result) = 0;
};

// A job under way. Thread-safe.
class Job {
 public:
  virtual ~Job() = default;

  // Begins; exactly once, before any other call.
  virtual void Start() = 0;

  // The next bytes of an operand whose source is FromPayload. `offset` must be
  // where the bytes before ended. `consumed` is called once the bytes were
  // copied or dropped, from any thread. Wrong bytes fail the job through the
  // listener; bytes for a job that has ended are dropped.
  virtual void Append(Role role, uint64_t offset, absl::Cord bytes,
                      absl::AnyInvocable<void()> consumed) = 0;

  // Whether bytes are missing that Append is to bring.
  virtual bool AwaitsPayload() = 0;

  // No more bytes will come: fails the job where some are missing.
  virtual void EndOfPayload() = 0;

  // Ends the job with `why` (not OK) unless it has ended already. What it held
  // comes back as soon as the device has let go of it.
  virtual void Cancel(absl::Status why) = 0;
};

}  // namespace gemmd
