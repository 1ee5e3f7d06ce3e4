#include "kernels/hopper/f32/estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/hopper/chip.h"
#include "kernels/hopper/f32/row.h"

namespace gemm {
namespace {

constexpr double kFmaRate = 128 * 1.55e9;  // a second, of a multiprocessor
// Extra seconds of a tile, and of a tile that blocks add up together.
constexpr double kF32Tile = 0.3e-6, kF32Split = 0.5e-6;
// The least number of steps over k in a share of a tile (stream.h).
constexpr double kLeastShare = 8;
constexpr int64_t kMostTiles = std::numeric_limits<int32_t>::max() / 2;

double TilesAlong(int64_t extent, int tile) {
  const int64_t tiles = (extent + tile - 1) / tile;
  return static_cast<double>(tiles);
}

// The steps over k that a multiprocessor makes, one after the other.
struct Steps {
  double count = 0;
  double blocks_each = 1;  // on a multiprocessor at a time
  double tiles = 1;        // of a block, one after the other
  double running = 0;      // multiprocessors
};

Steps StepsOf(const HopperF32Config& config, double tiles, double k_tiles) {
  if (config.stream) {
    const double blocks =
        std::min(std::max(tiles * k_tiles / kLeastShare, tiles), h200::kMultiprocessors);
    const double count = std::max(tiles * k_tiles / blocks, std::min(k_tiles, kLeastShare));
    return {.count = count, .running = blocks};
  }
  const double blocks = tiles * config.split;
  const double resident =
      std::floor(h200::kMultiprocessors * config.blocks_per_sm / config.split) * config.split;
  const double at_a_time = std::min(blocks, resident), waves = std::ceil(blocks / resident);
  return {.count = waves * std::ceil(k_tiles / config.split),
          .blocks_each = std::max(at_a_time / h200::kMultiprocessors, 1.0),
          .tiles = waves,
          .running = std::min(at_a_time, h200::kMultiprocessors)};
}

double TransposeSeconds(const HopperF32Config& config, const Problem& p) {
  const LoadLayout layout = HopperF32Layout(config, p);
  const auto seconds = [&p](int64_t lines) {
    return h200::kTranspose + 8.0 * static_cast<double>(lines) * static_cast<double>(p.k) *
                                  static_cast<double>(p.batch) / h200::kMemoryRate;
  };
  return (layout.trans_a != p.trans_a ? seconds(p.m) : 0) +
         (layout.trans_b != p.trans_b ? seconds(p.n) : 0);
}

// Products of a group are launched one by one. In a large group, a sample stands for all.
double EstimateGroup(const HopperF32Config& config, const Problem& p) {
  constexpr size_t kSampled = 64;
  const size_t step = (p.extents.size() + kSampled - 1) / kSampled;
  double seconds = 0, looked_at = 0;
  for (size_t i = 0; i < p.extents.size(); i += step) {
    ++looked_at;
    const Problem one = ProductOfGroup(p, {}, static_cast<int64_t>(i), 0).problem;
    if (one.m > 0) seconds += one.k == 0 ? h200::kLaunch : EstimateHopperF32(config, one);
  }
  return seconds * static_cast<double>(p.extents.size()) / looked_at;
}

}  // namespace

double EstimateHopperF32(const HopperF32Config& config, const Problem& p) {
  if (p.grouped != GroupedBy::kNothing) return EstimateGroup(config, p);
  const double tiles = TilesAlong(p.m, config.tile_m) * TilesAlong(p.n, config.tile_n) *
                       static_cast<double>(p.batch);
  const double longest = static_cast<double>(std::max({p.m, p.n, p.k}));
  if (std::max(longest, tiles * config.split) > static_cast<double>(kMostTiles)) {
    return std::numeric_limits<double>::infinity();
  }
  const Steps steps = StepsOf(config, tiles, TilesAlong(p.k, config.tile_k()));
  const double multiply = static_cast<double>(config.tile_m) * config.tile_n * config.tile_k() /
                          kFmaRate * steps.blocks_each;
  const double load = static_cast<double>(config.stage_bytes()) * steps.blocks_each /
                      std::min(h200::kMultiprocessorRate, h200::kL2Rate / steps.running);
  const double store = 4.0 * config.tile_m * config.tile_n / h200::kStoreRate * steps.tiles;
  const double blocks = h200::kLaunch + kF32Tile + (config.split > 1 ? kF32Split : 0) + store +
                        steps.count * h200::Together(multiply, load);
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k);
  const double bytes =
      4 * (m * k + k * n + m * n * (p.beta == 0 ? 1 : 2)) * static_cast<double>(p.batch);
  return h200::Together(blocks, bytes / h200::kMemoryRate) + TransposeSeconds(config, p);
}

}  // namespace gemm
