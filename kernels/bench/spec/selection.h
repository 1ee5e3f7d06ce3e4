// Which kernels of the catalogue to measure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/problem.h"
#include "kernels/bench/spec/layout.h"

namespace gemm::bench {

// "f16:f16:f32:f32": the types of A, B and D, and the arithmetic that a kernel multiplies and
// accumulates in.
std::string TypesName(const Types& types);

// An empty field matches any.
struct TypesPattern {
  std::optional<DType> a, b, d;
  std::optional<Compute> compute;

  bool Matches(const Types& types) const;
};

// "f16", "f16:f16:f16:f16,bf16", "e4m3:*:f16". INVALID_ARGUMENT names the word.
absl::StatusOr<std::vector<TypesPattern>> ParseTypesPatterns(absl::string_view text);

// An empty list selects all.
struct Selection {
  std::vector<std::string> kernels;  // names, or patterns with * and ?
  std::vector<std::string> families;
  // Empty: each kernel's first combination.
  std::vector<TypesPattern> types;
  // Empty: the layout that each kernel reads without a transpose.
  std::optional<Layout> layout;
  // A candidate for each value. Kernels without the parameter ignore it; at least one
  // must have it.
  std::map<std::string, std::vector<int64_t>> params;
  // Only kernels, and types, that take block scales.
  bool with_scales = false;
};

}  // namespace gemm::bench
