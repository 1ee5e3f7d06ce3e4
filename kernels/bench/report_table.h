// Rows as tables for people.
#pragma once

#include <ostream>

#include "absl/types/span.h"
#include "kernels/bench/backend.h"
#include "kernels/bench/row.h"
#include "kernels/bench/summary.h"

namespace gemm::bench {

// What was measured on what, a fact a line.
void PrintFacts(const Facts& facts, std::ostream& out);

// The rows of one shape under a heading with its number, families set apart;
// `index` counts shapes from 0. The vendor's column is headed by `vendor`.
void PrintRows(absl::Span<const Row> rows, size_t index, size_t shapes, absl::string_view vendor,
               std::ostream& out);

// Geometric means: a line a kernel, then a line a family.
void PrintSummary(absl::Span<const Row> rows, absl::string_view vendor, std::ostream& out);

}  // namespace gemm::bench
