#include "server/engine/core/tuned_kernels.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "gemm/catalogue.h"

namespace gemmd {
namespace {

// All that a group's rows have in common.
uint64_t GroupKey(const gemm::Types& types, bool trans_a, bool trans_b,
                  gemm::EpilogueClass epilogue) {
  uint64_t key = 0;
  for (const auto part : {static_cast<uint64_t>(types.a), static_cast<uint64_t>(types.b),
                          static_cast<uint64_t>(types.d), static_cast<uint64_t>(types.compute),
                          static_cast<uint64_t>(epilogue)}) {
    key = key << 8 | part;
  }
  return key << 2 | (trans_a ? 2u : 0u) | (trans_b ? 1u : 0u);
}

float Octaves(int64_t dimension) { return std::log2(static_cast<float>(dimension)); }

}  // namespace

TunedKernels::TunedKernels(const gemm::TuningTable& table, const gemm::Machine& machine,
                           const gemm::DeviceCaps& caps) {
  for (const auto& [measured_on, products] : table.entries()) {
    if (measured_on.device != machine.device) continue;
    for (const auto& [product, choice] : products) {
      Add(product, choice, measured_on != machine, caps);
    }
  }
  for (auto& [key, group] : groups_) Sort(group);
}

void TunedKernels::Add(const gemm::TunedProduct& product, const gemm::TunedChoice& choice,
                       bool other_versions, const gemm::DeviceCaps& caps) {
  const auto kernel = gemm::FindKernel(choice.kernel);
  if (!kernel.ok() || !gemm::RunsOn(**kernel, caps) ||
      !gemm::MayBeChosen(**kernel, product.types())) {
    skipped_.insert(choice.kernel);
    return;
  }
  const auto params = gemm::ResolveParams(**kernel, choice.params);
  if (!params.ok()) {
    skipped_.insert(choice.kernel);
    return;
  }
  Group& group =
      groups_[GroupKey(product.types(), product.trans_a, product.trans_b, product.epilogue)];
  group.rows.push_back({.kernel = *kernel,
                        .params = *params,
                        .m = product.m,
                        .n = product.n,
                        .k = product.k,
                        .seconds = choice.seconds,
                        .other_versions = other_versions});
  ++size_;
  if (other_versions) ++of_other_versions_;
}

void TunedKernels::Sort(Group& group) {
  std::stable_sort(group.rows.begin(), group.rows.end(), [](const TunedRow& x, const TunedRow& y) {
    return std::tie(x.m, x.n, x.k, x.other_versions) < std::tie(y.m, y.n, y.k, y.other_versions);
  });
  for (size_t i = 0; i < group.rows.size(); ++i) {
    const TunedRow& row = group.rows[i];
    group.points.push_back({Octaves(row.m), Octaves(row.n), Octaves(row.k)});
    group.first.try_emplace(ShapeKey{row.m, row.n, row.k}, i);
  }
}

bool TunedKernels::Measured(const gemm::Problem& problem) const {
  for (const gemm::EpilogueClass epilogue :
       {gemm::EpilogueClassOf(problem), gemm::EpilogueClass::kPlain}) {
    const auto group =
        groups_.find(GroupKey(problem.types, problem.trans_a, problem.trans_b, epilogue));
    if (group == groups_.end()) continue;
    const auto first = group->second.first.find(ShapeKey{problem.m, problem.n, problem.k});
    if (first == group->second.first.end()) continue;
    if (!group->second.rows[first->second].other_versions) return true;
  }
  return false;
}

std::optional<TunedMatch> TunedKernels::Find(const gemm::Problem& problem,
                                             absl::FunctionRef<bool(const TunedRow&)> legal) const {
  const gemm::EpilogueClass own = gemm::EpilogueClassOf(problem);
  for (const gemm::EpilogueClass epilogue : {own, gemm::EpilogueClass::kPlain}) {
    const auto group =
        groups_.find(GroupKey(problem.types, problem.trans_a, problem.trans_b, epilogue));
    if (group == groups_.end()) continue;
    std::optional<TunedMatch> match = FindIn(group->second, problem, legal);
    if (!match.has_value()) continue;
    match->other_epilogue = epilogue != own;
    return match;
  }
  return std::nullopt;
}

std::optional<TunedMatch> TunedKernels::FindIn(const Group& group, const gemm::Problem& problem,
                                               absl::FunctionRef<bool(const TunedRow&)> legal) {
  const ShapeKey shape = {problem.m, problem.n, problem.k};
  if (const auto first = group.first.find(shape); first != group.first.end()) {
    for (size_t i = first->second; i < group.rows.size(); ++i) {
      const TunedRow& row = group.rows[i];
      if (ShapeKey{row.m, row.n, row.k} != shape) break;
      if (legal(row)) return TunedMatch{.row = &row, .exact = true};
    }
  }
  const Point at = {Octaves(problem.m), Octaves(problem.n), Octaves(problem.k)};
  constexpr auto kFarthest = static_cast<float>(kNearestOctaves * kNearestOctaves);
  float best = std::nextafter(kFarthest, 2 * kFarthest);
  const TunedRow* nearest = nullptr;
  // The rows are in the order of m: those outside this band are too far by m alone.
  constexpr float kBand = 1.001F * static_cast<float>(kNearestOctaves);
  const auto begin = std::lower_bound(group.points.begin(), group.points.end(), at.m - kBand,
                                      [](const Point& point, float m) { return point.m < m; });
  for (size_t i = begin - group.points.begin(); i < group.points.size(); ++i) {
    const Point& point = group.points[i];
    if (point.m > at.m + kBand) break;
    const float m = point.m - at.m, n = point.n - at.n, k = point.k - at.k;
    const float distance = m * m + n * n + k * k;
    if (distance >= best || !legal(group.rows[i])) continue;
    best = distance;
    nearest = &group.rows[i];
  }
  if (nearest == nullptr) return std::nullopt;
  return TunedMatch{.row = nearest, .exact = ShapeKey{nearest->m, nearest->n, nearest->k} == shape};
}

}  // namespace gemmd
