#include "kernels/hopper/estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/hopper/load_layout.h"

namespace gemm {
namespace {

// An H200 of 700 W under load.
constexpr double kMultiprocessors = 132;
// Multiplications of f16 a second, of a multiprocessor.
constexpr double kMultiplications = 2048 * 1.55e9;
// Bytes a second: into a multiprocessor, out of the L2, and of the memory.
constexpr double kMultiprocessorRate = 120e9, kL2Rate = 11e12, kMemoryRate = 4.1e12;
// Bytes of D a second that a multiprocessor stores while it does nothing else.
constexpr double kStoreRate = 45e9;
// Sums of the other blocks a second, in bytes, that a block adds where blocks share k.
constexpr double kSplitRate = 12e9;
// Seconds that come on top: of a launch, of a tile, of a tile that blocks add up together, of a
// launch in clusters, and of a launch that transposes.
constexpr double kLaunch = 1.8e-6, kTile = 0.2e-6, kSplit = 0.2e-6, kCluster = 0.6e-6,
                 kTranspose = 2e-6;
// What decides between equal estimates, for each stage of the pipeline.
constexpr double kDepth = 1e-4;
// How much longer a stage takes where blocks wait for one another, and how long at least.
constexpr double kClusterStep = 1.04, kClusterStage = 0.28e-6;

double CeilDiv(int64_t x, int64_t y) {
  const int64_t quotient = (x + y - 1) / y;
  return static_cast<double>(quotient);
}

// The kernel takes no larger dimension, and no more tiles.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;

// Two resources that are used at the same time: a little longer than the slower one.
double Together(double x, double y) {
  x *= x;
  y *= y;
  return std::sqrt(std::sqrt(x * x + y * y));
}

double BytesOf(int64_t rows, int64_t columns, DType type) {
  return static_cast<double>(rows) * static_cast<double>(columns) *
         static_cast<double>(SizeOf(type));
}

// Blocks of a launch, and how they run.
struct Waves {
  double blocks = 0;       // all of them
  double count = 0;        // one behind another
  double running = 0;      // multiprocessors in use
  double blocks_each = 1;  // of them
};

Waves WavesOf(const HopperConfig& config, const Problem& p) {
  const int along_m = config.swap ? config.cluster_n : config.cluster_m;
  const int along_n = config.swap ? config.cluster_m : config.cluster_n;
  const double clusters = CeilDiv(p.m, int64_t{config.d_tile_m()} * along_m) *
                          CeilDiv(p.n, int64_t{config.d_tile_n()} * along_n);
  const double blocks = clusters * config.cluster() * static_cast<double>(p.batch);
  const double resident =
      std::floor(kMultiprocessors * config.blocks_per_sm / config.cluster()) * config.cluster();
  const double at_a_time = std::min(blocks, resident);
  return {.blocks = blocks,
          .count = std::ceil(blocks / resident),
          .running = std::min(at_a_time, kMultiprocessors),
          .blocks_each = std::max(at_a_time / kMultiprocessors, 1.0)};
}

// One stage of a block's pipeline.
double StageSeconds(const HopperConfig& config, const Waves& waves) {
  const double multiplications =
      static_cast<double>(config.tile_m) * config.tile_n * config.tile_k();
  const double multiply =
      multiplications * config.element_bytes() / 2 / kMultiplications * waves.blocks_each;
  const double bytes = static_cast<double>(config.tile_a_bytes()) / config.cluster_n +
                       static_cast<double>(config.tile_b_bytes()) / config.cluster_m;
  const double rate = std::min(kMultiprocessorRate, kL2Rate / waves.running);
  const double load = bytes * waves.blocks_each / rate;
  const double stage = Together(multiply, load);
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
  const auto seconds = [&p](int64_t lines, DType type) {
    return kTranspose + 2 * BytesOf(lines, p.k, type) * static_cast<double>(p.batch) / kMemoryRate;
  };
  return (layout.trans_a == p.trans_a ? 0 : seconds(p.m, p.types.a)) +
         (layout.trans_b == p.trans_b ? 0 : seconds(p.n, p.types.b));
}

}  // namespace

double EstimateHopper(const HopperConfig& config, const Problem& p) {
  const Waves waves = WavesOf(config, p);
  const double longest = static_cast<double>(std::max({p.m, p.n, p.k}));
  if (std::max(longest, waves.blocks) > static_cast<double>(kMost)) {
    return std::numeric_limits<double>::infinity();
  }
  const double stages = std::ceil(CeilDiv(p.k, config.tile_k()) / config.split);
  const double store =
      BytesOf(config.tile_m, config.tile_n, p.types.d) * (p.beta == 0 ? 1 : 2) / kStoreRate;
  double blocks = waves.count * TileSeconds(config, stages * StageSeconds(config, waves), store);
  // Nobody multiplies beside the last store of a ping-pong, which the two warpgroups share.
  if (config.ping_pong()) blocks += store / 2;
  const double bytes = (BytesOf(p.m, p.k, p.types.a) + BytesOf(p.k, p.n, p.types.b) +
                        BytesOf(p.m, p.n, p.types.d) * (p.beta == 0 ? 1 : 2)) *
                       static_cast<double>(p.batch);
  const double seconds = kLaunch + (config.sharers() > 1 ? kCluster : 0) +
                         TransposeSeconds(config, p) + Together(blocks, bytes / kMemoryRate);
  // Of rows that differ in their stages alone, the one with more is better where a multiprocessor
  // has one block, and the one with fewer where that leaves room for a second block.
  const double deeper = waves.blocks > kMultiprocessors ? 1 : -1;
  return seconds * (1 + deeper * kDepth * config.stages);
}

}  // namespace gemm
