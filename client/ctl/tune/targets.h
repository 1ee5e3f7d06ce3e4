// The products that gemmctl tune measures.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/tune/tune_options.h"
#include "gemmd/client/types.h"
#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/selection.h"
#include "kernels/bench/spec/shape.h"

namespace gemmd::ctl {

// A shape in one layout, in each of the types that the patterns match.
struct TuneTarget {
  gemm::bench::Shape shape;
  gemm::bench::Layout layout;
  std::vector<gemm::bench::TypesPattern> types;
};

// Every shape in every layout, in the selection's types.
std::vector<TuneTarget> TargetsOf(const TuneOptions& options);

// The products of a server's traffic, each in its own types, those that took the most time
// first. Products are measured without an epilogue, so those with one and without are the same.
// INTERNAL for types that this program does not know.
absl::StatusOr<std::vector<TuneTarget>> TargetsOf(const client::ListTrafficResponse& traffic);

// The types of all targets, each once.
std::vector<gemm::bench::TypesPattern> TypesOf(const std::vector<TuneTarget>& targets);

}  // namespace gemmd::ctl
