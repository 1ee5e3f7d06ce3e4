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
    {pb::DATA_TYPE_F32, pb::COMPUTE_MODE_F32X3, gemm::DType::kF32, gemm::Compute::kF32x3},
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

constexpr const char* kFormNames[kForms] = {"", "batch of ", "group of ", "block of "};

// Makes a stack of `count` matrices of this shape.
void Stack(pb::MatrixShape& shape, int64_t count) {
  if (ColumnMajor(shape)) {
    shape.set_cols(shape.cols() * count);
  } else {
    shape.set_rows(shape.rows() * count);
  }
}

}  // namespace

PoolProblem::PoolProblem(Form form, uint64_t seed, int64_t largest) : form_(form) {
  Describe(seed, largest);
  Multiply(seed);
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
  // What is stacked in m, and a block of rows, is row by row.
  const bool by_rows = form_ == Form::kGroup || form_ == Form::kRowBlock;
  product_.set_transpose_a(flip() && !by_rows);
  product_.set_transpose_b(flip());
  const bool result_columns = flip() && !by_rows;
  product_.set_output_layout(result_columns ? pb::LAYOUT_COLUMN_MAJOR : pb::LAYOUT_ROW_MAJOR);
  product_.set_activation(kActivations[random() % std::size(kActivations)].first);
  if (product_.activation() == pb::ACTIVATION_LEAKY_RELU) product_.set_leaky_slope(0.125);
  product_.set_alpha(flip() ? 1 : -0.75);
  operands_[0].emplace().shape = product_.transpose_a()
                                     ? Shape(k_, m_, row.wire, flip())
                                     : Shape(m_, k_, row.wire, flip() && form_ != Form::kGroup);
  operands_[1].emplace().shape =
      product_.transpose_b() ? Shape(n_, k_, row.wire, flip()) : Shape(k_, n_, row.wire, flip());
  if (flip()) {
    product_.set_beta(0.5);
    operands_[2].emplace().shape = Shape(m_, n_, row.wire, result_columns);
  }
  if (flip()) operands_[3].emplace().shape = Shape(1, n_, row.wire, false);
}

void PoolProblem::Multiply(uint64_t seed) {
  std::mt19937_64 random(seed + 1);
  const auto count = static_cast<int64_t>(2 + random() % 15);
  parts_ = {{.m = m_}};
  switch (form_) {
    case Form::kProduct:
      return;
    case Form::kRowBlock:
      product_.mutable_row_block()->set_product_rows(m_ + static_cast<int64_t>(random() % 1000));
      return;
    case Form::kBatch:
      product_.set_batch_count(static_cast<int32_t>(count));
      for (int64_t i = 1; i < count; ++i) parts_.push_back({i, m_, i * m_});
      break;
    case Form::kGroup: {
      parts_.clear();
      int64_t first_row = 0;
      for (int64_t i = 0; i < count; ++i) {
        // Some have no rows, but not all.
        const int64_t m = i == 0 ? m_ : static_cast<int64_t>(random() % (m_ + 1));
        parts_.push_back({i, m, first_row});
        first_row += m;
        pb::ProductSize& size = *product_.add_group();
        size.set_m(m);
        size.set_n(n_);
        size.set_k(k_);
      }
      m_ = first_row;
      operands_[0]->shape.set_rows(m_);
      if (operands_[2]) operands_[2]->shape.set_rows(m_);
      break;
    }
  }
  if (random() % 2 == 0) product_.add_shared_operands(pb::OPERAND_ROLE_B);
  for (int i = 0; i < kOperands; ++i) {
    const bool of_all_rows = form_ == Form::kGroup && (i == 0 || i == 2);
    if (operands_[i] && !of_all_rows && !Shared(i)) Stack(operands_[i]->shape, count);
  }
}

bool PoolProblem::Shared(int index) const {
  const auto& shared = product_.shared_operands();
  return std::find(shared.begin(), shared.end(), pb::OPERAND_ROLE_A + index) != shared.end();
}

