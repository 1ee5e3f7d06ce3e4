// The rows of a tuning table that one device can use, ready for lookup.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "gemm/kernel.h"
#include "gemm/machine.h"
#include "gemm/tuning.h"

namespace gemmd {

// How far a measured shape may be from the shape that it stands for, as the distance of (log2 m,
// log2 n, log2 k). 1 is a factor of 2 in one dimension, or of 1.49 in all three.
inline constexpr double kNearestOctaves = 1;

struct TunedRow {
  const gemm::Kernel* kernel = nullptr;
  gemm::LaunchParams params{};
  int64_t m = 0, n = 0, k = 0;
  double seconds = 0;           // of one launch, as measured
  bool other_versions = false;  // with another driver, CUDA or library than this device's
};

struct TunedMatch {
  const TunedRow* row = nullptr;
  bool exact = false;           // measured on this very shape
  bool other_epilogue = false;  // measured without the beta, bias or activation of the product
};

// Immutable, so thread-safe. Has only kernels of this build that run on the device, take the
// types and parameters of their entry, and are deterministic.
class TunedKernels {
 public:
  TunedKernels(const gemm::TuningTable& table, const gemm::Machine& machine,
               const gemm::DeviceCaps& caps);

  // The row for a product: of its own epilogue class, else of the plain one. Within a class, a row
  // of its shape, else the nearest within kNearestOctaves. If one shape has several rows, that of
  // this device's versions comes first. Rows that are not `legal` are passed over. A shape of the
  // table takes less than a microsecond. Else the time grows with the rows of the types and layout
  // whose m is near, up to some tens of microseconds.
  std::optional<TunedMatch> Find(const gemm::Problem& problem,
                                 absl::FunctionRef<bool(const TunedRow&)> legal) const;

  // Whether this device's versions have a row for the product's own shape, of its epilogue class
  // or of the plain one.
  bool Measured(const gemm::Problem& problem) const;

  size_t size() const { return size_; }
  size_t of_other_versions() const { return of_other_versions_; }
  // The kernels of the device's entries that cannot be used here, by name.
  const std::set<std::string>& skipped() const { return skipped_; }

 private:
  using ShapeKey = std::array<int64_t, 3>;
  struct Point {
    float m, n, k;  // log2
  };
  // The rows of one combination of types, layout and epilogue class.
  struct Group {
    std::vector<TunedRow> rows;  // by shape; of a shape, this device's versions first
    std::vector<Point> points;   // of the rows
    absl::flat_hash_map<ShapeKey, size_t> first;  // of a shape
  };

  void Add(const gemm::TunedProduct& product, const gemm::TunedChoice& choice, bool other_versions,
           const gemm::DeviceCaps& caps);
  static void Sort(Group& group);
  static std::optional<TunedMatch> FindIn(const Group& group, const gemm::Problem& problem,
                                          absl::FunctionRef<bool(const TunedRow&)> legal);

  absl::flat_hash_map<uint64_t, Group> groups_;
  size_t size_ = 0;
  size_t of_other_versions_ = 0;
  std::set<std::string> skipped_;
};

}  // namespace gemmd
