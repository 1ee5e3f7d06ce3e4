// What the server says of products in blocks of rows: whether it takes one, and one report of all
// blocks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/calls/task.h"
#include "client/cpp/products/product_plan.h"
#include "gemm/v1/gemm.pb.h"

namespace gemmd::client {

// The question to RankKernels. `device`: of the operands; empty: any.
::gemm::v1::RankKernelsRequest RowBlockQuestion(const ProductPlan& plan, const std::string& device);

// Whether the kernel that a product would get takes row blocks: the one that it names, or where it
// names none the server's choice. A server that does not know them
// says that none does.
bool PromisesRowBlocks(const std::string& kernel_name,
                       const ::gemm::v1::RankKernelsResponse& ranking);

// Asks the server, and calls `then` with its answer; an error is a no.
void AskForRowBlocks(const std::shared_ptr<Task>& task, const ProductPlan& plan,
                     const std::string& device, std::function<void(bool)> then);

// The blocks' reports, in order of their rows, as that of the whole product: see
// ProductResult::report. FAILED_PRECONDITION where the kernel or its parameters differ: then the
// blocks are not one product. At least one report.
absl::StatusOr<::gemm::v1::ProductReport> MergeReports(
    const std::vector<::gemm::v1::ProductReport>& blocks);

}  // namespace gemmd::client
