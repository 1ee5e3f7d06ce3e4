// The products that a soak run asks for, and the judge of the answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gemm/generate.h"
#include "gemm/problem.h"
#include "gemm/v1/gemm.pb.h"
#include "server/base/mutex.h"

namespace gemmd::soak {

inline constexpr int kOperands = 4;  // A, B, C, bias

// One operand, drawn from a seed, so that it can be sent, kept or generated.
struct PoolOperand {
  gemm::v1::MatrixShape shape;
  gemm::v1::Generator generator;
  std::vector<std::byte> bytes;  // dense, as on the wire
};

// One product. Its answers are right where they are, bit for bit, an answer
// that the float64 oracle has found to be within its bound. Thread-safe.
class PoolProblem {
 public:
  // Types, shape, transposes, layouts, scalars and epilogue follow from `seed`;
  // no extent passes `largest`.
  PoolProblem(uint64_t seed, int64_t largest);

  // Everything but the operands' sources and the result's destination.
  const gemm::v1::Product& product() const { return product_; }
  // Left out where the product has no C or no bias.
  const std::optional<PoolOperand>& operand(int index) const { return operands_[index]; }
  uint64_t result_bytes() const;

  // OK, or DATA_LOSS that says where the answer is wrong.
  absl::Status Judge(absl::string_view answer);

  // How many different right answers were seen: more than one where kernels of
  // differing rounding served the problem.
  size_t variants() const;
  std::string ToString() const;

 private:
  void Describe(uint64_t seed, int64_t largest);
  void DrawOperands(uint64_t seed);
  // The product in the row-major terms of the oracle; `d` is the answer.
  std::pair<gemm::Problem, gemm::Operands> Normalised(const void* d) const;

  gemm::v1::Product product_;
  std::array<std::optional<PoolOperand>, kOperands> operands_;
  int64_t m_ = 0, n_ = 0, k_ = 0;
  gemm::Types types_{gemm::DType::kF32, gemm::DType::kF32, gemm::DType::kF32, gemm::Compute::kF32};

  bool KnownRight(absl::string_view answer) const;

  Mutex oracle_mutex_;  // held while the oracle runs; taken before mutex_
  mutable Mutex mutex_;
  std::vector<std::string> right_answers_ ABSL_GUARDED_BY(mutex_);
};

std::vector<std::unique_ptr<PoolProblem>> MakePool(int count, int64_t largest, uint64_t seed);

}  // namespace gemmd::soak
