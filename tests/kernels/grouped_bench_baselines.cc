#include "tests/kernels/grouped_bench_baselines.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/blas/lt_plan.h"
#include "kernels/blas/vocabulary.h"
#include "kernels/core/cuda_status.h"

namespace gemm::testing {
namespace {

constexpr size_t kWorkspaceBytes = size_t{256} << 20;
constexpr size_t kMostStreams = 16;
constexpr float kOne = 1, kZero = 0;

void* Allocate(size_t bytes) {
  void* data = nullptr;
  Must(CudaStatus(cudaMalloc(&data, bytes), "cudaMalloc"));
  return data;
}

// The workspace of stream `index` of a graph. Stays for the life of the program.
void* WorkspaceOf(size_t index) {
  static std::array<void*, kMostStreams> workspaces{};
  if (workspaces[index] == nullptr) workspaces[index] = Allocate(kWorkspaceBytes);
  return workspaces[index];
}

struct DestroyGraph {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};

// `enqueue` as a graph; null if it cannot be captured.
std::function<void(cudaStream_t)> Captured(const std::function<void(cudaStream_t)>& enqueue) {
  cudaStream_t stream = nullptr;
  Must(CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"));
  Must(CudaStatus(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
                  "cudaStreamBeginCapture"));
  enqueue(stream);
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || graph == nullptr) {
    (void)cudaGetLastError();
    return nullptr;
  }
  cudaGraphExec_t executable = nullptr;
  Must(CudaStatus(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate"));
  Must(CudaStatus(cudaGraphDestroy(graph), "cudaGraphDestroy"));
  Must(CudaStatus(cudaStreamDestroy(stream), "cudaStreamDestroy"));
  const std::shared_ptr<std::remove_pointer_t<cudaGraphExec_t>> shared(executable, DestroyGraph());
  return [shared](cudaStream_t to) {
    Must(CudaStatus(cudaGraphLaunch(shared.get(), to), "cudaGraphLaunch"));
  };
}

// A product of the group that has rows.
struct OneOfGroup {
  Problem problem;
  Operands operands;
};

std::vector<OneOfGroup> ProductsOf(const Problem& group, const Operands& operands) {
  std::vector<OneOfGroup> products;
  int64_t first = 0;
  for (size_t i = 0; i < group.extents.size(); ++i) {
    const OneProduct one = ProductOfGroup(group, operands, static_cast<int64_t>(i), first);
    first += group.extents[i];
    if (one.problem.m > 0) products.push_back({one.problem, one.operands});
  }
  return products;
}

// The arguments of cublasGemmGroupedBatchedEx. Its matrices are column-major: see lt_plan.cc.
struct GroupedCall {
  cublasHandle_t handle = nullptr;
  std::vector<cublasOperation_t> trans_a, trans_b;
  std::vector<int> m, n, k, lda, ldb, ldd, sizes;
  std::vector<float> alpha, beta;
  void* pointers = nullptr;  // in device memory: of the first operands, the second, and D
  size_t products = 0;

  cublasStatus_t Enqueue(const Types& types, cudaStream_t stream) const {
    // Setting the stream takes the workspace away.
    cublasSetStream(handle, stream);
    cublasSetWorkspace(handle, WorkspaceOf(0), kWorkspaceBytes);
    auto* const a = static_cast<const void* const*>(pointers);
    return cublasGemmGroupedBatchedEx(
        handle, trans_a.data(), trans_b.data(), m.data(), n.data(), k.data(), alpha.data(), a,
        CublasType(types.b), lda.data(), a + products, CublasType(types.a), ldb.data(), beta.data(),
        static_cast<void* const*>(pointers) + 2 * products, CublasType(types.d), ldd.data(),
        static_cast<int>(sizes.size()), sizes.data(), CUBLAS_COMPUTE_32F);
  }
};

GroupedCall MakeGroupedCall(std::vector<OneOfGroup> products, bool merge) {
  if (merge) {
    std::stable_sort(products.begin(), products.end(),
                     [](const auto& x, const auto& y) { return x.problem.m > y.problem.m; });
  }
  GroupedCall call;
  Must(CublasStatus(cublasCreate(&call.handle), "cublasCreate"));
  call.products = products.size();
  std::vector<const void*> a, b, d;
  for (size_t i = 0; i < products.size(); ++i) {
    const auto& [p, o] = products[i];
    a.push_back(o.b);
    b.push_back(o.a);
    d.push_back(o.d);
    if (merge && i > 0 && products[i - 1].problem.m == p.m) {
      ++call.sizes.back();
      continue;
    }
    call.sizes.push_back(1);
    call.trans_a.push_back(CublasOp(p.trans_b));
    call.trans_b.push_back(CublasOp(p.trans_a));
    call.m.push_back(static_cast<int>(p.n));
    call.n.push_back(static_cast<int>(p.m));
    call.k.push_back(static_cast<int>(p.k));
    call.lda.push_back(static_cast<int>(o.ldb));
    call.ldb.push_back(static_cast<int>(o.lda));
    call.ldd.push_back(static_cast<int>(o.ldd));
    call.alpha.push_back(kOne);
    call.beta.push_back(kZero);
  }
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), d.begin(), d.end());
  call.pointers = Allocate(a.size() * sizeof(void*));
  Must(CudaStatus(
      cudaMemcpy(call.pointers, a.data(), a.size() * sizeof(void*), cudaMemcpyHostToDevice),
      "copy of the pointers"));
  return call;
}

// A product with the plan that it is computed by.
struct PlannedProduct {
  OneOfGroup product;
  LtPlan plan;
};

void EnqueueLt(cublasLtHandle_t handle, const OneOfGroup& product, LtPlan plan, void* workspace,
               cudaStream_t stream) {
  const Operands& o = product.operands;
  Must(CublasStatus(
      cublasLtMatmul(handle, &plan.product, &kOne, o.b, &plan.a, o.a, &plan.b, &kZero, o.d, &plan.c,
                     o.d, &plan.d, &plan.algorithm, workspace, kWorkspaceBytes, stream),
      "cublasLtMatmul"));
}

// The heuristic's favourites, or the fastest of its first eight, measured for each size.
std::vector<PlannedProduct> Planned(cublasLtHandle_t handle,
                                    const std::vector<OneOfGroup>& products, bool measure,
                                    cudaStream_t stream) {
  constexpr int kRuns = 4;
  std::map<int64_t, LtPlan> by_size;
  std::vector<PlannedProduct> planned;
  for (const OneOfGroup& product : products) {
    auto known = by_size.find(product.problem.m);
    if (known == by_size.end()) {
      const auto plans = MakeLtPlans(handle, product.problem, product.operands, kWorkspaceBytes,
                                     measure ? kMaxLtAlgorithms : 1);
      Must(plans.status());
      double least = std::numeric_limits<double>::infinity();
      LtPlan best = plans->front();
      for (const LtPlan& plan : *plans) {
        if (plans->size() == 1) break;
        const double micros = QuickMicroseconds(
            [&](cudaStream_t to) { EnqueueLt(handle, product, plan, WorkspaceOf(0), to); }, stream,
            kRuns);
        if (micros < least) std::tie(least, best) = std::pair(micros, plan);
      }
      known = by_size.emplace(product.problem.m, best).first;
    }
    planned.push_back({product, known->second});
  }
  return planned;
}

// The products over `count` streams, the largest first, each to the stream with the fewest rows.
void EnqueueOnStreams(cublasLtHandle_t handle, const std::vector<PlannedProduct>& planned,
                      size_t count, cudaStream_t stream) {
  std::vector<cudaStream_t> streams = {stream};
  cudaEvent_t begin = nullptr;
  Must(CudaStatus(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming), "cudaEventCreate"));
  Must(CudaStatus(cudaEventRecord(begin, stream), "cudaEventRecord"));
  while (streams.size() < count) {
    cudaStream_t next = nullptr;
    Must(CudaStatus(cudaStreamCreateWithFlags(&next, cudaStreamNonBlocking), "cudaStreamCreate"));
    Must(CudaStatus(cudaStreamWaitEvent(next, begin, 0), "cudaStreamWaitEvent"));
    streams.push_back(next);
  }
  std::vector<int64_t> rows(count, 0);
  for (const PlannedProduct& one : planned) {
    const auto least =
        static_cast<size_t>(std::min_element(rows.begin(), rows.end()) - rows.begin());
    rows[least] += std::max<int64_t>(one.product.problem.m, 64);
    EnqueueLt(handle, one.product, one.plan, WorkspaceOf(least), streams[least]);
  }
  for (size_t i = 1; i < count; ++i) {
    cudaEvent_t end = nullptr;
    Must(CudaStatus(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "cudaEventCreate"));
    Must(CudaStatus(cudaEventRecord(end, streams[i]), "cudaEventRecord"));
    Must(CudaStatus(cudaStreamWaitEvent(stream, end, 0), "cudaStreamWaitEvent"));
  }
}

}  // namespace

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "grouped_bench: " << status << "\n";
  std::exit(1);
}

