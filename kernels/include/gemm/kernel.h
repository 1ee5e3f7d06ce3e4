// A row of the catalogue: a kernel, the products that it takes and its launch.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

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

// The default of a launch parameter whose value the kernel chooses by the shape. No range includes
// it: a caller cannot set it.
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

// For a kernel that transposes an operand before it can read it: it records `event` after the
// transposes.
struct TransposeMark {
  CUevent_st* event = nullptr;
  bool recorded = false;  // false: nothing was transposed
};

// A GPU queues a bounded number of launches, about 1,024 on all of its streams. A thread that
// enqueues one more blocks. So a product of many launches is enqueued in pieces, each once the one
// before has run.
inline constexpr int64_t kLaunchesInPiece = 128;
struct LaunchPiece {
  // In: the first product of this piece, as an index in the batch or group. Out: the first product
  // of the next piece; 0 once everything has been enqueued.
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
  // Set by others while the launch runs, when the product is no longer needed. A host kernel checks
  // it between tiles and returns Stopped(), with D in any state. May be null.
  const std::atomic<bool>* stop = nullptr;
};

// For kernels of the host.
inline bool IsStopped(const Launch& launch) {
  return launch.stop != nullptr && launch.stop->load(std::memory_order_relaxed);
}
// CANCELLED: the product is no longer needed.
absl::Status Stopped();

// CUDA compute capability as major * 10 + minor: 80, 86, 89, 90.
struct Capability {
  int min = 0;
  int max = 9999;
};

// The architecture that a program's own device code was compiled for. Each includes the features of
// those before it.
enum class DeviceCode : uint8_t {
  kAny,    // every architecture that the project can be compiled for
  kSm89,   // and higher, sm_90 too: has mma.sync of fp8
  kSm90a,  // and no other: has wgmma, and registers that move between warpgroups
};

// A device, as kernels depend on it.
struct DeviceCaps {
  Target target = Target::kHost;
  int capability = 0;  // major * 10 + minor; 0 on the host
  // The part of this program's code that the device runs, as the program may have code for several
  // architectures. It may use less than the device has: a GPU of 9.0 takes code for sm_90, and PTX
  // for sm_80.
  DeviceCode code = DeviceCode::kSm90a;
};

struct Kernel {
  absl::string_view name;
  absl::string_view family;
  absl::string_view summary;
  Target target = Target::kCuda;
  Capability capability;
  // The least that its machine code must be compiled for: it has none for anything less.
  DeviceCode code = DeviceCode::kAny;
  absl::Span<const Types> types;           // all combinations that it takes
  int tile_m = 0, tile_n = 0, tile_k = 0;  // 0 if a library decides
  int stages = 0;
  int threads = 0;
  size_t shared_memory_bytes = 0;
  absl::Span<const ParamSpec> params;
  bool deterministic = true;
  // The last resort if the caller names no kernel and no tuning table has one. The deterministic
  // kernel with the least estimate runs; if none has an estimate, the one with the highest rank.
  int auto_rank = 0;
  // Seconds that a problem of one of `types` should take. Null: unknown.
  double (*estimated_seconds)(const Problem&) = nullptr;
  // Takes Problem::batch above 1. Each product of a batch has the bits that the kernel gives it
  // alone.
  bool batches = false;
  // Takes a group by m in one launch. `workspace_bytes` is then asked for groups, too. Otherwise,
  // and for a group by k, RunProduct launches the products one by one. Each has the bits that the
  // kernel gives it alone.
  bool groups = false;
  // The rows of D have the same bits for every m, given the same parameters. So a product may be
  // computed in blocks of rows, each a problem of its own.
  bool row_blocks = false;
  // Takes block scales, with those of `types` that have fp8 operands.
  bool block_scales = false;
  // The largest m, n and k of one launch.
  int64_t max_extent = std::numeric_limits<int64_t>::max();

  // Scratch bytes for a problem of one of `types`. Null: none.
  size_t (*workspace_bytes)(const Problem&) = nullptr;

  // For RunProduct alone (gemm/run.h). Enqueues the product and returns; a host kernel
  // runs it before it returns. A kernel that needs a launch for each product of a batch honours
  // Launch::piece. Never allocates, never synchronises. CheckTypes accepts the problem, and the
  // workspace has workspace_bytes(problem).
  absl::Status (*launch)(const Launch&) = nullptr;
};

// Whether `kernel` can run on such a device, and whether it takes these types.
bool RunsOn(const Kernel& kernel, const DeviceCaps& device);
bool Takes(const Kernel& kernel, const Types& types);

// Whether `kernel` takes the problem in one launch: true for all but groups whose products it takes
// one by one.
bool TakesInOneLaunch(const Kernel& kernel, const Problem& problem);

// Scratch bytes of `kernel` for a problem of one of its types.
size_t WorkspaceBytes(const Kernel& kernel, const Problem& problem);

// OK, or FAILED_PRECONDITION with why `kernel` cannot run on such a device.
absl::Status CheckDevice(const Kernel& kernel, const DeviceCaps& device);

// OK, or INVALID_ARGUMENT that lists the combinations `kernel` takes.
absl::Status CheckTypes(const Kernel& kernel, const Types& types);

// OK, or INVALID_ARGUMENT if `batch` is above 1 and `kernel` takes single products alone.
absl::Status CheckBatch(const Kernel& kernel, int64_t batch);

// OK, or INVALID_ARGUMENT if `problem` has block scales and `kernel` takes none, or if the problem
// is not a single product of fp8 with scales of both operands.
absl::Status CheckBlockScales(const Kernel& kernel, const Problem& problem);

// OK, or INVALID_ARGUMENT where m, n or k is above `max_extent`, or the product has more tiles than
// one launch can have thread blocks. A launch may refuse for its size what this accepts: where
// blocks share a tile, or a caller's leading dimensions are larger than the rows.
absl::Status CheckSize(const Kernel& kernel, const Problem& problem);

}  // namespace gemm
