// Block scales of what cannot have them, in the wrong place or of the wrong size.
#include <utility>

#include "tests/rpc/bad_jobs.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using gemm::DType;
using grpc::StatusCode;

// A product of 8 x 200 e4m3 times 200 x 6 that is right, with one thing changed.
BadJob InvalidScales(std::string name, ProductChange change, std::vector<std::string> sentence,
                     StatusCode code = StatusCode::INVALID_ARGUMENT) {
  return BadProduct(
      std::move(name),
      [change = std::move(change)](v1::Product& p, const World& world) {
        *p.mutable_a() = GeneratedOperand({8, 200, DType::kE4M3}, 1);
        *p.mutable_b() = GeneratedOperand({200, 6, DType::kE4M3}, 2);
        *p.mutable_scales_a() = GeneratedOperand({8, 2, DType::kF32}, 3);
        *p.mutable_scales_b() = GeneratedOperand({2, 1, DType::kF32}, 4);
        change(p, world);
      },
      code, std::move(sentence));
}

}  // namespace

void AddBlockScales(std::vector<BadJob>& jobs) {
  jobs.push_back(InvalidScales("ScalesOfOneAlone", [](auto& p, auto&) { p.clear_scales_b(); },
                               {"scales_a is given without scales_b"}));
  jobs.push_back(InvalidScales("ScalesOfF32",
                               [](auto& p, auto&) {
                                 *p.mutable_a() = GeneratedOperand({8, 200, DType::kF32}, 1);
                               },
                               {"a is f32", "e4m3 or e5m2"}));
  jobs.push_back(InvalidScales("ScalesOfAnotherSize",
                               [](auto& p, auto&) {
                                 *p.mutable_scales_a() = GeneratedOperand({2, 8, DType::kF32}, 3);
                               },
                               {"scales_a is 2x8", "8x2 f32", "1x2 f32"}));
  jobs.push_back(InvalidScales("ScalesWithoutASource",
                               [](auto& p, auto&) { p.mutable_scales_b()->clear_generator(); },
                               {"product.scales_b.source", "not set"}));
  jobs.push_back(InvalidScales("ScalesThatAreShared",
                               [](auto& p, auto&) {
                                 p.clear_scales_a();
                                 p.clear_scales_b();
                                 p.add_shared_operands(v1::OPERAND_ROLE_SCALES_A);
                               },
                               {"shared_operands names scales_a", "no scales_a"}));
  jobs.push_back(InvalidScales(
      "ScalesThatAreChecked", [](auto& p, auto&) { p.set_verify(v1::VERIFY_ALWAYS); },
      {"block scales are not checked", "leave verify out"}, StatusCode::FAILED_PRECONDITION));
}

}  // namespace gemmd
