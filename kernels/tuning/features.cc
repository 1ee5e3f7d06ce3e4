#include "kernels/tuning/features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/hopper/chip.h"

namespace gemm {
namespace {

constexpr auto kWave = static_cast<float>(h200::kMultiprocessors);  // tiles

float Log2(float x) { return std::log2(x); }

float LowBits(int64_t x) {
  constexpr int kMost = 4;
  return static_cast<float>(std::min(std::countr_zero(static_cast<uint64_t>(x)), kMost));
}

float CountTiles(int64_t extent, int tile) {
  const int64_t tiles = (extent + tile - 1) / tile;
  return static_cast<float>(tiles);
}

// How much of `tiles` tiles the extent fills.
float Fill(int64_t extent, int tile, float tiles) {
  return static_cast<float>(extent) / (tiles * static_cast<float>(tile));
}

// How full waves of tiles are.
float FillOfWaves(float tiles) {
  const float waves = tiles / kWave;
  return waves / std::ceil(waves);
}

}  // namespace

double BaseSeconds(const Problem& p, absl::Span<const double> formulas) {
  double least = std::numeric_limits<double>::infinity();
  for (const double seconds : formulas) least = std::min(least, seconds);
  if (std::isfinite(least)) return least;
  constexpr double kLaunch = 2e-6, kFlops = 60e12, kMemoryRate = 4.1e12;
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k);
  const double bytes = m * k * static_cast<double>(SizeOf(p.types.a)) +
                       k * n * static_cast<double>(SizeOf(p.types.b)) +
                       m * n * static_cast<double>(SizeOf(p.types.d));
  return kLaunch + std::max(2 * m * n * k / kFlops, bytes / kMemoryRate);
}

void SetProductFeatures(const Problem& p, double base, size_t types, size_t device, Features& f) {
  const float m = Log2(static_cast<float>(p.m)), n = Log2(static_cast<float>(p.n)),
              k = Log2(static_cast<float>(p.k));
  f[kLogM] = m;
  f[kLogN] = n;
  f[kLogK] = k;
  f[kLowBitsM] = LowBits(p.m);
  f[kLowBitsN] = LowBits(p.n);
  f[kLowBitsK] = LowBits(p.k);
  f[kLogWork] = m + n + k;
  f[kLogArea] = m + n;
  f[kLogAspect] = m - n;
  f[kLogDepth] = k - (m + n) / 2;
  constexpr int kLarge = 128, kSmall = 64;
  const float tiles_m = CountTiles(p.m, kLarge), tiles_n = CountTiles(p.n, kLarge);
  f[kLogTiles128] = Log2(tiles_m * tiles_n);
  f[kFill128] = FillOfWaves(tiles_m * tiles_n);
  f[kLogTiles64] = Log2(CountTiles(p.m, kSmall) * CountTiles(p.n, kSmall));
  f[kFillM128] = Fill(p.m, kLarge, tiles_m);
  f[kFillN128] = Fill(p.n, kLarge, tiles_n);
  f[kLogBase] = static_cast<float>(std::log(base));
  f[kTransA] = p.trans_a ? 1 : 0;
  f[kTransB] = p.trans_b ? 1 : 0;
  f[kTypesPlace] = static_cast<float>(types);
  f[kDevicePlace] = static_cast<float>(device);
}

void SetKernelFeatures(const Problem& p, const Kernel& kernel, double seconds, double base,
                       Features& f) {
  const bool tiled = kernel.tile_m > 0;
  const int tile_m = tiled ? kernel.tile_m : 128, tile_n = tiled ? kernel.tile_n : 128,
            tile_k = tiled ? kernel.tile_k : 64;
  const float tiles_m = CountTiles(p.m, tile_m), tiles_n = CountTiles(p.n, tile_n),
              tiles_k = CountTiles(p.k, tile_k);
  const float tiles = tiles_m * tiles_n;
  f[kLogTiles] = Log2(tiles);
  f[kFill] = FillOfWaves(tiles);
  f[kLogWaves] = Log2(std::ceil(tiles / kWave));
  f[kFillM] = Fill(p.m, tile_m, tiles_m);
  f[kFillN] = Fill(p.n, tile_n, tiles_n);
  f[kLogSteps] = Log2(tiles_k);
  f[kFillK] = Fill(p.k, tile_k, tiles_k);
  f[kLogOfBase] = static_cast<float>(std::log(seconds / base));
}

}  // namespace gemm
