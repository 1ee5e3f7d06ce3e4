#include "kernels/bench/measure/benchmark.h"

#include <algorithm>

#include "kernels/bench/measure/comparison.h"
#include "kernels/bench/measure/schedule.h"

namespace gemm::bench {
namespace {

using Group = std::vector<Candidate>;

// Groups of candidates that can share operands, in the order of their first ones.
std::vector<Group> GroupCandidates(const std::vector<Candidate>& candidates) {
  std::vector<Group> groups;
  for (const Candidate& candidate : candidates) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.front().types == candidate.types && g.front().layout == candidate.layout;
    });
    if (group == groups.end()) {
      groups.push_back({candidate});
    } else {
      group->push_back(candidate);
    }
  }
  return groups;
}

// The work of each comparison in floating-point operations. Small shapes cost more than their
// operations: the overhead counts as a share of the mean shape. If energy is measured, that takes
// most of the time, and as long on each shape.
std::vector<double> Weights(const BenchmarkPlan& plan, const std::vector<Group>& groups) {
  constexpr double kBeside = 0.3;
  const std::vector<Shape>& shapes = plan.shapes;
  const bool joules = plan.rules.joules_time > absl::ZeroDuration();
  double mean = 0;
  for (const Shape& shape : shapes) mean += Flops(shape) / static_cast<double>(shapes.size());
  std::vector<double> weights;
  for (const Shape& shape : shapes) {
    for (const Group& group : groups) {
      const double work = joules ? 1 : Flops(shape) + kBeside * mean;
      weights.push_back(static_cast<double>(group.size()) * work);
    }
  }
  return weights;
}

}  // namespace

absl::Status RunBenchmark(Backend& backend, const BenchmarkPlan& plan,
                          const BenchmarkObserver& observer) {
  const std::vector<Group> groups = GroupCandidates(plan.candidates);
  const Schedule schedule(plan.budget, Weights(plan, groups), observer.now);
  Progress progress = {.shapes = plan.shapes.size()};
  size_t part = 0;
  const auto step = [&](absl::string_view name) {
    if (observer.cancelled && observer.cancelled()) {
      return absl::CancelledError("the benchmark was cancelled");
    }
    if (observer.on_progress) {
      progress.step = std::string(name);
      progress.elapsed = schedule.Elapsed();
      progress.left = schedule.TimeLeft(part);
      observer.on_progress(progress);
    }
    return absl::OkStatus();
  };
  OperandSets sets(backend, plan.inputs);
  SpeedRecord record;
  Comparison comparison(backend, sets, record, plan.rules, {.now = observer.now, .step = step});
  for (size_t i = 0; i < plan.shapes.size(); ++i) {
    progress.shape = i;
    progress.at = plan.shapes[i];
    for (const Group& group : groups) {
      const auto rows = comparison.Run(plan.shapes[i], group,
                                       {.soft = schedule.Deadline(part), .hard = schedule.End()});
      if (!rows.ok()) return rows.status();
      observer.on_rows(*rows);
      ++part;
    }
  }
  return absl::OkStatus();
}

}  // namespace gemm::bench
