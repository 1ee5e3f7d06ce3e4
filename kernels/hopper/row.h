// A Hopper row's name, summary, launch parameters and layouts, from its configuration.
#pragma once

#include "absl/strings/string_view.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"
#include "kernels/core/fixed_text.h"
#include "kernels/hopper/config.h"
#include "kernels/transpose/operands.h"

namespace gemm {

// "hopper_f16_128x256x64_s4_coop2_m2": the operands' type, the block's tile, its stages, its
// schedule with the warpgroups that multiply, and its cluster: along m, n or k.
constexpr NameText HopperName(absl::string_view type, const HopperConfig& config) {
  NameText name;
  name.Add("hopper_", type, "_", config.d_tile_m(), "x", config.d_tile_n(), "x", config.tile_k());
  name.Add("_s", config.stages);
  name.Add(config.ping_pong() ? "_pingpong" : "_coop", config.consumers);
  if (config.cluster_m > 1) name.Add(config.swap ? "_n" : "_m", config.cluster_m);
  if (config.cluster_n > 1) name.Add(config.swap ? "_m" : "_n", config.cluster_n);
  if (config.split > 1) name.Add("_k", config.split);
  if (config.swap) name.Add("_swap");
  if (config.blocks_per_sm > 1) name.Add("_x", config.blocks_per_sm);
  if (config.boxes != 2) name.Add("_b", config.boxes);
  if (config.two_levels) name.Add("_l2");
  return name;
}

constexpr SummaryText HopperSummary(const HopperConfig& config) {
  SummaryText summary;
  summary.Add("TMA, wgmma, ");
  if (config.ping_pong()) {
    summary.Add("two warpgroups that multiply and store in turns");
  } else if (config.consumers == 1) {
    summary.Add("one warpgroup that multiplies");
  } else {
    summary.Add(config.consumers, " warpgroups that multiply together");
  }
  const int share_a = config.swap ? config.cluster_m : config.cluster_n;
  const int share_b = config.swap ? config.cluster_n : config.cluster_m;
  if (share_b > 1) summary.Add("; ", share_b, " blocks share B");
  if (share_a > 1) summary.Add("; ", share_a, " blocks share A");
  if (config.split > 1) summary.Add("; ", config.split, " blocks share k");
  if (config.swap) summary.Add("; multiplies D transposed");
  if (config.two_levels) summary.Add("; adds up in two levels");
  if (config.blocks_per_sm > 1) summary.Add("; ", config.blocks_per_sm, " blocks an SM");
  return summary;
}

inline constexpr ParamSpec kHopperParams[] = {
    {"group_m", "rows of clusters of a group, whose tiles run column by column", 1, 1024,
     kOwnChoice}};

// The layouts that the kernels read; others are transposed first.
//
// wgmma reads only along k if elements are not 16 bits wide, or if there are fewer than 64 lines.
// The split of B (split_b.h) reads either layout.
constexpr LoadLayout HopperLayout(const HopperConfig& config, const Problem& p) {
  if (config.f32x3) return {.trans_a = false, .trans_b = p.trans_b};
  if (config.along_k_only()) return {.trans_a = false, .trans_b = true};
  return {.trans_a = !config.swap && p.trans_a, .trans_b = p.trans_b};
}

}  // namespace gemm
