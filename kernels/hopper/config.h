// The configuration of a Hopper variant, and the quantities that follow from it.
#pragma once

#include "gemm/dtype.h"

namespace gemm {

// Which warpgroups multiply a tile of D.
enum class HopperSchedule {
  kCooperative,  // all of them, each a share of the rows
  kPingPong,     // one; the other one multiplies while this one stores
};

struct HopperConfig {
  DType operand = DType::kF16;      // of A and B; kF32: rounded to TF32
  DType accumulator = DType::kF32;  // kS32 of kS8, and of nothing else
  int tile_m = 128, tile_n = 256;
  int stages = 4;
  int consumers = 2;  // warpgroups that multiply
  HopperSchedule schedule = HopperSchedule::kCooperative;
  // The blocks of a cluster are neighbours along m, which load a tile of B together, or along
  // n, which load a tile of A together.
  int cluster_m = 1;
  int cluster_n = 1;
  // Blocks of a cluster that share a tile of D: each multiplies a part of k.
  int split = 1;
  // Boxes in shared memory through which each warpgroup stores D.
  int boxes = 2;
  // The transpose of D is multiplied: the tile's rows are columns of D, its columns are rows of
  // D. So a tile of D may have few rows: wgmma takes 64 rows, but any 8 columns.
  bool swap = false;
  // Blocks on a multiprocessor, if their shared memory and registers leave room.
  int blocks_per_sm = 1;
  // Takes groups by m (GroupedBy::kM) in one launch: then it has a second kernel for each layout.
  bool groups = false;
  // f32 operands are sums of two TF32 numbers each, and three products of those are added
  // (f32x3.h).
  bool f32x3 = false;
  // With f32x3: tensor cores add up half as many products before these are promoted, and after
  // every 8 stages accumulators are added to totals. So fewer errors add up.
  bool two_levels = false;

  static constexpr int kPanelBytes = 128;  // of k in a stage
  constexpr int element_bytes() const { return static_cast<int>(SizeOf(operand)); }
  constexpr int tile_k() const { return kPanelBytes / element_bytes(); }
  // wgmma reads operands that are not 16 bits wide along k alone.
  constexpr bool along_k_only() const { return element_bytes() != 2; }
  // The tensor cores keep about 14 bits of sums of fp8 products, and truncate sums of other
  // products to f32. If that is too little, the sums of a stage are promoted: added to the
  // accumulators in f32, part_n() columns at a time.
  constexpr bool promotes() const { return (element_bytes() == 1 && !integers()) || f32x3; }
  // Takes block scales, as a stage of fp8 operands is a block. The variant then has two more
  // kernels.
  constexpr bool takes_scales() const { return promotes() && !f32x3; }
  // Accumulators that no addition rounds.
  constexpr bool integers() const { return accumulator == DType::kS32; }
  // Columns that are promoted at a time. Totals leave registers for fewer.
  constexpr int part_n() const {
    const int most = two_levels ? 64 : 128;
    return tile_n < most ? tile_n : most;
  }
  // With f32x3, sums are promoted after this many steps over k, of 8 each.
  constexpr int promoted_steps() const { return two_levels ? 2 : 4; }
  // Blocks that load a tile together.
  constexpr int sharers() const { return cluster_m * cluster_n; }
  constexpr int cluster() const { return sharers() * split; }
  constexpr bool ping_pong() const { return schedule == HopperSchedule::kPingPong; }

  // Warpgroup 0 loads.
  // A thread that loads gives registers to those that multiply.
  constexpr bool moves_registers() const { return consumers > 1 && blocks_per_sm == 1; }
  // Registers of a loading thread and of a multiplying one, if registers move. Together they are
  // the block's.
  constexpr int loading_registers() const { return consumers == 2 ? 40 : 32; }
  constexpr int multiplying_registers() const { return consumers == 2 ? 232 : 160; }
  static constexpr int kRegisters = 64 * 1024;  // of a multiprocessor, on sm_90
  constexpr int threads() const { return (1 + consumers) * 128; }
  // The tile's blocks of 64 rows for each warpgroup that multiplies it.
  constexpr int blocks_m() const { return tile_m / 64 / (ping_pong() ? 1 : consumers); }

  constexpr int tile_a_bytes() const { return tile_m * kPanelBytes; }
  // Bytes of a tile of one of B's matrices: those of high and of low numbers, or B itself. A stage
  // has a tile of each.
  constexpr int tile_b_bytes() const { return tile_n * kPanelBytes; }
  constexpr int matrices_b() const { return f32x3 ? 2 : 1; }
  constexpr int stage_bytes() const { return tile_a_bytes() + matrices_b() * tile_b_bytes(); }
  // Products on the tensor cores for one product of elements.
  constexpr int products() const { return f32x3 ? 3 : 1; }
  // The tile of D.
  constexpr int d_tile_m() const { return swap ? tile_n : tile_m; }
  constexpr int d_tile_n() const { return swap ? tile_m : tile_n; }
  // Rows of a box of D, of 128 bytes each.
  constexpr int box_rows() const {
    if (!swap || tile_n % 64 == 0) return 64;
    return tile_n % 32 == 0 ? 32 : 16;
  }
  constexpr int box_bytes() const { return box_rows() * kPanelBytes; }
  constexpr int store_bytes() const { return consumers * boxes * box_bytes(); }
  // Blocks that add up a split tile of D: each adds up a share of the columns, or the first one
  // all.
  constexpr int adders() const { return swap ? 1 : split; }
  constexpr int barrier_bytes() const { return (2 * stages + 2) * 8; }
  constexpr int shared_bytes() const {
    return stages * stage_bytes() + store_bytes() + barrier_bytes();
  }

  constexpr bool valid() const {
    const bool one_direction = cluster_m == 1 || cluster_n == 1;
    const bool whole_rows = tile_m % (64 * (ping_pong() ? 1 : consumers)) == 0;
    const bool whole_boxes = tile_m / 64 % cluster_n == 0 &&
                             (swap ? tile_n % (8 * cluster_m) : tile_n / 64 % cluster_m) == 0;
    const bool whole_tile = tile_n % (swap ? 16 : 64) == 0;
    // A block of a split stores whole boxes, and the stages hold its accumulators.
    const bool whole_parts =
        split == 1 || (tile_n / adders() % (swap ? 16 : 64) == 0 && !ping_pong() &&
                       tile_m * tile_n * 4 <= stages * stage_bytes());
    const bool whole_sums = integers() == (operand == DType::kS8) &&
                            (accumulator != DType::kF16 || (operand == DType::kF16 && split == 1));
    const bool whole_promotions = !promotes() || tile_n % part_n() == 0;
    const bool alone = !groups || cluster() == 1;
    const bool whole_split = !f32x3 || (operand == DType::kF32 && !swap && !groups && !ping_pong());
    const bool two_sums = !two_levels || f32x3;
    // Barriers are numbered for this many warpgroups (kernel.cuh). A warpgroup that asks for more
    // registers than there are would wait forever.
    const bool few =
        consumers <= (ping_pong() ? 2 : 3) &&
        (!moves_registers() ||
         128 * (loading_registers() + consumers * multiplying_registers()) <= kRegisters);
    return one_direction && alone && whole_split && two_sums && whole_tile && whole_sums &&
           whole_promotions && few && cluster() <= 8 && whole_rows && whole_boxes && whole_parts &&
           tile_m <= 256 && tile_n <= 256 && shared_bytes() <= kMostSharedBytes;
  }
  static constexpr int kMostSharedBytes = 227 * 1024;  // of a block, on sm_90
};

}  // namespace gemm
