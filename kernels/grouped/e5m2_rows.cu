// The grouped variants over e5m2, B stored n x k.
#include "kernels/core/families.h"
#include "kernels/grouped/rows.cuh"

namespace gemm {
namespace {

struct GroupedE5M2 {
  static constexpr GroupedRow kRows[] = {
      {.name = "grouped_e5m2_128x256x128_s3_w8",
       .summary = kWarpgroups,
       .config = {.operand = DType::kE5M2,
                  .tile_m = 128,
                  .tile_n = 256,
                  .tile_k = 128,
                  .stages = 3,
                  .warps = 8}},
      {.name = "grouped_e5m2_256x128x128_s3_w8",
       .summary = kWarpgroups,
       .config = {.operand = DType::kE5M2,
                  .tile_m = 256,
                  .tile_n = 128,
                  .tile_k = 128,
                  .stages = 3,
                  .warps = 8}},
      {.name = "grouped_e5m2_256x64x128_s4_w4",
       .summary = kWarpgroups,
       .config = {.operand = DType::kE5M2,
                  .tile_m = 256,
                  .tile_n = 64,
                  .tile_k = 128,
                  .stages = 4,
                  .warps = 4}},
      {.name = "grouped_e5m2_64x256x128_s4_w4",
       .summary = kWarpgroups,
       .config = {.operand = DType::kE5M2,
                  .tile_m = 64,
                  .tile_n = 256,
                  .tile_k = 128,
                  .stages = 4,
                  .warps = 4}},
      {.name = "grouped_e5m2_128x128x128_s4_w4",
       .summary = kWarpgroups,
       .config = {.operand = DType::kE5M2,
                  .tile_m = 128,
                  .tile_n = 128,
                  .tile_k = 128,
                  .stages = 4,
                  .warps = 4}},
      {.name = "grouped_e5m2_128x64x64_s4_w4",
       .summary = kWarpgroups,
       .config = {.operand = DType::kE5M2,
                  .tile_m = 128,
                  .tile_n = 64,
                  .tile_k = 64,
                  .stages = 4,
                  .warps = 4,
                  .blocks_per_sm = 3}},
      {.name = "grouped_e5m2_64x128x64_s4_w4",
       .summary = kWarpgroups,
       .config = {.operand = DType::kE5M2,
                  .tile_m = 64,
                  .tile_n = 128,
                  .tile_k = 64,
                  .stages = 4,
                  .warps = 4,
                  .blocks_per_sm = 3}},
      {.name = "grouped_e5m2_128x32x64_s4_w4",
       .summary = kWarpgroups,
       .config = {.operand = DType::kE5M2,
                  .tile_m = 128,
                  .tile_n = 32,
                  .tile_k = 64,
                  .stages = 4,
                  .warps = 4,
                  .blocks_per_sm = 5}},
  };
};

constexpr auto kRows = MakeGroupedRows<GroupedE5M2>();

}  // namespace

absl::Span<const Kernel> GroupedE5M2Rows() { return kRows; }

}  // namespace gemm
