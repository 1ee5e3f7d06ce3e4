// The name, summary and layouts of a row of f32 on CUDA cores, from its configuration.
#pragma once

#include "kernels/core/fixed_text.h"
#include "kernels/hopper/f32/config.h"
#include "kernels/transpose/operands.h"

namespace gemm {

// "hopper_f32_128x256x32_s4_t8x16": the block's tile, its stages, a thread's part; then the lanes
// along m if not four, the blocks that share k or the last tiles, and the blocks of a
// multiprocessor.
constexpr NameText HopperF32Name(const HopperF32Config& config) {
  NameText name;
  name.Add("hopper_f32_", config.tile_m, "x", config.tile_n, "x", config.tile_k());
  name.Add("_s", config.stages, "_t", config.thread_m, "x", config.thread_n);
  if (config.lanes_m != 4) name.Add("_l", config.lanes_m);
  if (config.split > 1) name.Add("_k", config.split);
  if (config.stream) name.Add("_streamk");
  if (config.blocks_per_sm > 1) name.Add("_x", config.blocks_per_sm);
  return name;
}

constexpr SummaryText HopperF32Summary(const HopperF32Config& config) {
  SummaryText summary;
  summary.Add("TMA, FFMA, ", config.thread_m, "x", config.thread_n);
  summary.Add(" accumulators a thread, warps of ", config.warp_m(), "x", config.warp_n());
  if (config.split > 1) summary.Add("; ", config.split, " blocks share k");
  if (config.stream) summary.Add("; blocks share the last tiles");
  if (config.blocks_per_sm > 1) summary.Add("; ", config.blocks_per_sm, " blocks an SM");
  return summary;
}

// The layouts that the kernel reads; others are transposed first.
constexpr LoadLayout HopperF32Layout(const HopperF32Config& config, const Problem& p) {
  return {.trans_a = p.trans_a || !config.along_k(), .trans_b = p.trans_b && config.along_k()};
}

}  // namespace gemm
