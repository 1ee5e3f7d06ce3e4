// The name and the summary of a WMMA variant follow from its configuration.
#pragma once

#include "kernels/core/fixed_text.h"
#include "kernels/wmma/config.h"

namespace gemm::wmma {

// The cp.async pipelines are those whose tiles run in bands; the others are the steps
// on the way there.
constexpr bool IsPipeline(const Config& config) { return config.order == Order::kBanded; }

constexpr bool HasF32Accumulators(const Config& config) {
  return config.type != DType::kF32 && config.accumulate == DType::kF32;
}

// Adds the part of a step's name about its copies and buffers.
constexpr void AddStepName(const Config& config, NameText& name) {
  if (config.reads == FragmentReads::kAheadInKTile) {
    name.Add("_rbuf");
  } else if (config.stages == 2) {
    name.Add("_dbuf");
  }
  if (config.copies == Copies::kAsync) name.Add("_async");
  if (config.stages == 1 && config.padded) name.Add("_offset");
}

// "hgemm_wmma_m16n16k16_mma4x2_warp2x4_stage3_dsmem_f32acc": the shape of a fragment, the warps of
// a block, and the fragments of a warp along m and n (if there are several). Then, for a step, the
// steps along k (if there are several). Last, copies and buffers, and f32 accumulators of f16
// operands.
constexpr NameText WmmaName(const Config& config) {
  NameText name;
  name.Add(config.type == DType::kF32 ? "sgemm" : "hgemm");
  name.Add("_wmma_m", config.wmma_m, "n", config.wmma_n, "k", config.wmma_k);
  if (config.warps() == 1) {
    name.Add("_naive");
  } else {
    name.Add("_mma", config.warps_m, "x", config.warps_n);
    if (config.tiles_m * config.tiles_n > 1) {
      name.Add("_warp", config.tiles_m, "x", config.tiles_n);
      if (!IsPipeline(config) && config.steps() > 1) name.Add("x", config.steps());
    }
    if (IsPipeline(config)) {
      name.Add("_stage", config.stages);
      if (config.dynamic_shared) name.Add("_dsmem");
    } else {
      AddStepName(config, name);
    }
  }
  if (HasF32Accumulators(config)) name.Add("_f32acc");
  return name;
}

// Adds the part of a step's summary about its copies and buffers.
constexpr void AddStepSummary(const Config& config, SummaryText& summary) {
  if (config.copies == Copies::kThroughRegisters) {
    summary.Add(", ", config.warps(), " warps of ");
    if (config.tiles_m * config.tiles_n == 1) {
      summary.Add("one fragment");
    } else {
      summary.Add(config.tiles_m, "x", config.tiles_n, " fragments");
    }
    return;
  }
  summary.Add(", cp.async");
  if (config.padded) summary.Add(config.stages == 1 ? ", padded shared memory" : ", padded");
  if (config.stages == 1) return;
  summary.Add(config.reads == FragmentReads::kAheadInKTile
                  ? ", registers and shared memory double-buffered"
                  : ", double-buffered");
}

constexpr SummaryText WmmaSummary(const Config& config) {
  SummaryText summary;
  if (config.warps() == 1) {
    summary.Add("one warp, one ", config.tile_m(), "x", config.tile_n(), " tile");
  } else {
    summary.Add(config.tile_m(), "x", config.tile_n());
    const bool names_tile_k =
        config.type == DType::kF32 || (!IsPipeline(config) && config.steps() > 1);
    if (names_tile_k) summary.Add("x", config.tile_k);
    summary.Add(" tile");
    if (config.wmma_m != 16) {
      summary.Add(" of ", config.wmma_m, "x", config.wmma_n, " fragments");
    }
    if (config.warps() == 16) summary.Add(", 16 warps");
    if (IsPipeline(config)) {
      summary.Add(", ", config.stages, " stages");
      if (config.dynamic_shared) summary.Add(" in dynamic shared memory");
    } else {
      AddStepSummary(config, summary);
    }
  }
  if (HasF32Accumulators(config)) summary.Add("; f32 accumulators");
  return summary;
}

}  // namespace gemm::wmma