const std::byte* PoolProblem::Begin(int index, const Part& part) const {
  const PoolOperand& operand = *operands_[index];
  const auto products = static_cast<int64_t>(parts_.size());
  if (Shared(index)) return operand.bytes.data();
  if (form_ == Form::kGroup && (index == 0 || index == 2)) {
    const int64_t row_bytes = operand.shape.cols() * static_cast<int64_t>(gemm::SizeOf(types_.d));
    return operand.bytes.data() + part.first_row * row_bytes;
  }
  return operand.bytes.data() + part.index * static_cast<int64_t>(operand.bytes.size()) / products;
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
  const uint64_t products = form_ == Form::kBatch ? parts_.size() : 1;
  return products * m_ * n_ * gemm::SizeOf(types_.d);
}

std::pair<gemm::Problem, gemm::Operands> PoolProblem::Normalised(const Part& part,
                                                                 const std::byte* d) const {
  const bool columns = product_.output_layout() == pb::LAYOUT_COLUMN_MAJOR;
  const PoolOperand& a = *operands_[0];
  const PoolOperand& b = *operands_[1];
  // A column-major operand is its transpose in row-major terms, and so is D.
  const bool trans_a = product_.transpose_a() != ColumnMajor(a.shape);
  const bool trans_b = product_.transpose_b() != ColumnMajor(b.shape);
  gemm::Problem problem;
  problem.m = columns ? n_ : part.m;
  problem.n = columns ? part.m : n_;
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
  operands.a = Begin(columns ? 1 : 0, part);
  operands.lda = LineLength(columns ? b.shape : a.shape);
  operands.b = Begin(columns ? 0 : 1, part);
  operands.ldb = LineLength(columns ? a.shape : b.shape);
  operands.ldc = operands.ldd = problem.n;
  if (operands_[2]) operands.c = Begin(2, part);
  if (operands_[3]) {
    operands.bias = Begin(3, part);
    problem.bias = columns ? gemm::BiasAxis::kRows : gemm::BiasAxis::kColumns;
  }
  // Products lie one behind the other, so `first_row` rows of n are before this one.
  const int64_t bytes_before = part.first_row * n_ * static_cast<int64_t>(gemm::SizeOf(types_.d));
  operands.d = const_cast<std::byte*>(d) + bytes_before;
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
  for (const Part& part : parts_) {
    if (const absl::Status status = JudgePart(part, answer); !status.ok()) return status;
  }
  MutexLock lock(mutex_);
  right_answers_.emplace_back(answer);
  return absl::OkStatus();
}

absl::Status PoolProblem::JudgePart(const Part& part, absl::string_view answer) const {
  if (part.m == 0) return absl::OkStatus();
  const auto [problem, operands] =
      Normalised(part, reinterpret_cast<const std::byte*>(answer.data()));
  const bool full = gemm::Flops(problem) / 2 <= kFullJudgement;
  const gemm::Agreement agreement = gemm::CompareWithReference(
      problem, operands, gemm::Elements::kDrawn, full ? part.m * n_ : kSamples, /*seed=*/1);
  if (agreement.worst_ratio <= 1) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(ToString(), ": product ", part.index, ", element (",
                                          agreement.worst_row, ", ", agreement.worst_col,
                                          ") is off by ", agreement.worst_ratio, " of its bound"));
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
  return absl::StrCat(
      kFormNames[static_cast<int>(form_)],
      form_ == Form::kProduct || form_ == Form::kRowBlock ? "" : absl::StrCat(parts_.size(), ": "),
      m_, "x", n_, "x", k_, " ", pb::DataType_Name(operands_[0]->shape.dtype()), " ",
      pb::ComputeMode_Name(product_.compute()), " ", pb::Activation_Name(product_.activation()));
}

std::vector<std::unique_ptr<PoolProblem>> MakePool(int count, int64_t largest, uint64_t seed) {
  std::vector<std::unique_ptr<PoolProblem>> pool;
  for (int i = 0; i < count; ++i) {
    // Most are small, so that the load is many jobs and not a few long ones.
    const int64_t limit = i % 10 == 0 ? largest : i % 3 == 0 ? largest / 2 : largest / 6;
    // Every other one is a product; those of other forms have many.
    const Form form = i % 2 == 0 ? Form::kProduct : static_cast<Form>(1 + i / 2 % (kForms - 1));
    const int64_t most = form == Form::kBatch || form == Form::kGroup ? largest / 6 : limit;
    pool.push_back(
        std::make_unique<PoolProblem>(form, seed * 1000 + i, std::max<int64_t>(most, 8)));
  }
  return pool;
}

}  // namespace gemmd::soak
