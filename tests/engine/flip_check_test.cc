// Flipped bits of products on their device, types by shapes: the engine with checks always on
// delivers none that is above the tolerance of its row.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gemm/catalogue.h"
#include "gemm/check.h"
#include "gemm/generate.h"
#include "tests/engine/fault_fixture.h"

namespace gemmd {
namespace {

struct FlipShape {
  int64_t m, n, k;
};
// Small and large results and sums; those of one row, one column, one term.
constexpr FlipShape kFlipShapes[] = {{1, 40, 30},  {40, 1, 64},  {16, 16, 1},
                                     {33, 70, 90}, {8, 24, 700}, {200, 300, 40}};
constexpr int kFlips = 12;  // of one combination and shape

absl::Span<const gemm::Types> AllTypes() { return (*gemm::FindKernel("host_reference"))->types; }

class FlipCheck : public FaultTest, public ::testing::WithParamInterface<size_t> {
 protected:
  void SetUp() override {
    EngineOptions options = TwoFaultyDevices();
    options.devices = "faulty:1";
    options.verify = Verify::kAlways;
    Make(options);
  }

  static constexpr gemm::GeneratorSpec SpecOf(uint64_t seed) {
    return {.seed = seed, .low_or_mean = -1, .high_or_stddev = 1};
  }
  static OperandSpec Drawn(const Shape& shape, uint64_t seed) {
    return {shape, FromGenerator{SpecOf(seed)}};
  }
  // The same matrix here.
  static std::vector<std::byte> Draw(const Shape& shape, uint64_t seed) {
    std::vector<std::byte> bytes(shape.dense_bytes());
    EXPECT_TRUE(gemm::GenerateHost(SpecOf(seed), {.data = bytes.data(),
                                                  .type = shape.type,
                                                  .rows = shape.rows,
                                                  .cols = shape.cols,
                                                  .pitch_bytes = shape.line_bytes()})
                    .ok());
    return bytes;
  }

  // A product by the first kernel; `recorder_` has its bytes.
  absl::StatusOr<JobResult> Multiply(const gemm::Types& types, const FlipShape& shape) {
    JobSpec spec;
    spec.a = Drawn({shape.m, shape.k, types.a}, 1);
    spec.b = Drawn({shape.k, shape.n, types.b}, 2);
    spec.output_type = types.d;
    spec.compute = types.compute;
    recorder_ = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(std::move(spec), recorder_);
    if (!job.ok()) return job.status();
    (*job)->Start();
    return recorder_->Wait(kPatience);
  }

  // The bounds of the rows of this product.
  static std::vector<gemm::RowResidual> RowsOf(const gemm::Types& types, const FlipShape& shape,
                                               std::vector<std::byte> d) {
    const std::vector<std::byte> a = Draw({shape.m, shape.k, types.a}, 1);
    const std::vector<std::byte> b = Draw({shape.k, shape.n, types.b}, 2);
    gemm::Check check{.problem = {.m = shape.m, .n = shape.n, .k = shape.k, .types = types},
                      .seed = 1};
    check.operands.a = a.data();
    check.operands.lda = shape.k;
    check.operands.b = b.data();
    check.operands.ldb = shape.n;
    check.operands.d = d.data();
    check.operands.ldd = shape.n;
    std::vector<std::byte> scratch(gemm::CheckScratchBytes(check.problem) + 256);
    const auto address = reinterpret_cast<uintptr_t>(scratch.data());
    check.scratch = scratch.data() + (256 - address % 256) % 256;
    std::vector<gemm::RowResidual> rows(static_cast<size_t>(shape.m));
    EXPECT_TRUE(gemm::CheckHost(check, rows.data()).uncovered_rows == 0 || !AllFinite(d, types.d));
    return rows;
  }
  static bool AllFinite(const std::vector<std::byte>& d, gemm::DType type) {
    const auto count = static_cast<int64_t>(d.size() / gemm::SizeOf(type));
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(gemm::LoadElement(d.data(), i, type))) return false;
    }
    return true;
  }

