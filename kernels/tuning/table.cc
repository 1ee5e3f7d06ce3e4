// The entries of a tuning table.
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/tuning.h"

namespace gemm {

absl::string_view Name(EpilogueClass epilogue) {
  return epilogue == EpilogueClass::kPlain ? "plain" : "full";
}

EpilogueClass EpilogueClassOf(const Problem& problem) {
  const bool plain = problem.beta == 0 && problem.bias == BiasAxis::kNone &&
                     problem.activation == Activation::kNone;
  return plain ? EpilogueClass::kPlain : EpilogueClass::kFull;
}

TunedProduct TunedProduct::Of(const Problem& problem) {
  return {.a = problem.types.a,
          .b = problem.types.b,
          .d = problem.types.d,
          .compute = problem.types.compute,
          .trans_a = problem.trans_a,
          .trans_b = problem.trans_b,
          .epilogue = EpilogueClassOf(problem),
          .m = problem.m,
          .n = problem.n,
          .k = problem.k};
}

absl::Status TuningTable::Put(const Machine& machine, const TunedProduct& product,
                              TunedChoice choice) {
  auto& products = entries_[machine];
  const auto known = products.find(product);
  if (known != products.end()) {
    known->second = std::move(choice);
    return absl::OkStatus();
  }
  if (size_ == kMaxTuningEntries) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kMaxTuningEntries, " entries in one tuning table"));
  }
  products.emplace(product, std::move(choice));
  ++size_;
  return absl::OkStatus();
}

absl::Status TuningTable::Merge(const TuningTable& later) {
  for (const auto& [machine, products] : later.entries_) {
    for (const auto& [product, choice] : products) {
      if (absl::Status status = Put(machine, product, choice); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace gemm
