// Which kernels of a device take a product, and which of them `auto` takes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gemm/kernel.h"
#include "gemm/machine.h"
#include "gemm/problem.h"
#include "server/engine/core/report.h"

namespace gemmd {

struct EngineCore;

struct RankingQuestion {
  std::string device;  // such as "cuda:0"; empty: the first
  int64_t m = 0, n = 0, k = 0;
  gemm::DType a{}, b{};
  std::optional<gemm::DType> output;     // as in JobSpec
  std::optional<gemm::Compute> compute;  // as in JobSpec
  bool trans_a = false, trans_b = false;
  bool epilogue = false;  // there is a beta, a bias or an activation
  bool block_scales = false;
  std::string family;  // as in KernelRequest
};

struct RankedKernel {
  const gemm::Kernel* kernel = nullptr;
  // As `auto` launches it: the table's for its own choice, else the defaults.
  std::map<std::string, int64_t> params;
  uint64_t workspace_bytes = 0;  // scratch memory for this product
  double estimated_seconds = 0;  // 0: nobody knows
  // The tuning table's entry for the product, if this is its kernel.
  std::optional<TunedFrom> tuned;
  // Why `auto` takes it, or why it does not.
  std::string reason;
};

struct KernelRanking {
  std::string device;
  gemm::Machine machine;
  gemm::Types types{};                  // of the question, complete
  ChoiceRule rule = ChoiceRule::kNone;  // of the first kernel
  // The kernel that `auto` takes, then the others by estimate, then those without one by auto_rank.
  std::vector<RankedKernel> kernels;
};

// Errors are those of PickKernel, and INVALID_ARGUMENT for an unknown device.
absl::StatusOr<KernelRanking> RankKernels(const EngineCore& core, const RankingQuestion& question);

}  // namespace gemmd