  // Whether this bit of this element changes it by more than the row's tolerance.
  static bool IsAbove(const gemm::Types& types, const FlipShape& shape,
                      const std::vector<std::byte>& right, int64_t element, int bit) {
    std::vector<std::byte> wrong = right;
    wrong[element * gemm::SizeOf(types.d) + bit / 8] ^= std::byte{1} << bit % 8;
    const double before = gemm::LoadElement(right.data(), element, types.d);
    const double after = gemm::LoadElement(wrong.data(), element, types.d);
    if (!std::isfinite(after)) return true;
    const size_t row = element / shape.n;
    const double tolerance = 2 * std::max(RowsOf(types, shape, right)[row].likely,
                                          RowsOf(types, shape, wrong)[row].likely);
    return std::abs(after - before) > tolerance;
  }

  void TryFlips(const gemm::Types& types, const FlipShape& shape);

  std::shared_ptr<JobRecorder> recorder_;
  std::mt19937_64 random_{17};
  int struck_ = 0, above_ = 0, replaced_ = 0;
};

void FlipCheck::TryFlips(const gemm::Types& types, const FlipShape& shape) {
  const absl::StatusOr<JobResult> clean = Multiply(types, shape);
  ASSERT_TRUE(clean.ok()) << clean.status();
  EXPECT_EQ(clean->report.check.result, CheckResult::kPassed);
  const std::vector<std::byte> right = recorder_->bytes();
  const auto bits = static_cast<int>(8 * gemm::SizeOf(types.d));
  for (int i = 0; i < kFlips; ++i) {
    const auto element = static_cast<int64_t>(random_() % (shape.m * shape.n));
    const auto bit = static_cast<int>(random_() % bits);
    SCOPED_TRACE(absl::StrCat("element ", element, ", bit ", bit));
    device(0).Inject({.fault = Fault::kWrongBit,
                      .bit = static_cast<uint64_t>(element) * bits + static_cast<uint64_t>(bit)});
    const absl::StatusOr<JobResult> result = Multiply(types, shape);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(device(0).struck(Fault::kWrongBit), ++struck_);
    const bool replaced = !result->report.check.failed_kernel.empty();
    const bool above = IsAbove(types, shape, right, element, bit);
    EXPECT_TRUE(replaced || !above) << "delivered";
    above_ += above ? 1 : 0;
    replaced_ += replaced ? 1 : 0;
    if (!replaced) continue;
    const double got = gemm::LoadElement(recorder_->bytes().data(), element, types.d);
    const double wanted = gemm::LoadElement(right.data(), element, types.d);
    EXPECT_LE(std::abs(got - wanted),
              2 * RowsOf(types, shape, right)[static_cast<size_t>(element / shape.n)].likely);
  }
}

TEST_P(FlipCheck, WhatIsAboveTheTolerancesIsNotDelivered) {
  const gemm::Types& types = AllTypes()[GetParam()];
  for (const FlipShape& shape : kFlipShapes) {
    SCOPED_TRACE(absl::StrCat(shape.m, " x ", shape.n, " x ", shape.k));
    ASSERT_NO_FATAL_FAILURE(TryFlips(types, shape));
  }
  // Enough of the flips must have counted.
  EXPECT_GT(above_, 5);
  EXPECT_GE(replaced_, above_);
  ExpectAllBack();
}

std::string NameOfTypes(const ::testing::TestParamInfo<size_t>& info) {
  const gemm::Types& types = AllTypes()[info.param];
  return absl::StrCat(gemm::Name(types.a), "_", gemm::Name(types.b), "_", gemm::Name(types.d), "_",
                      gemm::Name(types.compute));
}

INSTANTIATE_TEST_SUITE_P(EveryCombination, FlipCheck,
                         ::testing::Range<size_t>(0, AllTypes().size()), NameOfTypes);

}  // namespace
}  // namespace gemmd
