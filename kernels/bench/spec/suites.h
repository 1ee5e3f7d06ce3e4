// Named lists of shapes.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/bench/spec/shape.h"

namespace gemm::bench {

struct Suite {
  absl::string_view name;
  absl::string_view summary;
  std::vector<Shape> shapes;
};

absl::Span<const Suite> Suites();

// Unknown suite: NOT_FOUND, with all names.
absl::StatusOr<const Suite*> FindSuite(absl::string_view name);

}  // namespace gemm::bench
