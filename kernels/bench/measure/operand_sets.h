// The operands of the measured products. They are random, and launches take turns with up to 256
// sets. So a launch finds its own in the cache only where 256 sets fit that.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/generate.h"
#include "gemm/problem.h"
#include "gemm/reference.h"
#include "kernels/bench/backend/backend.h"

namespace gemm::bench {

class OperandSets {
 public:
  // The backend outlives it.
  OperandSets(Backend& backend, const GeneratorSpec& inputs) : backend_(backend), inputs_(inputs) {}

  // Makes the sets of a problem, which replace those before. Together they are several times as
  // large as the cache, if memory allows it. RESOURCE_EXHAUSTED if there is no room for one set.
  absl::Status Prepare(const Problem& problem);

  // Any index is valid: sets repeat after count().
  Operands At(int64_t index) const;
  int64_t count() const { return count_; }

  // A and B of the prepared problem, of -1, 0 and 1, with scales of 1/2, 1 and 2, and the first
  // set's D. They stay until the next problem. RESOURCE_EXHAUSTED if there is no room for them.
  absl::StatusOr<Operands> Signs(const Problem& problem);

  // The assumption about the elements of A and B: kDrawn unless they repeat along k.
  Elements Known() const { return known_; }

  // Bytes of D of one set, padding included.
  size_t d_bytes() const { return d_.bytes; }

 private:
  // Device memory that only grows, filled with the drawn elements or signs, repeated.
  struct Slab {
    Buffer data{nullptr, nullptr};
    size_t bytes = 0;
    std::vector<std::byte> drawn;
  };
  // One matrix of every set, one after the other in a slab.
  struct Matrix {
    int64_t ld = 0;
    size_t bytes = 0;  // a multiple of 256
    std::byte* data = nullptr;
    bool by_block = false;  // for scales: a row is a block of k, else a line
  };
  enum Role : uint64_t {
    kA,
    kB,
    kD,
    kSignsA,
    kSignsB,
    kScalesA,
    kScalesB,
    kExactScalesA,
    kExactScalesB
  };

  static Matrix Describe(int64_t rows, int64_t cols, DType type);
  static Matrix DescribeScales(ScaleBlocks blocks, int64_t outer, int64_t k);
  static ScaleView ScalesAt(const Matrix& scales, size_t set);
  absl::Status PlaceAll(const Types& types);
  // Finds room for `count` matrices.
  absl::Status Place(Role role, DType type, int64_t count, Matrix& matrix);
  absl::StatusOr<std::vector<std::byte>> DrawFor(Role role, DType type) const;
  absl::Status FillRandomly(Role role, DType type, Slab& slab);

  Backend& backend_;
  const GeneratorSpec inputs_;
  std::map<std::pair<Role, DType>, Slab> slabs_;
  Matrix a_, b_, d_;
  // The block scales of A and B. Those of lines lie block by block, as torch and DeepGEMM expect
  // them. Without bytes if there are none.
  Matrix scales_a_, scales_b_;
  int64_t count_ = 0;
  Elements known_ = Elements::kAny;
};

}  // namespace gemm::bench
