// Jobs whose group is wrong: its sizes, its shared operands, or the matrices.
#include <limits>
#include <string>
#include <utility>

#include "tests/rpc/bad_jobs.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;

BadJob InvalidGroup(std::string name, ProductChange change, std::vector<std::string> sentence) {
  return BadProduct(std::move(name), std::move(change), StatusCode::INVALID_ARGUMENT,
                    std::move(sentence));
}

// The good product is 8x6x4.
void AddSize(v1::Product& product, int64_t m, int64_t n, int64_t k) {
  v1::ProductSize& size = *product.add_group();
  size.set_m(m);
  size.set_n(n);
  size.set_k(k);
}

void ShareOne(v1::Product& product, v1::OperandRole role) { product.add_shared_operands(role); }

void AddGroupSizes(std::vector<BadJob>& jobs) {
  jobs.push_back(InvalidGroup("GroupAboveTheLimit",
                              [](auto& p, auto&) {
                                for (int i = 0; i < 4097; ++i) AddSize(p, 1, 6, 4);
                              },
                              {"group has 4097 products", "at most 4096"}));
  for (const auto& [name, m] : {std::pair<const char*, int64_t>{"GroupOfMinusOneRow", -1},
                                {"GroupAboveTheLongest", (int64_t{1} << 48) + 1},
                                {"GroupOfTheLeast", std::numeric_limits<int64_t>::min()},
                                {"GroupOfTheMost", std::numeric_limits<int64_t>::max()}}) {
    jobs.push_back(
        InvalidGroup(name,
                     [m = m](auto& p, auto&) {
                       AddSize(p, 8, 6, 4);
                       AddSize(p, m, 6, 4);
                     },
                     {"group[1].m is " + std::to_string(m), "from 0 to 281474976710656"}));
  }
  jobs.push_back(InvalidGroup("GroupOfEmptySizes", [](auto& p, auto&) { p.add_group(); },
                              {"the n of the group's products is 0", "at least 1"}));
  jobs.push_back(InvalidGroup("GroupOfNoRows",
                              [](auto& p, auto&) {
                                AddSize(p, 0, 6, 4);
                                AddSize(p, 0, 6, 4);
                              },
                              {"the m of all products of the group is 0", "at least 1"}));
  jobs.push_back(
      InvalidGroup("GroupOfSumsBeyondAllMatrices",
                   [](auto& p, auto&) {
                     for (int i = 0; i < 4096; ++i) AddSize(p, int64_t{1} << 48, 6, 4);
                   },
                   {"a is 8x4 f32 row-major", "1152921504606846976x4", "4096 products"}));
  jobs.push_back(InvalidGroup("GroupThatDiffersInTwoDimensions",
                              [](auto& p, auto&) {
                                AddSize(p, 3, 6, 4);
                                AddSize(p, 5, 6, 4);
                                AddSize(p, 3, 7, 4);
                              },
                              {"group[0] is 3x6x4", "group[1] differs from it in m (5x6x4)",
                               "group[2] in n (3x7x4)", "one dimension"}));
  jobs.push_back(InvalidGroup("GroupInABatch",
                              [](auto& p, auto&) {
                                p.set_batch_count(2);
                                AddSize(p, 8, 6, 4);
                              },
                              {"batch_count is 2", "group has 1 products", "leave one of them"}));
}

