// Multiplies a product in blocks of rows: while rows of A are sent, rows of D come back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "client/cpp/calls/task.h"
#include "client/cpp/products/product_plan.h"
#include "gemm/v1/gemm.pb.h"

namespace gemmd::client {

struct BlockRun {
  // With row blocks; B and the bias have their sources, and stay where they are.
  ProductPlan plan;
  // Where all of D goes.
  std::byte* to = nullptr;
  // The server holds all that the blocks read: a matrix of it may be deleted. May come before
  // `then`, or not at all where the task fails.
  std::function<void()> all_begun;
  // Gets the report of the whole product once all of D is there; not where the task fails.
  std::function<void(const ::gemm::v1::ProductReport&)> then;
};

// Each channel has a stream for one block after another. The job of a block is sent as soon as the
// one before has left, while results come back. FAILED_PRECONDITION if the server's kernels promise
// no row blocks, or are not the same for all blocks: the product may still go whole.
void MultiplyByRows(const std::shared_ptr<Task>& task, BlockRun run);

}  // namespace gemmd::client
