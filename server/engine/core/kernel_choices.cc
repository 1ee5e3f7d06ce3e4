#include "server/engine/core/kernel_choices.h"

#include <utility>

namespace gemmd {
namespace {

int ZeroOneOrElse(double factor) { return factor == 0 ? 0 : factor == 1 ? 1 : 2; }

// As it came, and as f32.
int ClassOf(double factor) {
  return 3 * ZeroOneOrElse(factor) + ZeroOneOrElse(static_cast<float>(factor));
}

}  // namespace

KernelChoices::Key KernelChoices::KeyOf(const gemm::Problem& problem, size_t max_workspace_bytes) {
  // Does not compile where a problem has something more.
  const auto& [m, n, k, types, trans_a, trans_b, alpha, beta, bias, activation, leaky_slope, batch,
               grouped, extents, scales_a, scales_b] = problem;
  return {m,
          n,
          k,
          types.a,
          types.b,
          types.d,
          types.compute,
          trans_a,
          trans_b,
          ClassOf(alpha),
          ClassOf(beta),
          bias,
          activation,
          ClassOf(leaky_slope),
          batch,
          scales_a,
          scales_b,
          max_workspace_bytes};
}

std::shared_ptr<const KernelPick> KernelChoices::Find(const gemm::Problem& problem,
                                                      size_t max_workspace_bytes) const {
  if (problem.grouped != gemm::GroupedBy::kNothing) return nullptr;
  const Key key = KeyOf(problem, max_workspace_bytes);
  MutexLock lock(mutex_);
  const auto found = picks_.find(key);
  return found == picks_.end() ? nullptr : found->second;
}

void KernelChoices::Add(const gemm::Problem& problem, size_t max_workspace_bytes,
                        std::shared_ptr<const KernelPick> pick) {
  if (problem.grouped != gemm::GroupedBy::kNothing) return;
  const Key key = KeyOf(problem, max_workspace_bytes);
  decltype(picks_) forgotten;  // outlives the lock
  MutexLock lock(mutex_);
  if (picks_.size() >= kMost) forgotten.swap(picks_);
  picks_.insert_or_assign(key, std::move(pick));
}

}  // namespace gemmd
