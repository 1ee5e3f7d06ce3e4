// A tuning table: for a product on a machine, the fastest measured kernel.
//
// As text, a table is a first line with its version, then lines for machines, each followed
// by the products that were measured on it. # begins a comment line.
//
//   gemmd tuning table 1
//   machine driver=580.159.04 cuda=13.0 library=13.1.0 device=NVIDIA H200
//   types=f16:f16:f16:f32 layout=nn epilogue=plain shape=4096x4096x4096 seconds=0.000184
//   kernel=cublaslt_f16 algorithm=3
//
// The product and its kernel are one line; it is broken here to fit. `types` are those of A,
// B and D and the compute mode. `layout` says for A and B whether they are transposed (t) or
// not (n). The fields after `kernel` are its launch parameters; those left out have their defaults.
// `device` is the last field of its line and may have spaces.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/machine.h"
#include "gemm/problem.h"

namespace gemm {

// Bounds of a table.
inline constexpr size_t kMaxTuningEntries = 16384;
inline constexpr size_t kMaxTuningBytes = size_t{8} << 20;  // of its text
inline constexpr size_t kMaxTuningLineBytes = 1024;
inline constexpr int64_t kMaxTuningDimension = int64_t{1} << 31;

// The kind of epilogue.
enum class EpilogueClass : uint8_t {
  kPlain,  // D = alpha op(A) op(B)
  kFull,   // with beta C, a bias or an activation
};
absl::string_view Name(EpilogueClass epilogue);  // "plain", "full"
EpilogueClass EpilogueClassOf(const Problem& problem);

// The key of a product in a table.
struct TunedProduct {
  DType a, b, d;
  Compute compute;
  bool trans_a = false, trans_b = false;
  EpilogueClass epilogue = EpilogueClass::kPlain;
  int64_t m = 0, n = 0, k = 0;

  static TunedProduct Of(const Problem& problem);
  Types types() const { return {a, b, d, compute}; }

  // The check takes the 0 that the compiler compares with for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const TunedProduct&, const TunedProduct&) = default;
};

// The fastest kernel.
struct TunedChoice {
  std::string kernel;
  std::map<std::string, int64_t> params;
  double seconds = 0;  // of one launch, the median

  friend bool operator==(const TunedChoice&, const TunedChoice&) = default;
};

class TuningTable {
 public:
  using Entries = std::map<Machine, std::map<TunedProduct, TunedChoice>>;

  // Replaces the entry for the same product on the same machine. RESOURCE_EXHAUSTED past
  // kMaxTuningEntries.
  absl::Status Put(const Machine& machine, const TunedProduct& product, TunedChoice choice);
  // Puts every entry of `later`.
  absl::Status Merge(const TuningTable& later);

  // Ordered by machine, then by product.
  const Entries& entries() const { return entries_; }
  size_t size() const { return size_; }

 private:
  Entries entries_;
  size_t size_ = 0;
};

// INVALID_ARGUMENT names `source`, the line, the field, its value and what is allowed. A
// later line replaces an earlier one for the same product on the same machine. Kernels and
// parameters that this build does not have are no error.
absl::StatusOr<TuningTable> ParseTuningTable(absl::string_view text, absl::string_view source);

// The text of a table: a line an entry, in their order, so that tables can be compared.
std::string FormatTuningTable(const TuningTable& table);

}  // namespace gemm
