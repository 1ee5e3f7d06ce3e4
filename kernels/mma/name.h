// The name and the summary of an mma.sync variant follow from its configuration.
#pragma once

#include "kernels/core/fixed_text.h"
#include "kernels/mma/config.h"

namespace gemm::mma {

// The names of padded pipelines tell rotating fragments from a second set of registers. In
// XOR-swizzled ones fragments always rotate.
constexpr bool HasReducedRegisters(const Config& config) {
  return config.buffers == FragmentBuffers::kRotating && config.layout == PanelLayout::kPadded;
}

// "hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage3_dsmem_rr_tn_f32acc": the shape of an mma tile, the
// warps of a block, and the mma tiles of a warp along m, n and (if there are several) k. Then, if
// the variant has them: the pipeline's stages, dynamic shared memory, the XOR swizzle or reduced
// registers, B stored n x k, and f32 accumulators.
constexpr NameText MmaName(const Config& config) {
  NameText name;
  name.Add("hgemm_mma_m", Config::kMmaM, "n", Config::kMmaN, "k", Config::kMmaK);
  if (config.warps() == 1) {
    name.Add("_naive");
  } else {
    name.Add("_mma", config.warps_m, "x", config.warps_n);
    name.Add("_warp", config.tiles_m, "x", config.tiles_n);
    if (config.steps() > 1) name.Add("x", config.steps());
  }
  if (config.stages > 1) name.Add("_stage", config.stages);
  if (config.dynamic_shared) name.Add("_dsmem");
  if (config.layout == PanelLayout::kXor) name.Add("_xor");
  if (HasReducedRegisters(config)) name.Add("_rr");
  if (config.trans_b) name.Add("_tn");
  if (config.accumulate == DType::kF32) name.Add("_f32acc");
  return name;
}

constexpr SummaryText MmaSummary(const Config& config) {
  const bool is_xor = config.layout == PanelLayout::kXor;
  SummaryText summary;
  if (config.warps() == 1) {
    summary.Add("one warp, one tile of ", config.warp_m(), " x ", config.warp_n());
  } else if (config.stages == 1) {
    summary.Add("eight warps, each ", config.warp_m(), " x ", config.warp_n());
  } else if (config.steps() == 1) {
    summary.Add("cp.async pipeline of ", config.stages, " stages, ",
                is_xor                  ? "XOR-swizzled"
                : config.dynamic_shared ? "padded, dynamic shared memory"
                                        : "padded");
  } else {
    summary.Add(config.stages, " stages of double k-tiles, fragments ",
                HasReducedRegisters(config) ? "replaced at their last use" : "a step ahead",
                is_xor ? ", XOR-swizzled" : ", padded");
  }
  if (config.trans_b) summary.Add("; B is n x k");
  if (config.accumulate == DType::kF32) summary.Add("; f32 accumulators");
  return summary;
}

}  // namespace gemm::mma
