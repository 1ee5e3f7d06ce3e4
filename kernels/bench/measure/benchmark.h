// A benchmark as a whole: every candidate on every shape.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/measure/candidate.h"
#include "kernels/bench/result/row.h"
#include "kernels/bench/spec/rules.h"
#include "kernels/bench/spec/shape.h"

namespace gemm::bench {

struct BenchmarkPlan {
  std::vector<Shape> shapes;
  std::vector<Candidate> candidates;
  ComparisonRules rules;
  GeneratorSpec inputs = kStandardInputs;
  // The time for the whole run. As it runs out, samples and then kernels are left out; their rows
  // say so.
  absl::Duration budget = absl::InfiniteDuration();
};

// Called by the thread that runs the benchmark.
struct BenchmarkObserver {
  // Gets the rows of one shape, types and layout as soon as they are known.
  std::function<void(absl::Span<const Row>)> on_rows;
  // Called before each step. May be null.
  std::function<void(const Progress&)> on_progress;
  // Asked before each step. May be null.
  std::function<bool()> cancelled;
  std::function<absl::Time()> now = absl::Now;
};

// Runs shape by shape. Candidates of the same types and layout are compared with each
// other. CANCELLED if the observer asked for it; any other error means that the device is lost.
absl::Status RunBenchmark(Backend& backend, const BenchmarkPlan& plan,
                          const BenchmarkObserver& observer);

}  // namespace gemm::bench
