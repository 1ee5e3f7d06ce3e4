// A row of the catalogue: what a kernel is, what it takes and how to launch it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemm/problem.h"

struct CUstream_st;  // cudaStream_t is CUstream_st*
struct CUevent_st;   // cudaEvent_t is CUevent_st*

namespace gemm {

enum class Target : uint8_t { kHost, kCuda };

// Scratch memory for one launch, 256-byte aligned, on the kernel's device. Its
// content is undefined before and after.
struct Workspace {
  void* data = nullptr;
  size_t bytes = 0;
};

// The default of a launch parameter for which the kernel chooses a value by the shape.
// No range includes it: a caller cannot set it.
inline constexpr int64_t kOwnChoice = -1;

// A launch parameter that a caller may set.
struct ParamSpec {
  absl::string_view name;
  absl::string_view summary;
  int64_t min;
  int64_t max;
  int64_t default_value;
};

// Values in the order of the kernel's `params`.
inline constexpr size_t kMaxParams = 4;
using LaunchParams = std::array<int64_t, kMaxParams>;

// cuBLAS handles and caches of one stream; see gemm/libraries.h. Not thread-safe:
// the stream's owner owns it.
class Libraries;

// Told by a kernel that transposes an operand before its own loads can read it:
// it records `event` behind the transposes.
struct TransposeMark {
  CUevent_st* event = nullptr;
  bool recorded = false;  // false: nothing was transposed
};

// The launches of a GPU that wait at the same time are bounded, about 1,024 on all of its streams,
// and a thread that enqueues one more stands still. So a product that takes many of them is
// enqueued in pieces, each once the one before has run.
inline constexpr int64_t kLaunchesInPiece = 128;
struct LaunchPiece {
  // In: the product of the batch or group that the piece begins with. Out: the one that the next
  // piece begins with; 0 once everything has been enqueued.
  int64_t next = 0;
  bool more() const { return next > 0; }
};

struct Launch {
  const Problem& problem;
  const Operands& operands;
  Workspace workspace;
  LaunchParams params;
  CUstream_st* stream = nullptr;        // null on the host
  Libraries* libraries = nullptr;       // null on the host
  TransposeMark* transposed = nullptr;  // may be null
  LaunchPiece* piece = nullptr;         // null: everything is enqueued at once
  // Set while the launch runs: nobody needs the product any more. A kernel of the host looks at it
  // between tiles and returns Stopped(), with D in any state. May be null.
  const std::atomic<bool>* stop = nullptr;
};

// For kernels of the host.
inline bool IsStopped(const Launch& launch) {
  return launch.stop != nullptr && launch.stop->load(std::memory_order_relaxed);
}
// CANCELLED: what was being computed is not needed any more.
absl::Status Stopped();

// CUDA compute capability as major * 10 + minor: 80, 86, 89, 90.
struct Capability {
  int min = 0;
  int max = 9999;
};

// What a program's own device code was compiled for. Each has what those before it have.
enum class DeviceCode : uint8_t {
  kAny,    // every architecture that the project can be compiled for
  kSm89,   // and higher, sm_90 too: has mma.sync of fp8
  kSm90a,  // and no other: has wgmma, and registers that move between warpgroups
};

// A device, as kernels depend on it.
struct DeviceCaps {
  Target target = Target::kHost;
  int capability = 0;  // major * 10 + minor; 0 on the host
  // Of the code that this program has for several architectures, that which the device takes. It
  // may have less than the device: a GPU of 9.0 takes code for sm_90, and PTX for sm_80.
  DeviceCode code = DeviceCode::kSm90a;
};

struct Kernel {
  absl::string_view name;
  absl::string_view family;
  absl::string_view summary;
  Target target = Target::kCuda;
  Capability capability;
  // What its machine code has to be compiled for: for anything less it has none.
  DeviceCode code = DeviceCode::kAny;
  absl::Span<const Types> types;           // all combinations that it takes
  int tile_m = 0, tile_n = 0, tile_k = 0;  // 0 where a library decides
  int stages = 0;
  int threads = 0;
  size_t shared_memory_bytes = 0;
  absl::Span<const ParamSpec> params;
  bool deterministic = true;
  // Where the caller leaves the choice open and no tuning table has one, the deterministic
  // kernel with the least estimate runs, and where none has an estimate the one with the highest
  // rank.
  int auto_rank = 0;
  // Seconds that a problem of one of `types` should take. Null: nobody knows.
  double (*estimated_seconds)(const Problem&) = nullptr;
  // Takes Problem::batch above 1. Each product of a batch has the bits that the kernel gives it
  // alone.
  bool batches = false;
  // Takes a group by m in one launch: then `workspace_bytes` is asked for that, too. Where it does
  // not, and for a group by k, RunProduct launches the products one by one. Each has the bits that
  // the kernel gives it alone.
  bool groups = false;
  // The rows of D have the same bits whatever m is, given the same parameters: so a product may be
  // computed in blocks of rows, each a problem of its own.
  bool row_blocks = false;
  // Takes block scales, with those of `types` that have fp8 operands.
  bool block_scales = false;

  // Scratch bytes for a problem of one of `types`. Null: none.
  size_t (*workspace_bytes)(const Problem&) = nullptr;

  // For RunProduct alone (gemm/run.h). Enqueues the product and returns; a host kernel
  // runs it before it returns. One that needs a launch for each product of a batch takes
  // Launch::piece. Never allocates, never synchronises. CheckTypes accepts
  // the problem, and the workspace has workspace_bytes(problem).
  absl::Status (*launch)(const Launch&) = nullptr;
};

// Whether `kernel` can run on such a device, and whether it takes these types.
bool RunsOn(const Kernel& kernel, const DeviceCaps& device);
bool Takes(const Kernel& kernel, const Types& types);

// Whether `kernel` takes the problem in one launch: all but groups that it has to take apart.
bool TakesInOneLaunch(const Kernel& kernel, const Problem& problem);

// Scratch bytes of `kernel` for a problem of one of its types.
size_t WorkspaceBytes(const Kernel& kernel, const Problem& problem);

// OK, or FAILED_PRECONDITION with why `kernel` cannot run on such a device.
absl::Status CheckDevice(const Kernel& kernel, const DeviceCaps& device);

// OK, or INVALID_ARGUMENT that lists the combinations `kernel` takes.
absl::Status CheckTypes(const Kernel& kernel, const Types& types);

// OK, or INVALID_ARGUMENT where `batch` is above 1 and `kernel` takes single products alone.
absl::Status CheckBatch(const Kernel& kernel, int64_t batch);

// OK, or INVALID_ARGUMENT where `problem` has block scales and `kernel` takes none, or they are not
// those of both operands of a single product of fp8.
absl::Status CheckBlockScales(const Kernel& kernel, const Problem& problem);

}  // namespace gemm
