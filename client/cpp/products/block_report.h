// One report of a product that went in blocks of rows.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "gemm/v1/gemm.pb.h"

namespace gemmd::client {

// The blocks' reports, in order of their rows, as that of the whole product: see
// ProductResult::report. FAILED_PRECONDITION where the kernel or its parameters differ: then the
// blocks are not one product. At least one report.
absl::StatusOr<::gemm::v1::ProductReport> MergeReports(
    const std::vector<::gemm::v1::ProductReport>& blocks);

}  // namespace gemmd::client
