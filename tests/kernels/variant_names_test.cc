// Names and summaries that follow from configurations.
#include <gtest/gtest.h>

#include <string>

#include "kernels/grouped/name.h"
#include "kernels/mma/name.h"
#include "kernels/mma/tables.h"
#include "kernels/wmma/name.h"
#include "kernels/wmma/tables.h"

namespace gemm {
namespace {

// "_word" as a whole word of a name.
bool Says(const std::string& name, const std::string& word) {
  return (name + "_").find("_" + word + "_") != std::string::npos;
}

// The number after "_stage"; 1 if there is none.
int StagesOf(const std::string& name) {
  const size_t at = name.find("_stage");
  return at == std::string::npos ? 1 : std::stoi(name.substr(at + 6));
}

// Checks the words themselves, without the function that made the name.
void ExpectMmaNameSays(const mma::Config& config) {
  const std::string name(mma::MmaName(config).view());
  EXPECT_EQ(StagesOf(name), config.stages) << name;
  EXPECT_EQ(Says(name, "dsmem"), config.dynamic_shared) << name;
  EXPECT_EQ(Says(name, "xor"), config.layout == mma::PanelLayout::kXor) << name;
  EXPECT_EQ(Says(name, "tn"), config.trans_b) << name;
  EXPECT_EQ(Says(name, "f32acc"), config.accumulate == DType::kF32) << name;
  EXPECT_EQ(Says(name, "warp4x4x2"), config.tile_k == 32) << name;
  EXPECT_EQ(Says(name, "naive"), config.threads() == 32) << name;
  EXPECT_EQ(Says(name, "mma2x4"), config.threads() == 256) << name;
}

TEST(MmaName, SaysWhatEachRowIs) {
  for (const mma::Config& config : mma::StageTable::kConfigs) ExpectMmaNameSays(config);
  for (const mma::Config& config : mma::DsmemTable::kConfigs) ExpectMmaNameSays(config);
  for (const mma::Config& config : mma::X2Table::kConfigs) ExpectMmaNameSays(config);
}

void ExpectWmmaNameSays(const wmma::Config& config) {
  const std::string name(wmma::WmmaName(config).view());
  const bool pipeline = name.find("_stage") != std::string::npos;
  EXPECT_EQ(pipeline                                   ? StagesOf(name)
            : Says(name, "dbuf") || Says(name, "rbuf") ? 2
                                                       : 1,
            config.stages)
      << name;
  EXPECT_EQ(Says(name, "dsmem"), config.dynamic_shared) << name;
  EXPECT_EQ(pipeline || Says(name, "async"), config.copies == wmma::Copies::kAsync) << name;
  EXPECT_EQ(name.substr(0, 5) == "sgemm", config.type == DType::kF32) << name;
  EXPECT_EQ(Says(name, "f32acc") || config.type == DType::kF32, config.accumulate == DType::kF32)
      << name;
  EXPECT_EQ(Says(name, "naive"), config.threads() == 32) << name;
  const std::string warps =
      "mma" + std::to_string(config.warps_m) + "x" + std::to_string(config.warps_n);
  EXPECT_TRUE(Says(name, "naive") || Says(name, warps)) << name;
}

TEST(WmmaName, SaysWhatEachRowIs) {
  for (const wmma::Config& config : wmma::StepTable::kConfigs) ExpectWmmaNameSays(config);
  for (const wmma::Config& config : wmma::StageTable::kConfigs) ExpectWmmaNameSays(config);
  for (const wmma::Config& config : wmma::LargeTileTable::kConfigs) ExpectWmmaNameSays(config);
  for (const wmma::Config& config : wmma::Tf32Table::kConfigs) ExpectWmmaNameSays(config);
}

TEST(MmaName, FollowsFromTheConfiguration) {
  EXPECT_EQ(mma::MmaName(mma::Naive()).view(), "hgemm_mma_m16n8k16_naive");
  EXPECT_EQ(mma::MmaName(mma::Warp4x4().F32()).view(), "hgemm_mma_m16n8k16_mma2x4_warp4x4_f32acc");
  EXPECT_EQ(mma::MmaName(mma::Stages(3).Tn()).view(),
            "hgemm_mma_m16n8k16_mma2x4_warp4x4_stage3_tn");
  EXPECT_EQ(mma::MmaName(mma::StagesDsmemXor(2)).view(),
            "hgemm_mma_m16n8k16_mma2x4_warp4x4_stage2_dsmem_xor");
  EXPECT_EQ(mma::MmaName(mma::X2DsmemReduced(4).Tn().F32()).view(),
            "hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_rr_tn_f32acc");
  EXPECT_EQ(mma::MmaName(mma::X2DsmemXor(4)).view(),
            "hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage4_dsmem_xor");
}

TEST(MmaSummary, FollowsFromTheConfiguration) {
  EXPECT_EQ(mma::MmaSummary(mma::Naive()).view(), "one warp, one tile of 16 x 8");
  EXPECT_EQ(mma::MmaSummary(mma::Warp4x4()).view(), "eight warps, each 64 x 32");
  EXPECT_EQ(mma::MmaSummary(mma::StagesDsmem(2).Tn()).view(),
            "cp.async pipeline of 2 stages, padded, dynamic shared memory; B is n x k");
  EXPECT_EQ(mma::MmaSummary(mma::X2DsmemReduced(2).Tn().F32()).view(),
            "2 stages of double k-tiles, fragments replaced at their last use, padded; B is n x k; "
            "f32 accumulators");
  EXPECT_EQ(mma::MmaSummary(mma::X2DsmemXor(3)).view(),
            "3 stages of double k-tiles, fragments a step ahead, XOR-swizzled");
}

TEST(WmmaName, FollowsFromTheConfiguration) {
  EXPECT_EQ(wmma::WmmaName(wmma::OneFragment()).view(), "hgemm_wmma_m16n16k16_mma4x2");
  EXPECT_EQ(wmma::WmmaName(wmma::AsyncPadded().F32(2)).view(),
            "hgemm_wmma_m16n16k16_mma4x2_warp2x4_async_offset_f32acc");
  EXPECT_EQ(wmma::WmmaName(wmma::SixteenWarps()).view(),
            "hgemm_wmma_m16n16k16_mma4x4_warp2x2x2_dbuf_async");
  EXPECT_EQ(wmma::WmmaName(wmma::RegisterBuffer()).view(),
            "hgemm_wmma_m16n16k16_mma4x2_warp2x4x2_rbuf_async");
  EXPECT_EQ(wmma::WmmaName(wmma::StagesDsmem(3)).view(),
            "hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage3_dsmem");
  EXPECT_EQ(wmma::WmmaName(wmma::Tf32(2)).view(), "sgemm_wmma_m16n16k8_mma4x2_warp2x4_stage2");
}

TEST(WmmaSummary, FollowsFromTheConfiguration) {
  EXPECT_EQ(wmma::WmmaSummary(wmma::Warp2x4()).view(), "128x128 tile, 8 warps of 2x4 fragments");
  EXPECT_EQ(wmma::WmmaSummary(wmma::SixteenWarps().F32(2)).view(),
            "128x128x32 tile, 16 warps, cp.async, padded, double-buffered; f32 accumulators");
  EXPECT_EQ(wmma::WmmaSummary(wmma::Fragments32x8()).view(),
            "128x128 tile of 32x8 fragments, cp.async, padded, double-buffered");
  EXPECT_EQ(wmma::WmmaSummary(wmma::Tile256x256(3)).view(),
            "256x256 tile, 16 warps, 3 stages in dynamic shared memory");
  EXPECT_EQ(wmma::WmmaSummary(wmma::Tf32(3)).view(), "128x128x8 tile, 3 stages");
}

TEST(GroupedName, FollowsFromTheConfiguration) {
  EXPECT_EQ(GroupedName("e4m3", {.operand = DType::kE4M3,
                                 .tile_m = 128,
                                 .tile_n = 32,
                                 .tile_k = 64,
                                 .stages = 4,
                                 .warps = 4})
                .view(),
            "grouped_e4m3_128x32x64_s4_w4");
}

}  // namespace
}  // namespace gemm
