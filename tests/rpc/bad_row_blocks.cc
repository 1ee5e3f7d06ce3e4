// Blocks of rows that are none: of a smaller product, of columns, or by a kernel that promises
// nothing.
#include <limits>
#include <utility>

#include "tests/rpc/bad_jobs.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;

// The good product is of 8 rows.
BadJob InvalidBlock(std::string name, int64_t product_rows, ProductChange change,
                    std::vector<std::string> sentence) {
  return BadProduct(
      std::move(name),
      [product_rows, change = std::move(change)](v1::Product& p, const World& world) {
        p.mutable_kernel()->set_name("host_reference");
        p.mutable_row_block()->set_product_rows(product_rows);
        if (change) change(p, world);
      },
      StatusCode::INVALID_ARGUMENT, std::move(sentence));
}

}  // namespace

void AddRowBlocks(std::vector<BadJob>& jobs) {
  for (const auto& [name, rows] :
       {std::pair<const char*, int64_t>{"RowBlockOfNothing", 0},
        {"RowBlockOfASmallerProduct", 7},
        {"RowBlockOfNegativeRows", std::numeric_limits<int64_t>::min()}}) {
    jobs.push_back(
        InvalidBlock(name, rows, nullptr,
                     {"row_block.product_rows is " + std::to_string(rows), "must be at least 8"}));
  }
  jobs.push_back(InvalidBlock("RowBlockOfTooMuch", std::numeric_limits<int64_t>::max(), nullptr,
                              {"row_block", "9223372036854775807x6", "2^60 bytes"}));
  jobs.push_back(InvalidBlock("RowBlockInColumns", 100,
                              [](auto& p, auto&) { p.set_output_layout(v1::LAYOUT_COLUMN_MAJOR); },
                              {"row_block is set", "output_layout is column-major"}));
  jobs.push_back(
      InvalidBlock("RowBlockOfALibrary", 100,
                   [](auto& p, auto&) { p.mutable_kernel()->set_name("host_openblas"); },
                   {"row_block is set", "host_openblas (chosen by name)", "row_blocks"}));
  jobs.push_back(BadProduct("RowBlockOfTheServersChoice",
                            [](auto& p, auto&) { p.mutable_row_block()->set_product_rows(100); },
                            StatusCode::FAILED_PRECONDITION,
                            {"row_block is set", "host_openblas (auto", "row_blocks"}));
}

}  // namespace gemmd
