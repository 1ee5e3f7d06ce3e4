// Types of products as words: "f16:f16:f32:f32" are those of A, B and D, and the
// arithmetic that a kernel multiplies and accumulates in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/problem.h"

namespace gemm::bench {

std::string TypesName(const Types& types);

// An empty field matches any.
struct TypesPattern {
  std::optional<DType> a, b, d;
  std::optional<Compute> compute;

  bool Matches(const Types& types) const;
};

// "f16", "f16:f16:f16:f16,bf16", "e4m3:*:f16". INVALID_ARGUMENT names the word.
absl::StatusOr<std::vector<TypesPattern>> ParseTypesPatterns(absl::string_view text);

}  // namespace gemm::bench
