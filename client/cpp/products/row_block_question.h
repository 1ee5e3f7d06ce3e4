// Whether the server promises that a product may go in blocks of rows.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/cpp/calls/task.h"
#include "client/cpp/products/product_plan.h"
#include "gemm/v1/gemm.pb.h"

namespace gemmd::client {

// What RankKernels is asked about a product with row blocks. `device`: of the operands; empty: any.
::gemm::v1::RankKernelsRequest RowBlockQuestion(const ProductPlan& plan, const std::string& device);

// Whether the kernel that a product would get takes row blocks: the one that it names, or where it
// names none the server's choice. A server that does not know them
// says that none does.
bool PromisesRowBlocks(const std::string& kernel_name,
                       const ::gemm::v1::RankKernelsResponse& ranking);

// Asks the server, and calls `then` with its answer; an error is a no.
void AskForRowBlocks(const std::shared_ptr<Task>& task, const ProductPlan& plan,
                     const std::string& device, std::function<void(bool)> then);

}  // namespace gemmd::client
