// The sizes of a group: which dimension its products are stacked in, and the matrices that this
// asks for. A pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "gemm/problem.h"
#include "server/engine/job/job.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

struct GroupSizes {
  gemm::GroupedBy grouped = gemm::GroupedBy::kNothing;  // as kernels see it
  std::vector<int64_t> extents;                         // of each product in that dimension
  // As the caller sees each product, with the sum of the extents for their dimension.
  int64_t m = 0, n = 0, k = 0;
  Shape result;  // of all products
};

// Of the spec's group, with A and B as they are stored and a result of this type.
// INVALID_ARGUMENT where the sizes, A, B, the result's order or what is shared do not fit
// together; C and the bias are not looked at.
absl::StatusOr<GroupSizes> SizeGroup(const JobSpec& spec, const Shape& a, const Shape& b,
                                     gemm::DType output);

}  // namespace gemmd