double QuickMicroseconds(const std::function<void(cudaStream_t)>& enqueue, cudaStream_t stream,
                         int runs) {
  static const auto events = [] {
    std::array<cudaEvent_t, 2> made{};
    for (cudaEvent_t& event : made) {
      Must(CudaStatus(cudaEventCreate(&event), "cudaEventCreate"));
    }
    return made;
  }();
  float least = std::numeric_limits<float>::infinity();
  for (int run = 0; run < runs; ++run) {
    Must(CudaStatus(cudaEventRecord(events[0], stream), "cudaEventRecord"));
    enqueue(stream);
    Must(CudaStatus(cudaEventRecord(events[1], stream), "cudaEventRecord"));
    Must(CudaStatus(cudaEventSynchronize(events[1]), "a baseline"));
    float milliseconds = 0;
    Must(CudaStatus(cudaEventElapsedTime(&milliseconds, events[0], events[1]),
                    "cudaEventElapsedTime"));
    least = std::min(least, milliseconds);
  }
  return least * 1e3;
}

std::vector<GroupCandidate> CublasGrouped(const Problem& group, const Operands& operands) {
  std::vector<GroupCandidate> candidates;
  for (const bool merge : {false, true}) {
    const auto call =
        std::make_shared<const GroupedCall>(MakeGroupedCall(ProductsOf(group, operands), merge));
    if (!merge || call->sizes.size() < call->products) {
      const cublasStatus_t status = call->Enqueue(group.types, nullptr);
      if (status != CUBLAS_STATUS_SUCCESS) {
        std::cout << "cuBLAS grouped: " << cublasGetStatusString(status) << "\n";
        continue;
      }
      const auto enqueue = [call, types = group.types](cudaStream_t stream) {
        Must(CublasStatus(call->Enqueue(types, stream), "cublasGemmGroupedBatchedEx"));
      };
      const std::string name = merge ? "cublas grouped, by size" : "cublas grouped";
      candidates.push_back({name, enqueue});
      bool taken = true;
      const auto graph = Captured([&](cudaStream_t stream) {
        taken = call->Enqueue(group.types, stream) == CUBLAS_STATUS_SUCCESS;
      });
      if (taken && graph != nullptr) candidates.push_back({name + ", graph", graph});
    }
  }
  return candidates;
}

std::vector<GroupCandidate> CublasLtOneByOne(const Problem& group, const Operands& operands,
                                             cudaStream_t stream) {
  cublasLtHandle_t handle = nullptr;
  Must(CublasStatus(cublasLtCreate(&handle), "cublasLtCreate"));
  std::vector<OneOfGroup> products = ProductsOf(group, operands);
  std::stable_sort(products.begin(), products.end(),
                   [](const auto& x, const auto& y) { return x.problem.m > y.problem.m; });
  std::vector<GroupCandidate> candidates;
  for (const bool measure : {false, true}) {
    const std::vector<PlannedProduct> planned = Planned(handle, products, measure, stream);
    for (const size_t streams : {size_t{1}, size_t{2}, size_t{4}, size_t{8}, kMostStreams}) {
      const auto graph =
          Captured([&](cudaStream_t to) { EnqueueOnStreams(handle, planned, streams, to); });
      if (graph == nullptr) continue;
      candidates.push_back({absl::StrCat("cublaslt ", measure ? "fastest of 8" : "favourite",
                                         ", graph of ", streams),
                            graph});
    }
  }
  return candidates;
}

}  // namespace gemm::testing
