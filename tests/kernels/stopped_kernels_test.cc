// A host product that is stopped because it is no longer needed.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"
#include "gemm/catalogue.h"
#include "gemm/run.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {
namespace {

// Stops its launch with the second product.
int begun = 0;
absl::Status StopAtTheSecond(const Launch& launch) {
  auto* const stop = static_cast<std::atomic<bool>*>(const_cast<void*>(launch.operands.a));
  if (++begun == 2) stop->store(true);
  return absl::OkStatus();
}

TEST(StoppedKernels, ABatchOrAGroupHasNoFurtherProduct) {
  constexpr Kernel kStopping = {
      .name = "stopping", .target = Target::kHost, .batches = true, .launch = StopAtTheSecond};
  const std::vector<int64_t> extents(5, 2);
  const Problem group = {.m = 10, .n = 4, .k = 5, .grouped = GroupedBy::kM, .extents = extents};
  const Problem batch = {.m = 2, .n = 4, .k = 5, .batch = 5};
  for (const Problem& problem : {group, batch}) {
    begun = 0;
    std::atomic<bool> stop{false};
    // A of every product begins here: the kernel does not read it.
    const Operands operands = {.a = &stop};
    const absl::Status status =
        RunProduct(kStopping, {.problem = problem, .operands = operands, .stop = &stop});
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(begun, 2);
  }
}

// Launches without RunProduct, which would not begin.
TEST(StoppedKernels, LookAtTheFlagBetweenTheirBlocks) {
  for (const char* name : {"host_reference", "host_openblas"}) {
    const Kernel& kernel = **FindKernel(name);
    for (const Types& types : kernel.types) {
      // OpenBLAS multiplies these in one call.
      const bool whole = name == absl::string_view("host_openblas") && SizeOf(types.a) > 2;
      ProductCase product;
      product.problem = {.m = 70, .n = 140, .k = 50, .types = types};
      ProductData data(product);
      const std::vector<std::byte> before = data.d.bytes();
      const std::atomic<bool> stop{true};
      std::vector<std::byte> workspace(WorkspaceBytes(kernel, product.problem));
      const absl::Status status = kernel.launch({.problem = product.problem,
                                                 .operands = data.ForReference(),
                                                 .workspace = {workspace.data(), workspace.size()},
                                                 .params = {},
                                                 .stop = &stop});
      EXPECT_EQ(status.code(), whole ? absl::StatusCode::kOk : absl::StatusCode::kCancelled)
          << name << " " << Name(types.a);
      EXPECT_EQ(data.d.bytes() == before, !whole) << name << " " << Name(types.a);
    }
  }
}

}  // namespace
}  // namespace gemm::testing
