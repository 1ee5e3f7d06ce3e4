// The row of `auto` compared with the fastest one, and the measurements of an unknown device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gemm/catalogue.h"
#include "kernels/bench/measure/auto_rows.h"
#include "kernels/bench/measure/device_times.h"
#include "kernels/bench/result/auto_share.h"
#include "tests/kernels/bench_fakes.h"

namespace gemm::bench {
namespace {

using ::testing::ElementsAre;
using testing::FakeBackend;
using ::testing::HasSubstr;
using testing::kF32;
using ::testing::SizeIs;

constexpr DeviceCaps kHostCaps = {Target::kHost, 0};

Row RowOf(const std::string& kernel, double seconds, const Shape& shape = {64, 64, 64}) {
  return {.shape = shape,
          .types = kF32[0],
          .kernel = kernel,
          .family = "host",
          .measured = true,
          .seconds = seconds};
}

Row AutoOf(double seconds, const Shape& shape) {
  Row row = RowOf(std::string(kAuto), seconds, shape);
  row.note = "takes host_openblas";
  return row;
}

TEST(AutoRows, HaveTheFiguresOfWhatARankTakes) {
  const AutoRows of_auto({}, kHostCaps);
  const Row row = of_auto.For({RowOf("host_reference", 2e-3), RowOf("host_openblas", 1e-3)});
  EXPECT_TRUE(row.measured);
  EXPECT_EQ(row.kernel, "auto");
  EXPECT_EQ(row.seconds, 1e-3);
  EXPECT_EQ(row.note, "takes host_openblas");
  const Row missing = of_auto.For({RowOf("host_reference", 2e-3)});
  EXPECT_FALSE(missing.measured);
  EXPECT_EQ(missing.note, "takes host_openblas, which was not measured");
}

TEST(AutoRows, GoByEstimatesWhereThereAreAny) {
  const Kernel* const openblas = *FindKernel("host_openblas");
  const Kernel* const reference = *FindKernel("host_reference");
  std::vector<TimedProduct> times;
  for (int64_t size = 16; size <= 1024; size *= 2) {
    times.push_back({.problem = {.m = size, .n = size, .k = size, .types = kF32[0]},
                     .seconds = {{openblas, 2e-6}, {reference, size < 100 ? 1e-6 : 1e-3}}});
  }
  const Estimates measured = Estimates::FromTimes("this one", times);
  const AutoRows of_auto({.estimates = &measured}, kHostCaps);
  EXPECT_EQ(of_auto.For({RowOf("host_openblas", 1, {24, 24, 24})}).note,
            "takes host_reference, which was not measured");
  EXPECT_EQ(of_auto.For({RowOf("host_openblas", 1, {768, 768, 768})}).note, "takes host_openblas");
}

TEST(AutoShare, IsOfTheFastestRowThatIsRight) {
  Row wrong = RowOf("wrong", 1e-9, {8, 8, 8});
  wrong.error.of_bound = 2;
  const std::vector<Row> rows = {
      RowOf("fast", 1e-3, {8, 8, 8}), wrong,
      AutoOf(2e-3, {8, 8, 8}),        RowOf("fast", 10e-3, {9, 9, 9}),
      AutoOf(10e-3, {9, 9, 9}),
  };
  const std::vector<AutoShare> shares = SummariseAuto(rows);
  ASSERT_THAT(shares, SizeIs(1));
  EXPECT_EQ(shares[0].shapes, 2u);
  EXPECT_NEAR(shares[0].mean, std::sqrt(0.5), 1e-9);
  EXPECT_NEAR(shares[0].by_time, 11.0 / 12, 1e-9);
  EXPECT_EQ(shares[0].below, 1u);
  ASSERT_THAT(shares[0].worst, SizeIs(2));
  EXPECT_EQ(shares[0].worst[0].shape, (Shape{8, 8, 8}));
  EXPECT_EQ(shares[0].worst[0].best, "fast");
  EXPECT_TRUE(SummariseAuto({RowOf("fast", 1)}).empty()) << "without rows of auto";
}

TEST(MeasureTimes, TakesProductsOfAllSizesAndLayouts) {
  std::vector<Shape> shapes;
  for (const Layout& layout : kLayouts) {
    const std::vector<Shape> of_layout = ShapesToMeasure(layout);
    shapes.insert(shapes.end(), of_layout.begin(), of_layout.end());
  }
  EXPECT_THAT(shapes, SizeIs(96));
  EXPECT_TRUE(ShapesToMeasure({true, true}).empty());
  const auto count = [&](auto is) { return std::count_if(shapes.begin(), shapes.end(), is); };
  EXPECT_EQ(count([](const Shape& s) { return Flops(s) > 3e10; }), 0);
  for (const auto extent : {&Shape::m, &Shape::n, &Shape::k}) {
    EXPECT_GT(count([&](const Shape& s) { return s.*extent <= 64; }), 10);
    EXPECT_GT(count([&](const Shape& s) { return s.*extent >= 1024; }), 10);
    EXPECT_GT(count([&](const Shape& s) { return s.*extent % 2 == 1; }), 10);
    EXPECT_GT(count([&](const Shape& s) { return s.*extent % 64 == 0; }), 15);
  }
}

// The host, on a clock where each kernel takes a millisecond: it measures as long as it may.
TEST(MeasureTimes, EndsWithItsBudget) {
  FakeBackend backend;
  testing::now = absl::UnixEpoch();
  const auto clock = [] { return testing::now; };
  const auto times = MeasureTimes(backend, absl::Milliseconds(100), nullptr, clock);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_FALSE(times->empty());
  EXPECT_LT(testing::now, absl::UnixEpoch() + absl::Seconds(1));
  for (const TimedProduct& product : *times) {
    for (const auto& [kernel, seconds] : product.seconds) {
      EXPECT_TRUE(MayBeChosen(*kernel, product.problem.types)) << kernel->name;
      EXPECT_EQ(kernel->types.front().compute, product.problem.types.compute) << kernel->name;
      EXPECT_GT(seconds, 0);
    }
  }
  const auto cancelled = MeasureTimes(
      backend, absl::Seconds(1), [] { return true; }, clock);
  EXPECT_TRUE(absl::IsCancelled(cancelled.status())) << cancelled.status();
}

}  // namespace
}  // namespace gemm::bench
