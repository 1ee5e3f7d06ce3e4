// What is known of a job once it has ended.
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

// A resident operand that lies on another device than the job's, and was read from a
// replica there.
struct OperandCopy {
  Role role = Role::kA;
  std::string from_device;
  uint64_t bytes = 0;  // dense
  CopyRoute route = CopyRoute::kHost;
  bool reused = false;  // the replica was there already, or on its way
};

struct PhaseDurations {
  absl::Duration receive;
  absl::Duration queue;
  absl::Duration device_to_device;  // operands brought over from other devices
  absl::Duration host_to_device;
  absl::Duration kernel;
  absl::Duration transpose;  // of the kernel's time
  absl::Duration device_to_host;
  absl::Duration send;
  absl::Duration total;
};

struct JobReport {
  std::string kernel;  // empty where the job ended before one was chosen
  std::string reason;
  std::map<std::string, int64_t> params;
  std::string device;
  // As the caller sees it: D is m x n in the layout it asked for.
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

// Told of everything that metrics count. Called from any thread, with no lock
// held; must be quick. Outlives the engine.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  // Every job that was admitted, and every one that was refused (its report
  // has no kernel).
  virtual void OnJobEnd(const JobReport& report, const absl::Status& outcome) = 0;
  // A matrix transfer outside a job. `upload`: PutMatrix, else GetMatrix.
  virtual void OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                             const absl::Status& outcome) = 0;
};

}  // namespace gemmd
