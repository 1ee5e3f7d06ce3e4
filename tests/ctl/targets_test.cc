// The products that gemmctl tune measures.
#include "client/ctl/tune/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace gemmd::ctl {
namespace {

namespace v1 = ::gemm::v1;
using ::testing::ElementsAre;

std::vector<std::string> TextOf(const std::vector<TuneTarget>& targets) {
  std::vector<std::string> text;
  for (const TuneTarget& target : targets) {
    text.push_back(absl::StrCat(gemm::bench::ShapeName(target.shape), " ",
                                gemm::bench::LayoutName(target.layout), " ", target.types.size()));
  }
  return text;
}

void AddTraffic(v1::ListTrafficResponse& traffic, v1::DataType type, int64_t m, bool epilogue,
                double seconds) {
  v1::TrafficEntry& entry = *traffic.add_entries();
  entry.mutable_size()->set_m(m);
  entry.mutable_size()->set_n(2);
  entry.mutable_size()->set_k(3);
  entry.mutable_types()->set_a(type);
  entry.mutable_types()->set_b(type);
  entry.mutable_types()->set_output(type);
  entry.mutable_types()->set_compute(v1::COMPUTE_MODE_F32);
  entry.mutable_layout()->set_transpose_b(true);
  entry.set_epilogue(epilogue);
  entry.set_seconds(seconds);
}

TEST(TuneTargets, AreEveryShapeInEveryLayout) {
  TuneOptions options;
  options.shapes = {{1, 2, 3}, {4, 5, 6}};
  options.layouts = {{}, {.trans_a = true}};
  options.selection.types = *gemm::bench::ParseTypesPatterns("f32,f16");
  EXPECT_THAT(TextOf(TargetsOf(options)),
              ElementsAre("1x2x3 nn 2", "4x5x6 nn 2", "1x2x3 tn 2", "4x5x6 tn 2"));
}

TEST(TuneTargets, OfTrafficHaveTheirOwnTypesAndTheLongestComesFirst) {
  v1::ListTrafficResponse traffic;
  AddTraffic(traffic, v1::DATA_TYPE_F16, 7, false, 5);
  AddTraffic(traffic, v1::DATA_TYPE_F32, 8, true, 4);
  AddTraffic(traffic, v1::DATA_TYPE_F32, 9, false, 3);
  AddTraffic(traffic, v1::DATA_TYPE_F32, 8, false, 2);  // 6 with the one that has an epilogue
  const auto targets = TargetsOf(traffic);
  ASSERT_TRUE(targets.ok()) << targets.status();
  EXPECT_THAT(TextOf(*targets), ElementsAre("8x2x3 nt 1", "7x2x3 nt 1", "9x2x3 nt 1"));
  using gemm::DType;
  const gemm::Types f32{DType::kF32, DType::kF32, DType::kF32, gemm::Compute::kF32};
  const gemm::Types f16{DType::kF16, DType::kF16, DType::kF16, gemm::Compute::kF32};
  EXPECT_TRUE((*targets)[0].types[0].Matches(f32));
  EXPECT_FALSE((*targets)[0].types[0].Matches(f16));
  EXPECT_TRUE((*targets)[1].types[0].Matches(f16));
  EXPECT_EQ(TypesOf(*targets).size(), 2u);
}

TEST(TuneTargets, TypesThatThisProgramDoesNotKnowAreAnError) {
  v1::ListTrafficResponse traffic;
  AddTraffic(traffic, static_cast<v1::DataType>(100), 7, false, 5);
  EXPECT_TRUE(absl::IsInternal(TargetsOf(traffic).status()));
}

}  // namespace
}  // namespace gemmd::ctl
