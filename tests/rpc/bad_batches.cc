// Jobs whose batch is wrong: its count, its shared operands, or the matrices.
#include <limits>
#include <utility>

#include "tests/rpc/bad_jobs.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;

BadJob InvalidBatch(std::string name, ProductChange change, std::vector<std::string> sentence) {
  return BadProduct(std::move(name), std::move(change), StatusCode::INVALID_ARGUMENT,
                    std::move(sentence));
}

void Share(v1::Product& product, int role) {
  product.add_shared_operands(static_cast<v1::OperandRole>(role));
}

void AddCounts(std::vector<BadJob>& jobs) {
  for (const auto& [name, count] : {std::pair<const char*, int32_t>{"BatchOfNone", 0},
                                    {"NegativeBatch", -1},
                                    {"BatchAboveTheLimit", 65536},
                                    {"SmallestBatch", std::numeric_limits<int32_t>::min()},
                                    {"LargestBatch", std::numeric_limits<int32_t>::max()}}) {
    jobs.push_back(InvalidBatch(name, [count = count](auto& p, auto&) { p.set_batch_count(count); },
                                {"batch_count is " + std::to_string(count), "from 1 to 65535"}));
  }
}

void AddSharing(std::vector<BadJob>& jobs) {
  jobs.push_back(InvalidBatch("SharedUnspecified", [](auto& p, auto&) { Share(p, 0); },
                              {"product.shared_operands: not set", "OPERAND_ROLE_BIAS"}));
  jobs.push_back(InvalidBatch("SharedUnknown", [](auto& p, auto&) { Share(p, 77); },
                              {"product.shared_operands: 77", "OPERAND_ROLE_A"}));
  jobs.push_back(InvalidBatch("SharedTwice",
                              [](auto& p, auto&) {
                                for (int i = 0; i < 1000; ++i) Share(p, v1::OPERAND_ROLE_B);
                              },
                              {"product.shared_operands: b is named twice"}));
  jobs.push_back(InvalidBatch("SharedWithoutBias",
                              [](auto& p, auto&) { Share(p, v1::OPERAND_ROLE_BIAS); },
                              {"shared_operands names bias", "has no bias"}));
}

void AddStacks(std::vector<BadJob>& jobs) {
  jobs.push_back(InvalidBatch(
      "RowsThatTheBatchDoesNotDivide", [](auto& p, auto&) { p.set_batch_count(3); },
      {"a is 8x4 f32 row-major", "batch_count 3", "8 rows must be a multiple", "shared_operands"}));
  jobs.push_back(InvalidBatch("ColumnsThatTheBatchDoesNotDivide",
                              [](auto& p, auto&) {
                                p.mutable_a()->mutable_shape()->set_layout(v1::LAYOUT_COLUMN_MAJOR);
                                p.set_batch_count(8);
                              },
                              {"a is 8x4 f32 column-major", "4 columns must be a multiple"}));
  jobs.push_back(InvalidBatch("SharedOperandOfAnotherShape",
                              [](auto& p, auto&) {
                                p.set_batch_count(2);
                                Share(p, v1::OPERAND_ROLE_A);
                              },
                              {"inner dimensions", "op(a) is 8x4", "op(b) is 2x6"}));
  jobs.push_back(InvalidBatch("BiasOfOneProduct",
                              [](auto& p, auto&) {
                                p.set_batch_count(2);
                                Share(p, v1::OPERAND_ROLE_B);
                                *p.mutable_bias() = GeneratedOperand({1, 6, gemm::DType::kF32}, 1);
                              },
                              {"bias is 1x6", "2x6 f32", "a row for each product"}));
  jobs.push_back(InvalidBatch(
      "ColumnMajorBiasOfAsManyColumnsAsProducts",
      [](auto& p, auto&) {
        *p.mutable_a() = GeneratedOperand({12, 4, gemm::DType::kF32}, 1);
        p.set_batch_count(6);
        Share(p, v1::OPERAND_ROLE_B);
        *p.mutable_bias() = GeneratedOperand({6, 6, gemm::DType::kF32, /*column_major=*/true}, 1);
      },
      {"bias is 6x6 f32 column-major", "row-major, so that"}));
  jobs.push_back(InvalidBatch("SharedFactors",
                              [](auto& p, auto&) {
                                p.set_batch_count(2);
                                Share(p, v1::OPERAND_ROLE_A);
                                Share(p, v1::OPERAND_ROLE_B);
                                p.mutable_a()->mutable_shape()->set_cols(4);
                              },
                              {"shared_operands names a and b", "batch_count 2"}));
  jobs.push_back(InvalidBatch("COfOneProduct",
                              [](auto& p, auto&) {
                                p.set_batch_count(2);
                                Share(p, v1::OPERAND_ROLE_B);
                                p.set_beta(1);
                                *p.mutable_c() = GeneratedOperand({4, 6, gemm::DType::kF32}, 1);
                              },
                              {"c is 4x6", "as the result: 8x6"}));
  jobs.push_back(InvalidBatch("ResidentOperandOfAnotherBatch",
                              [](auto& p, const World& world) {
                                p.set_batch_count(3);
                                p.mutable_a()->clear_shape();
                                p.mutable_a()->mutable_matrix()->set_id(world.resident_id);
                              },
                              {"a is 8x8 f32 row-major", "batch_count 3"}));
  jobs.push_back(
      InvalidBatch("OverflowingBatchOfResults",
                   [](auto& p, auto&) {
                     *p.mutable_a() = GeneratedOperand({int64_t{1} << 55, 1, gemm::DType::kF32}, 1);
                     *p.mutable_b() = GeneratedOperand({1, 1, gemm::DType::kF32}, 1);
                     p.set_batch_count(65535);
                     Share(p, v1::OPERAND_ROLE_A);
                     Share(p, v1::OPERAND_ROLE_B);
                   },
                   {"the result", "2^60"}));
  jobs.push_back(BadProduct("CheckedBatch",
                            [](auto& p, auto&) {
                              p.set_batch_count(2);
                              Share(p, v1::OPERAND_ROLE_B);
                              p.set_verify(v1::VERIFY_ALWAYS);
                            },
                            StatusCode::FAILED_PRECONDITION,
                            {"verify is always", "batches are not checked", "batch_count is 2"}));
}

}  // namespace

void AddBatches(std::vector<BadJob>& jobs) {
  AddCounts(jobs);
  AddSharing(jobs);
  AddStacks(jobs);
}

}  // namespace gemmd
