#include "server/engine/job/warm_up.h"

#include <future>
#include <utility>
#include <vector>

#include "gemm/catalogue.h"
#include "server/engine/job/dispatcher.h"

namespace gemmd {
namespace {

// A library chooses among its kernels by the shape. A vector, a narrow panel, a few tiles,
// and enough to fill a GPU make it show most of them.
constexpr int64_t kExtents[] = {1, 24, 320, 2048};
constexpr int64_t kLargest = 2048;
constexpr size_t kLargestElement = sizeof(double);

struct Row {
  const gemm::Kernel* kernel;
  gemm::LaunchParams params;
  gemm::Types types;
};

// The rows that come first by rank on this device, without those whose tile is their own.
std::vector<Row> LibraryRows(const gemm::DeviceCaps& caps) {
  std::vector<Row> rows;
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (kernel->target == gemm::Target::kHost || kernel->tile_m != 0) continue;
    for (const gemm::Types& types : kernel->types) {
      const absl::StatusOr<KernelPick> pick = PickKernelByRank({}, {.types = types}, caps);
      if (pick.ok() && pick->kernel == kernel) rows.push_back({kernel, pick->params, types});
    }
  }
  return rows;
}

// Every combination of extents and transposes, with a bias and without.
std::vector<gemm::Problem> Problems(const gemm::Types& types) {
  std::vector<gemm::Problem> problems;
  for (const int64_t m : kExtents) {
    for (const int64_t n : kExtents) {
      for (const int64_t k : kExtents) {
        for (const bool trans_a : {false, true}) {
          for (const bool trans_b : {false, true}) {
            for (const gemm::BiasAxis bias : {gemm::BiasAxis::kNone, gemm::BiasAxis::kColumns}) {
              problems.push_back({.m = m,
                                  .n = n,
                                  .k = k,
                                  .types = types,
                                  .trans_a = trans_a,
                                  .trans_b = trans_b,
                                  .bias = bias});
            }
          }
        }
      }
    }
  }
  return problems;
}

// Memory of any content: the products are not looked at.
class Scratch {
 public:
  explicit Scratch(Device& device) {
    for (DeviceBuffer* buffer : {&operands_, &result_, &workspace_}) {
      absl::StatusOr<DeviceBuffer> memory =
          device.memory().Allocate(kLargest * kLargest * kLargestElement);
      if (!memory.ok()) return;
      *buffer = *std::move(memory);
    }
  }
  bool complete() const { return static_cast<bool>(workspace_); }
  gemm::Operands OperandsOf(const gemm::Problem& p) const {
    const auto leading = [](int64_t cols, gemm::DType type) {
      return gemm::PitchBytes(cols, type) / static_cast<int64_t>(gemm::SizeOf(type));
    };
    return {.a = operands_.data(),
            .lda = leading(p.trans_a ? p.m : p.k, p.types.a),
            .b = operands_.data(),
            .ldb = leading(p.trans_b ? p.k : p.n, p.types.b),
            .bias = p.bias == gemm::BiasAxis::kNone ? nullptr : operands_.data(),
            .d = result_.data(),
            .ldd = leading(p.n, p.types.d)};
  }
  gemm::Workspace workspace() const { return {workspace_.data(), workspace_.bytes()}; }

 private:
  DeviceBuffer operands_;
  DeviceBuffer result_;
  DeviceBuffer workspace_;
};

}  // namespace

int WarmUp(Device& device) {
  const std::vector<Row> rows = LibraryRows(device.info().caps);
  if (rows.empty()) return 0;
  const Scratch scratch(device);
  if (!scratch.complete()) return 0;
  Stream& stream = *device.compute_streams().front();
  int launched = 0;
  for (const Row& row : rows) {
    for (const gemm::Problem& problem : Problems(row.types)) {
      if (gemm::WorkspaceBytes(*row.kernel, problem) > scratch.workspace().bytes) continue;
      const absl::Status status = stream.Launch(*row.kernel, problem, scratch.OperandsOf(problem),
                                                scratch.workspace(), row.params);
      if (status.ok()) ++launched;
    }
  }
  std::promise<void> done;
  stream.Notify([&done](const absl::Status&) { done.set_value(); });
  done.get_future().wait();
  return launched;
}

}  // namespace gemmd
