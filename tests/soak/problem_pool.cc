#include "tests/soak/problem_pool.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/reference.h"

namespace gemmd::soak {
namespace {

namespace pb = ::gemm::v1;

struct TypeRow {
  pb::DataType wire;
  pb::ComputeMode compute;
  gemm::DType type;
  gemm::Compute mode;
};
constexpr TypeRow kTypes[] = {
    {pb::DATA_TYPE_F64, pb::COMPUTE_MODE_F64, gemm::DType::kF64, gemm::Compute::kF64},
    {pb::DATA_TYPE_F32, pb::COMPUTE_MODE_F32, gemm::DType::kF32, gemm::Compute::kF32},
    {pb::DATA_TYPE_F32, pb::COMPUTE_MODE_TF32, gemm::DType::kF32, gemm::Compute::kTF32},
    {pb::DATA_TYPE_F16, pb::COMPUTE_MODE_F32, gemm::DType::kF16, gemm::Compute::kF32},
    {pb::DATA_TYPE_F16, pb::COMPUTE_MODE_F16, gemm::DType::kF16, gemm::Compute::kF16},
    {pb::DATA_TYPE_BF16, pb::COMPUTE_MODE_F32, gemm::DType::kBF16, gemm::Compute::kF32},
};

constexpr std::pair<pb::Activation, gemm::Activation> kActivations[] = {
    {pb::ACTIVATION_NONE, gemm::Activation::kNone},
    {pb::ACTIVATION_RELU, gemm::Activation::kRelu},
    {pb::ACTIVATION_GELU, gemm::Activation::kGelu},
    {pb::ACTIVATION_LEAKY_RELU, gemm::Activation::kLeakyRelu},
};

bool ColumnMajor(const pb::MatrixShape& shape) { return shape.layout() == pb::LAYOUT_COLUMN_MAJOR; }

// Elements from one line to the next of a dense matrix.
int64_t LineLength(const pb::MatrixShape& shape) {
  return ColumnMajor(shape) ? shape.rows() : shape.cols();
}

pb::MatrixShape Shape(int64_t rows, int64_t cols, pb::DataType type, bool column_major) {
  pb::MatrixShape shape;
  shape.set_rows(rows);
  shape.set_cols(cols);
  shape.set_dtype(type);
  shape.set_layout(column_major ? pb::LAYOUT_COLUMN_MAJOR : pb::LAYOUT_ROW_MAJOR);
  return shape;
}

// Products up to this many multiplications are judged element by element;
// larger ones at kSamples elements, corners and edges among them.
constexpr double kFullJudgement = 0x1p30;
constexpr int64_t kSamples = 50000;

}  // namespace

PoolProblem::PoolProblem(uint64_t seed, int64_t largest) {
  Describe(seed, largest);
  DrawOperands(seed);
}

void PoolProblem::Describe(uint64_t seed, int64_t largest) {
  std::mt19937_64 random(seed);
  const auto flip = [&] { return (random() & 1) != 0; };
  const auto extent = [&] {
    std::uniform_real_distribution<double> exponent(0, std::log(static_cast<double>(largest)));
    return std::clamp<int64_t>(std::llround(std::exp(exponent(random))), 1, largest);
  };
  m_ = extent();
  n_ = extent();
  k_ = extent();
  const TypeRow& row = kTypes[seed % std::size(kTypes)];
  types_ = {row.type, row.type, row.type, row.mode};
  product_.set_compute(row.compute);
  product_.set_transpose_a(flip());
  product_.set_transpose_b(flip());
  const bool result_columns = flip();
  product_.set_output_layout(result_columns ? pb::LAYOUT_COLUMN_MAJOR : pb::LAYOUT_ROW_MAJOR);
  product_.set_activation(kActivations[random() % std::size(kActivations)].first);
  if (product_.activation() == pb::ACTIVATION_LEAKY_RELU) product_.set_leaky_slope(0.125);
  product_.set_alpha(flip() ? 1 : -0.75);
  operands_[0].emplace().shape =
      product_.transpose_a() ? Shape(k_, m_, row.wire, flip()) : Shape(m_, k_, row.wire, flip());
  operands_[1].emplace().shape =
      product_.transpose_b() ? Shape(n_, k_, row.wire, flip()) : Shape(k_, n_, row.wire, flip());
  if (flip()) {
    product_.set_beta(0.5);
    operands_[2].emplace().shape = Shape(m_, n_, row.wire, result_columns);
  }
  if (flip()) operands_[3].emplace().shape = Shape(1, n_, row.wire, false);
}

void PoolProblem::DrawOperands(uint64_t seed) {
  for (int i = 0; i < kOperands; ++i) {
    if (!operands_[i]) continue;
    PoolOperand& operand = *operands_[i];
    const gemm::GeneratorSpec spec = {.seed = seed * kOperands + i,
                                      .distribution = gemm::Distribution::kUniform,
                                      .low_or_mean = -1,
                                      .high_or_stddev = 1};
    operand.generator.set_seed(spec.seed);
    operand.generator.mutable_uniform()->set_low(spec.low_or_mean);
    operand.generator.mutable_uniform()->set_high(spec.high_or_stddev);
    const size_t element = gemm::SizeOf(types_.d);
    operand.bytes.resize(operand.shape.rows() * operand.shape.cols() * element);
    const absl::Status drawn = gemm::GenerateHost(
        spec, {.data = operand.bytes.data(),
               .type = types_.d,
               .rows = operand.shape.rows(),
               .cols = operand.shape.cols(),
               .pitch_bytes = LineLength(operand.shape) * static_cast<int64_t>(element),
               .column_major = ColumnMajor(operand.shape)});
    if (!drawn.ok()) operand.bytes.clear();
  }
}

uint64_t PoolProblem::result_bytes() const {
  return static_cast<uint64_t>(m_) * n_ * gemm::SizeOf(types_.d);
}

std::pair<gemm::Problem, gemm::Operands> PoolProblem::Normalised(const void* d) const {
  const bool columns = product_.output_layout() == pb::LAYOUT_COLUMN_MAJOR;
  const PoolOperand& a = *operands_[0];
  const PoolOperand& b = *operands_[1];
  // A column-major operand is its transpose in row-major terms, and so is D.
  const bool trans_a = product_.transpose_a() != ColumnMajor(a.shape);
  const bool trans_b = product_.transpose_b() != ColumnMajor(b.shape);
  gemm::Problem problem;
  problem.m = columns ? n_ : m_;
  problem.n = columns ? m_ : n_;
  problem.k = k_;
  problem.types = types_;
  problem.trans_a = columns ? !trans_b : trans_a;
  problem.trans_b = columns ? !trans_a : trans_b;
  problem.alpha = product_.alpha();
  problem.beta = product_.beta();
  problem.leaky_slope = product_.leaky_slope();
  for (const auto& [wire, activation] : kActivations) {
    if (wire == product_.activation()) problem.activation = activation;
  }
  gemm::Operands operands;
  const PoolOperand& left = columns ? b : a;
  const PoolOperand& right = columns ? a : b;
  operands.a = left.bytes.data();
  operands.lda = LineLength(left.shape);
  operands.b = right.bytes.data();
  operands.ldb = LineLength(right.shape);
  operands.ldc = operands.ldd = problem.n;
  if (operands_[2]) operands.c = operands_[2]->bytes.data();
  if (operands_[3]) {
    operands.bias = operands_[3]->bytes.data();
    problem.bias = columns ? gemm::BiasAxis::kRows : gemm::BiasAxis::kColumns;
  }
  operands.d = const_cast<void*>(d);
  return {problem, operands};
}

absl::Status PoolProblem::Judge(absl::string_view answer) {
  if (answer.size() != result_bytes()) {
    return absl::DataLossError(
        absl::StrCat(ToString(), ": ", answer.size(), " bytes came, not ", result_bytes()));
  }
  if (KnownRight(answer)) return absl::OkStatus();
  // Many streams meet a new answer at once; one of them asks the oracle.
  MutexLock asking(oracle_mutex_);
  if (KnownRight(answer)) return absl::OkStatus();
  const auto [problem, operands] = Normalised(answer.data());
  const bool full = gemm::Flops(problem) / 2 <= kFullJudgement;
  const gemm::Agreement agreement = gemm::CompareWithReference(
      problem, operands, gemm::Elements::kDrawn, full ? m_ * n_ : kSamples, /*seed=*/1);
  if (!(agreement.worst_ratio <= 1)) {
    return absl::DataLossError(absl::StrCat(ToString(), ": element (", agreement.worst_row, ", ",
                                            agreement.worst_col, ") is off by ",
                                            agreement.worst_ratio, " of its bound"));
  }
  MutexLock lock(mutex_);
  right_answers_.emplace_back(answer);
  return absl::OkStatus();
}

bool PoolProblem::KnownRight(absl::string_view answer) const {
  MutexLock lock(mutex_);
  return std::find(right_answers_.begin(), right_answers_.end(), answer) != right_answers_.end();
}

size_t PoolProblem::variants() const {
  MutexLock lock(mutex_);
  return right_answers_.size();
}

std::string PoolProblem::ToString() const {
  return absl::StrCat(m_, "x", n_, "x", k_, " ", pb::DataType_Name(operands_[0]->shape.dtype()),
                      " ", pb::ComputeMode_Name(product_.compute()), " ",
                      pb::Activation_Name(product_.activation()));
}

std::vector<std::unique_ptr<PoolProblem>> MakePool(int count, int64_t largest, uint64_t seed) {
  std::vector<std::unique_ptr<PoolProblem>> pool;
  for (int i = 0; i < count; ++i) {
    // Most are small, so that the load is many jobs and not a few long ones.
    const int64_t limit = i % 10 == 0 ? largest : i % 3 == 0 ? largest / 2 : largest / 6;
    pool.push_back(std::make_unique<PoolProblem>(seed * 1000 + i, std::max<int64_t>(limit, 8)));
  }
  return pool;
}

}  // namespace gemmd::soak
