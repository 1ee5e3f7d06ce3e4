// The report of a job that has ended.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemm/problem.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

enum class Role : uint8_t { kA, kB, kC, kBias };
inline constexpr int kRoleCount = 4;
inline constexpr Role kRoles[kRoleCount] = {Role::kA, Role::kB, Role::kC, Role::kBias};
absl::string_view Name(Role role);  // "a", "b", "c", "bias"

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
  absl::Duration device_to_host;
  absl::Duration send;
  absl::Duration total;
};

struct JobReport {
  std::string kernel;  // empty where the job ended before one was chosen
  std::string reason;
  std::map<std::string, int64_t> params;
  std::string device;
  // From the caller's point of view: D is m x n in the requested layout.
  int64_t m = 0, n = 0, k = 0;
  gemm::Types types{};
  bool column_major = false;
  std::vector<OperandCopy> copies;
  PhaseDurations phases;
  uint64_t bytes_in = 0;   // payload received
  uint64_t bytes_out = 0;  // payload sent
  double flops = 0;        // 2 m n k; 0 where no product was made

  double tflops() const {
    const double seconds = absl::ToDoubleSeconds(phases.kernel);
    return seconds > 0 ? flops / seconds / 1e12 : 0;
  }
};

// Receives everything that metrics count. Called from any thread, with no lock held. Must
// be quick, and must outlive the engine.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  // Called for every job, also for a refused one, whose report has no kernel.
  virtual void OnJobEnd(const JobReport& report, const absl::Status& outcome) = 0;
  // Called for every matrix transfer outside a job. `upload`: PutMatrix, else GetMatrix.
  virtual void OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                             const absl::Status& outcome) = 0;
};

}  // namespace gemmd
