#include "kernels/hopper/estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/hopper/chip.h"
#include "kernels/hopper/row.h"

namespace gemm {
namespace {

// Multiplications of f16 a second, of a multiprocessor.
constexpr double kMultiplications = 2048 * 1.55e9;
// Bytes a second of other blocks' accumulators that a block adds up where blocks share k.
constexpr double kSplitRate = 12e9;
// Extra seconds of a tile, of a tile that blocks add up together, and of a launch in clusters.
constexpr double kTile = 0.2e-6, kSplit = 0.2e-6, kCluster = 0.6e-6;
// Tie-breaker between equal estimates: a share of the time for each stage of the pipeline.
constexpr double kDepth = 1e-4;
// How much longer a stage takes where blocks wait for one another, and how long at least.
constexpr double kClusterStep = 1.04, kClusterStage = 0.28e-6;

// The share of a stage's time that remains if a third warpgroup multiplies while two add, on an
// H100. With block scales, additions take so much longer that there is nothing to gain.
constexpr double kThirdWarpgroup = 0.92;

// How much longer a stage takes where f32x3 adds up in two levels, by the columns of the tile.
constexpr double kTwoLevels = 1.15, kTwoLevelsOf64 = 1.4;

double CeilDiv(int64_t x, int64_t y) {
  const int64_t quotient = (x + y - 1) / y;
  return static_cast<double>(quotient);
}

// The largest dimension and the most tiles that the kernel takes.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;

double BytesOf(int64_t rows, int64_t columns, DType type) {
  return static_cast<double>(rows) * static_cast<double>(columns) *
         static_cast<double>(SizeOf(type));
}

// Blocks of a launch, and how they run.
struct Waves {
  double blocks = 0;       // all of them
  double count = 0;        // one after another
  double running = 0;      // multiprocessors in use
  double blocks_each = 1;  // of them
};

// Products of a launch that multiply: those of a batch, or those with rows of a group by m. Each
// has a B of its own.
double ProductsOf(const Problem& p) {
  if (p.grouped == GroupedBy::kNothing) return static_cast<double>(p.batch);
  const auto empty = std::count(p.extents.begin(), p.extents.end(), 0);
  return static_cast<double>(static_cast<int64_t>(p.extents.size()) - empty);
}

// Rows of clusters of one product, or of all of a group.
double ClusterRows(const Problem& p, int64_t rows) {
  if (p.grouped == GroupedBy::kNothing) return CeilDiv(p.m, rows);
  double all = 0;
  for (const int64_t m : p.extents) all += CeilDiv(m, rows);
  return all;
}

Waves WavesOf(const HopperConfig& config, const Problem& p) {
  const int along_m = config.swap ? config.cluster_n : config.cluster_m;
  const int along_n = config.swap ? config.cluster_m : config.cluster_n;
  const double clusters = ClusterRows(p, int64_t{config.d_tile_m()} * along_m) *
                          CeilDiv(p.n, int64_t{config.d_tile_n()} * along_n);
  const double blocks = clusters * config.cluster() * static_cast<double>(p.batch);
  const double resident =
      std::floor(h200::kMultiprocessors * config.blocks_per_sm / config.cluster()) *
      config.cluster();
  const double at_a_time = std::min(blocks, resident);
  return {.blocks = blocks,
          .count = std::ceil(blocks / resident),
          .running = std::min(at_a_time, h200::kMultiprocessors),
          .blocks_each = std::max(at_a_time / h200::kMultiprocessors, 1.0)};
}

// One stage of a block's pipeline.
double StageSeconds(const HopperConfig& config, const Problem& p, const Waves& waves) {
  const double multiplications =
      static_cast<double>(config.tile_m) * config.tile_n * config.tile_k();
  const double multiply = multiplications * config.products() * config.element_bytes() / 2 /
                          kMultiplications * waves.blocks_each;
  const double bytes =
      static_cast<double>(config.tile_a_bytes()) / config.cluster_n +
      static_cast<double>(config.tile_b_bytes()) * config.matrices_b() / config.cluster_m;
  const double rate = std::min(h200::kMultiprocessorRate, h200::kL2Rate / waves.running);
  const double load = bytes * waves.blocks_each / rate;
  double stage = h200::Together(multiply, load);
  if (config.consumers > 2 && !HasBlockScales(p)) stage *= kThirdWarpgroup;
  if (config.two_levels) stage *= config.tile_n > 64 ? kTwoLevels : kTwoLevelsOf64;
  return config.sharers() > 1 ? std::max(stage * kClusterStep, kClusterStage) : stage;
}

// A tile of a block. `stages`: seconds of its stages.
double TileSeconds(const HopperConfig& config, double stages, double store) {
  const double multiply = kTile + stages;
  // The other warpgroup of a ping-pong multiplies while this one stores.
  if (config.ping_pong()) return std::max(multiply, (multiply + store) / 2);
  if (config.split == 1) return multiply + store;
  const double sums = BytesOf(config.tile_m, config.tile_n, DType::kF32) / config.adders();
  return multiply + store + kSplit + sums * (config.split - 1) / kSplitRate;
}

double TransposeSeconds(const HopperConfig& config, const Problem& p) {
  const LoadLayout layout = HopperLayout(config, p);
  // Each matrix is read once, and written `written` times.
  const auto seconds = [&p](int64_t lines, DType type, double matrices, int written) {
    return h200::kTranspose +
           (1 + written) * BytesOf(lines, p.k, type) * matrices / h200::kMemoryRate;
  };
  const bool a = layout.trans_a != p.trans_a, b = layout.trans_b != p.trans_b || config.f32x3;
  return (a ? seconds(p.m, p.types.a, static_cast<double>(p.batch), 1) : 0) +
         (b ? seconds(p.n, p.types.b, ProductsOf(p), config.matrices_b()) : 0);
}

// The most products of a group that an estimate looks at: it must not take as long as the launches.
constexpr size_t kLookedAt = 64;

// The products of a group one by one, as RunProduct launches them. In a large group, a sample
// stands for all.
double EstimateOneByOne(const HopperConfig& config, const Problem& p) {
  const size_t step = (p.extents.size() + kLookedAt - 1) / kLookedAt;
  double seconds = 0, looked_at = 0;
  for (size_t i = 0; i < p.extents.size(); i += step) {
    ++looked_at;
    const Problem one = ProductOfGroup(p, {}, static_cast<int64_t>(i), 0).problem;
    if (one.m == 0) continue;
    seconds += one.k == 0 ? h200::kLaunch : EstimateHopper(config, one);
  }
  return seconds * static_cast<double>(p.extents.size()) / looked_at;
}

}  // namespace

double EstimateHopper(const HopperConfig& config, const Problem& p) {
  if (p.grouped == GroupedBy::kK || (p.grouped == GroupedBy::kM && !config.groups)) {
    return EstimateOneByOne(config, p);
  }
  const Waves waves = WavesOf(config, p);
  const double longest = static_cast<double>(std::max({p.m, p.n, p.k}));
  if (std::max(longest, waves.blocks) > static_cast<double>(kMost)) {
    return std::numeric_limits<double>::infinity();
  }
  const double stages = std::ceil(CeilDiv(p.k, config.tile_k()) / config.split);
  const double store =
      BytesOf(config.tile_m, config.tile_n, p.types.d) * (p.beta == 0 ? 1 : 2) / h200::kStoreRate;
  double blocks = waves.count * TileSeconds(config, stages * StageSeconds(config, p, waves), store);
  // The last store of a ping-pong overlaps with no multiplication. The two warpgroups share it.
  if (config.ping_pong()) blocks += store / 2;
  // m is that of all products of a group.
  const double bytes =
      BytesOf(p.k, p.n, p.types.b) * ProductsOf(p) +
      (BytesOf(p.m, p.k, p.types.a) + BytesOf(p.m, p.n, p.types.d) * (p.beta == 0 ? 1 : 2)) *
          static_cast<double>(p.batch);
  const double seconds = h200::kLaunch + (config.sharers() > 1 ? kCluster : 0) +
                         TransposeSeconds(config, p) +
                         h200::Together(blocks, bytes / h200::kMemoryRate);
  // Among rows that differ in their stages alone, the one with more is better if a multiprocessor
  // has one block. The one with fewer is better if that leaves room for a second block.
  const double deeper = waves.blocks > h200::kMultiprocessors ? 1 : -1;
  return seconds * (1 + deeper * kDepth * config.stages);
}

}  // namespace gemm
