// The specification of a product, and the handle to one under way.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemm/generate.h"
#include "gemm/problem.h"
#include "server/engine/bounds/caller_quota.h"
#include "server/engine/bounds/options.h"
#include "server/engine/core/report.h"
#include "server/engine/device/staging.h"
#include "server/engine/store/matrix.h"
#include "server/engine/transfer/download.h"

namespace gemmd {

// The source of an operand's elements.
struct FromPayload {};  // Job::Append brings them
struct FromResident {   // a matrix in the store
  MatrixKey key;
  bool release = false;  // delete it once the job was accepted, by the queue, too
};
struct FromGenerator {
  gemm::GeneratorSpec spec;
};
struct OperandSpec {
  // Required, except for FromResident, where it must match if given.
  std::optional<Shape> shape;
  std::variant<FromPayload, FromResident, FromGenerator> source;
};

// Which kernel: the one with this name, the best of this family, or (both empty) the
// engine's choice.
struct KernelRequest {
  std::string name;
  std::string family;
  std::map<std::string, int64_t> params;
};

// Which operands of a batch, or of a group, all of its products share.
using SharedOperands = ByRole<bool>;

// The size of one product of a group.
struct ProductSize {
  int64_t m = 0, n = 0, k = 0;
};

struct JobSpec {
  OperandSpec a;
  OperandSpec b;
  std::optional<OperandSpec> c;
  std::optional<OperandSpec> bias;
  std::optional<OperandSpec> scales_a;  // of the blocks of A; both or neither
  std::optional<OperandSpec> scales_b;
  // Products of one shape. Each matrix holds those of all products, one after the other in its
  // lines. A shared operand is one matrix for all.
  int64_t batch = 1;
  // Instead of a batch: products that may differ in one dimension. Empty: no group.
  std::vector<ProductSize> group;
  SharedOperands shared{};
  // Set: the product is a block of rows of one with so many.
  std::optional<int64_t> product_rows;
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1;
  double scale_a = 1;  // elements of A (of B) are multiplied by this
  double scale_b = 1;
  double beta = 0;
  gemm::Activation activation = gemm::Activation::kNone;
  double leaky_slope = 0.01;
  std::optional<gemm::DType> output_type;  // A's where left out, f16 for fp8, s32 for s8
  bool output_column_major = false;
  std::optional<gemm::Compute> compute;  // by A's type where left out
  KernelRequest kernel;
  Verify verify = Verify::kOff;  // at least this, and at least what the engine's options say
  bool stream_result = true;
  // Checks the result's shape before anything is reserved; an error refuses the job.
  // Empty: no check.
  std::function<absl::Status(const Shape& result)> check_result;
  std::optional<KeepSpec> keep_result;
  ReceiverId receiver = kPromptReceiver;  // whose share of staging the result waits in
  absl::Time deadline = absl::InfiniteFuture();
  CallerQuotaPtr quota;  // of the caller
  // The flow whose turn it takes in the queue (policy/fair_queue.h): the caller's name, or the
  // client's connection if the server asks nobody.
  std::string flow;
};

// The result of a job that succeeded.
struct JobResult {
  JobReport report;
  std::optional<MatrixRecord> kept;
};

// Receives the result of a job. Called from any thread, one call at a time, maybe from
// inside a call to Job: so hold no lock around calls to Job.
class JobListener {
 public:
  virtual ~JobListener() = default;
  // Result bytes, in order. The listener owns the piece; release it once it was sent.
  virtual void OnResult(ResultPiece piece) = 0;
  // The last call, made exactly once in any case. All of the job's resources have been
  // released. For a streamed result it comes when all pieces were released, so that the
  // report has the send time.
  virtual void OnDone(absl::StatusOr<JobResult> result) = 0;
};

// A job under way. Thread-safe.
class Job {
 public:
  virtual ~Job() = default;

  // Starts the job. Call exactly once, before any other function.
  virtual void Start() = 0;

  // The next bytes of an operand whose source is FromPayload. `offset` must be the end of
  // the bytes before. `consumed` is called from any thread once the bytes were copied or
  // dropped. Wrong bytes fail the job, and the listener gets the error. Bytes for a job
  // that has ended are dropped.
  virtual void Append(Role role, uint64_t offset, absl::Cord bytes,
                      absl::AnyInvocable<void()> consumed) = 0;

  // Whether payload bytes are still missing.
  virtual bool AwaitsPayload() = 0;

  // Says that no more bytes will come. Fails the job if some are missing.
  virtual void EndOfPayload() = 0;

  // Ends the job with `why` (not OK), unless it has ended already. Its resources are
  // released as soon as the device no longer uses them.
  virtual void Cancel(absl::Status why) = 0;
};

}  // namespace gemmd
