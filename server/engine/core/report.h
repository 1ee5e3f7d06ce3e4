// The report of a job that has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemm/problem.h"
#include "gemm/tuning.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

enum class Role : uint8_t { kA, kB, kC, kBias, kScalesA, kScalesB };
inline constexpr int kRoleCount = 6;
inline constexpr Role kRoles[kRoleCount] = {Role::kA,    Role::kB,       Role::kC,
                                            Role::kBias, Role::kScalesA, Role::kScalesB};
absl::string_view Name(Role role);  // "a", "b", "c", "bias", "scales_a", "scales_b"

// One for each role.
template <typename T>
struct ByRole {
  T values[kRoleCount]{};

  T& operator[](Role role) { return values[static_cast<size_t>(role)]; }
  const T& operator[](Role role) const { return values[static_cast<size_t>(role)]; }
  T* begin() { return values; }
  T* end() { return values + kRoleCount; }
  const T* begin() const { return values; }
  const T* end() const { return values + kRoleCount; }

  friend bool operator==(const ByRole&, const ByRole&) = default;
};

// A resident operand of another device than the job's, which the job read from a replica.
struct OperandCopy {
  Role role = Role::kA;
  std::string from_device;
  uint64_t bytes = 0;  // dense
  CopyRoute route = CopyRoute::kHost;
  bool reused = false;  // the replica already existed, complete or under way
};

struct PhaseDurations {
  absl::Duration receive;
  absl::Duration queue;
  absl::Duration device_to_device;  // operands copied from other devices
  absl::Duration host_to_device;
  absl::Duration kernel;
  absl::Duration transpose;  // part of `kernel`
  absl::Duration check;      // of the product
  absl::Duration device_to_host;
  absl::Duration send;
  absl::Duration total;
};

// The outcome of a product's check (job/result_check.h).
enum class CheckResult : uint8_t {
  kNone,     // there was none
  kPassed,   // within the likely bound
  kPartial,  // the same, but some rows are not covered: NaN or infinities
  kUnusual,  // two kernels are beyond the likely bound and within the possible one
  kSuspect,  // beyond the likely bound; the product of another kernel is within it
  kWrong,    // beyond the possible bound; the product of another kernel was delivered
  kLost,     // so was that of another kernel: the job failed
};
absl::string_view Name(CheckResult result);  // "passed", "suspect"

struct CheckReport {
  CheckResult result = CheckResult::kNone;
  std::string why_not;  // there was none, though it was to be
  // The largest residual of a row of the product that was delivered, as a multiple of its
  // likely bound.
  double of_bound = 0;
  int64_t uncovered_rows = 0;
  // The accumulators were checked, and the epilogue was a pass after that.
  bool before_activation = false;
  std::string failed_kernel;   // whose product was replaced
  double failed_of_bound = 0;  // the residual of that one
};

// Why a kernel was chosen.
enum class ChoiceRule : uint8_t {
  kNone,        // none was
  kRequest,     // the request names it
  kRank,        // the catalogue's ranking
  kTableExact,  // the tuning table, which has the shape
  kTableNear,   // the tuning table, by the nearest shape that it has
  kCheck,       // another kernel's product failed its check
  kEstimate,    // the least estimated time
};

// The entry of the tuning table that a choice is from. The shape is that of the row-major
// product: where the result is column-major, m and n have changed places.
struct TunedFrom {
  int64_t m = 0, n = 0, k = 0;
  double seconds = 0;           // of one launch, as measured
  bool other_versions = false;  // with another driver, CUDA or library
  bool other_epilogue = false;  // without the beta, bias or activation of the product
};

struct JobReport {
  std::string kernel;  // empty where the job ended before one was chosen
  std::string reason;
  ChoiceRule rule = ChoiceRule::kNone;
  std::optional<TunedFrom> tuned;  // where the rule is a table's
  std::map<std::string, int64_t> params;
  std::string device;
  std::string caller;          // empty where the server asks nobody
  absl::Duration device_time;  // the job's part of the time in which the device was busy
  // From the caller's point of view: the D of each product is m x n in the requested layout. In a
  // group, the dimension in which the products are stacked is the sum of theirs.
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;  // products of a batch
  int64_t group = 0;  // products of a group; 0: it is none
  // Jobs in one launch with this one, itself included. Each has an equal part of phases.kernel.
  int jobs_in_launch = 1;
  gemm::Types types{};
  Shape result;  // of all products
  std::vector<OperandCopy> copies;
  CheckReport check;
  PhaseDurations phases;
  uint64_t bytes_in = 0;   // payload received
  uint64_t bytes_out = 0;  // payload sent
  double flops = 0;        // 2 m n k of each product; 0 where none was made

  int64_t products() const { return group > 0 ? group : batch; }
  double tflops() const {
    const double seconds = absl::ToDoubleSeconds(phases.kernel);
    return seconds > 0 ? flops / seconds / 1e12 : 0;
  }
};

// The outcome of reading the tuning tables.
struct TuningLoad {
  size_t entries = 0;                // of all machines
  size_t used = 0;                   // by the device that uses the most
  size_t other_versions = 0;         // of those: measured with another driver, CUDA or library
  std::vector<std::string> skipped;  // kernels, by name, that cannot be used here
};

// Products of one kind, as tuning tables tell them apart.
struct TrafficEntry {
  gemm::TunedProduct product{};
  int64_t count = 0;
  double seconds = 0;  // of their kernels, all together
};

// A device that was lost, and what became of its resident matrices.
struct DeviceLoss {
  std::string device;
  absl::Status why;  // UNAVAILABLE
  int64_t matrices_lost = 0;
  int64_t matrices_moved = 0;
};

// Receives everything that metrics count. Called from any thread, with no lock held. Must
// be quick, and must outlive the engine.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  // Called for every job, also for a refused one, whose report has no kernel.
  virtual void OnJobEnd(const JobReport& report, const absl::Status& outcome) = 0;
  // Called once a job has left the device, where it was busy with it for `time`: before or after
  // OnJobEnd, and whatever becomes of the job.
  virtual void OnDeviceTime(absl::string_view /*caller*/, absl::Duration /*time*/) {}
  // Called for every matrix transfer outside a job. `upload`: PutMatrix, else GetMatrix.
  virtual void OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                             const absl::Status& outcome) = 0;
  // Called once for a device that is lost. Its jobs end after that.
  virtual void OnDeviceLost(const DeviceLoss& /*loss*/) {}
  // The tuning tables were read again, or could not be: then those read before stay in force.
  virtual void OnTuningReload(const absl::StatusOr<TuningLoad>& /*load*/) {}
};

}  // namespace gemmd
