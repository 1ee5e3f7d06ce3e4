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

// What is asked for in one request.
enum class Form { kProduct, kBatch, kGroup, kRowBlock };
inline constexpr int kForms = 4;

// One request. Its answers are right where they are, bit for bit, an answer
// that the float64 oracle has found to be within its bound. Thread-safe.
class PoolProblem {
 public:
  // Types, shape, transposes, layouts, scalars and epilogue follow from `seed`;
  // no extent of a product passes `largest`.
  PoolProblem(Form form, uint64_t seed, int64_t largest);

  // Left to the server otherwise.
  void ChooseKernel(const std::string& name) { product_.mutable_kernel()->set_name(name); }

  Form form() const { return form_; }

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
  // One product of the request: its rows of A, C and D begin at row `first_row` of all.
  struct Part {
    int64_t index = 0;
    int64_t m = 0;
    int64_t first_row = 0;
  };

  void Describe(uint64_t seed, int64_t largest);
  // Makes a batch, a group or a block of rows of the product that was described.
  void Multiply(uint64_t seed);
  void DrawOperands(uint64_t seed);
  bool Shared(int index) const;
  // Where the part's own operand begins.
  const std::byte* Begin(int index, const Part& part) const;
  // The part in the row-major terms of the oracle; `d` is the answer of all parts.
  std::pair<gemm::Problem, gemm::Operands> Normalised(const Part& part, const std::byte* d) const;
  absl::Status JudgePart(const Part& part, absl::string_view answer) const;

  const Form form_;
  gemm::v1::Product product_;
  std::array<std::optional<PoolOperand>, kOperands> operands_;
  int64_t m_ = 0, n_ = 0, k_ = 0;  // of one product; of a group m_ is that of all together
  std::vector<Part> parts_;
  gemm::Types types_{gemm::DType::kF32, gemm::DType::kF32, gemm::DType::kF32, gemm::Compute::kF32};

  bool KnownRight(absl::string_view answer) const;

  Mutex oracle_mutex_;  // held while the oracle runs; taken before mutex_
  mutable Mutex mutex_;
  std::vector<std::string> right_answers_ ABSL_GUARDED_BY(mutex_);
};

std::vector<std::unique_ptr<PoolProblem>> MakePool(int count, int64_t largest, uint64_t seed);

}  // namespace gemmd::soak
