// Rows as tables for people.
#pragma once

#include <ostream>

#include "absl/types/span.h"
#include "kernels/bench/result/row.h"
#include "kernels/bench/result/summary.h"

namespace gemm::bench {

// Lines have at most `width` places; 0: no bound. A table that is too wide leaves
// columns out; the files have all of them.

// An entry a line.
void PrintMetadata(const Metadata& metadata, std::ostream& out, size_t width = 0);

// The rows of one shape under a heading with its number, families set apart;
// `index` counts shapes from 0. The vendor's column is headed by `vendor`.
void PrintRows(absl::Span<const Row> rows, size_t index, size_t shapes, absl::string_view vendor,
               std::ostream& out, size_t width = 0);

// Geometric means, each with the ratio of summed times and the shapes below kLostShare: a line for
// each kernel, then two tables with a line for each family.
void PrintSummary(absl::Span<const Row> rows, absl::string_view vendor, std::ostream& out,
                  size_t width = 0);

}  // namespace gemm::bench
