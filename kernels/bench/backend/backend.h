// The device that a benchmark measures: its memory, its clock and its launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/kernel.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

using LaunchFn = std::function<absl::Status(const Launch&)>;

// Memory of a backend, 256-byte aligned. Free it before the backend.
using Buffer = std::unique_ptr<void, std::function<void(void*)>>;

// A device's energy counter. Not thread-safe.
class EnergyCounter {
 public:
  virtual ~EnergyCounter() = default;

  // Joules that the whole device has taken since some moment in the past, whoever used it. The
  // device updates it only every few tens of milliseconds. An error says why it cannot be read.
  virtual absl::StatusOr<double> Joules() = 0;
};

// One device and one stream of work on it. Not thread-safe. An error of
// Synchronize or of a copy means that the device is lost.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual DeviceCaps caps() const = 0;
  virtual Metadata metadata() const = 0;
  // The last cache before memory.
  virtual size_t cache_bytes() const = 0;
  virtual size_t free_bytes() const = 0;

  virtual absl::StatusOr<Buffer> Allocate(size_t bytes) = 0;
  // The calls below take effect in their order, and may do so after they return.
  virtual absl::Status Fill(void* data, std::byte value, size_t bytes) = 0;
  virtual absl::Status Upload(void* device, const void* host, size_t bytes) = 0;
  virtual absl::Status Synchronize() = 0;

  // Copies `height` lines of `width` bytes, `pitch` apart, into host memory without gaps, once the
  // calls before it have taken effect.
  virtual absl::Status Read(const void* from, size_t pitch, size_t width, size_t height,
                            void* to) = 0;

  // A launch on this backend's stream.
  virtual Launch MakeLaunch(const Problem& problem, const Operands& operands, Workspace workspace,
                            const LaunchParams& params) = 0;

  // Seconds a call, of enqueue(0), enqueue(1), ... enqueue(count - 1). The first error of
  // `enqueue` ends it. Each call is expected to take `expected_seconds`; 0: unknown. If it is
  // known, the calls may be captured into a graph: then `enqueue` must have run before, and may
  // neither allocate nor wait for the device.
  virtual absl::StatusOr<double> Time(const std::function<absl::Status(int)>& enqueue, int count,
                                      double expected_seconds) = 0;

  // Repeats a batch of enqueue(0), ... enqueue(count - 1) back to back until `again`, asked after
  // each batch that has ended, returns false. A device that works beside the host goes on with
  // another batch meanwhile, and ends it. `enqueue` has the requirements that Time has if the time
  // is known.
  virtual absl::Status Repeat(const std::function<absl::Status(int)>& enqueue, int count,
                              const std::function<bool()>& again);

  // The device's counter of energy, which the backend owns. UNAVAILABLE, with the reason, if
  // it has none.
  virtual absl::StatusOr<EnergyCounter*> energy() {
    return absl::UnavailableError("a device of this kind has none");
  }

  // At most `count` algorithms of the vendor's library for the product, its own choice
  // first. Empty if it has only one.
  virtual std::vector<LaunchFn> VendorAlgorithms(const Problem& problem, const Operands& operands,
                                                 int count) = 0;
};

// One kind of device, a row of the table in backend.cc.
struct BackendKind {
  absl::string_view name;
  // Whether there may be several, as "cuda:1". Otherwise the ordinal is 0.
  bool numbered = false;
  // UNAVAILABLE without such a device.
  absl::StatusOr<std::unique_ptr<Backend>> (*create)(int ordinal);
};

std::unique_ptr<Backend> CreateHostBackend();
// In builds with CUDA. UNAVAILABLE without such a device.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int ordinal);

// "host", "cuda", "cuda:1"; "auto" is the first of the table's kinds that has a device.
// INVALID_ARGUMENT for a name of no kind in this build.
absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(absl::string_view name);

}  // namespace gemm::bench