void AddGroupOrders(std::vector<BadJob>& jobs) {
  jobs.push_back(InvalidGroup("GroupByNInRows",
                              [](auto& p, auto&) {
                                AddSize(p, 8, 2, 4);
                                AddSize(p, 8, 4, 4);
                              },
                              {"b is row-major", "2 elements for group[0] and 4 for group[1]",
                               "transpose_b", "one by one"}));
  jobs.push_back(InvalidGroup("GroupByKInRowsOfA",
                              [](auto& p, auto&) {
                                AddSize(p, 8, 6, 1);
                                AddSize(p, 8, 6, 3);
                              },
                              {"a is row-major", "1 elements for group[0] and 3 for group[1]",
                               "column-major or as its transpose with transpose_a"}));
  jobs.push_back(InvalidGroup(
      "GroupByMInColumnsOfTheResult",
      [](auto& p, auto&) {
        AddSize(p, 3, 6, 4);
        AddSize(p, 5, 6, 4);
        p.set_output_layout(v1::LAYOUT_COLUMN_MAJOR);
      },
      {"the result is column-major", "3 elements for group[0] and 5 for", "output_layout"}));
  jobs.push_back(InvalidGroup(
      "GroupOfOneSizeInNoCommonDimension",
      [](auto& p, auto&) {
        AddSize(p, 8, 6, 4);
        p.set_output_layout(v1::LAYOUT_COLUMN_MAJOR);
      },
      {"the lines of a are its m, those of b its k and those of the result its n", "batch_count"}));
}

void AddGroupMatrices(std::vector<BadJob>& jobs) {
  const auto two = [](v1::Product& p) {
    AddSize(p, 3, 6, 4);
    AddSize(p, 5, 6, 4);
  };
  jobs.push_back(
      InvalidGroup("GroupWhoseSumIsNotA",
                   [](auto& p, auto&) {
                     AddSize(p, 3, 6, 4);
                     AddSize(p, 6, 6, 4);
                     ShareOne(p, v1::OPERAND_ROLE_B);
                   },
                   {"a is 8x4 f32 row-major", "must be 9x4", "the m of all 2 products"}));
  jobs.push_back(InvalidGroup("GroupWithOneB", [two](auto& p, auto&) { two(p); },
                              {"b is 4x6", "must be 8x6", "2 products", "shared_operands"}));
  jobs.push_back(InvalidGroup("GroupThatSharesWhatIsStacked",
                              [two](auto& p, auto&) {
                                two(p);
                                ShareOne(p, v1::OPERAND_ROLE_A);
                              },
                              {"shared_operands names a", "a has the m", "leave it out"}));
  jobs.push_back(InvalidGroup("GroupWithTheBiasOfOneProduct",
                              [two](auto& p, auto&) {
                                two(p);
                                ShareOne(p, v1::OPERAND_ROLE_B);
                                *p.mutable_bias() = GeneratedOperand({1, 6, gemm::DType::kF32}, 1);
                              },
                              {"bias is 1x6", "2x6 f32", "a row for each product"}));
  jobs.push_back(InvalidGroup("GroupWithTheCOfOneProduct",
                              [two](auto& p, auto&) {
                                two(p);
                                ShareOne(p, v1::OPERAND_ROLE_B);
                                p.set_beta(1);
                                *p.mutable_c() = GeneratedOperand({3, 6, gemm::DType::kF32}, 1);
                              },
                              {"c is 3x6", "as the result: 8x6"}));
  jobs.push_back(InvalidGroup("GroupWithAnotherResidentMatrix",
                              [two](auto& p, const World& world) {
                                two(p);
                                p.mutable_a()->clear_shape();
                                p.mutable_a()->mutable_matrix()->set_id(world.resident_id);
                              },
                              {"a is 8x8 f32 row-major", "must be 8x4"}));
  jobs.push_back(BadProduct("CheckedGroup",
                            [two](auto& p, auto&) {
                              two(p);
                              ShareOne(p, v1::OPERAND_ROLE_B);
                              p.set_verify(v1::VERIFY_ALWAYS);
                            },
                            StatusCode::FAILED_PRECONDITION,
                            {"verify is always", "groups are not checked", "2 products"}));
}

}  // namespace

void AddGroups(std::vector<BadJob>& jobs) {
  AddGroupSizes(jobs);
  AddGroupOrders(jobs);
  AddGroupMatrices(jobs);
}

}  // namespace gemmd
