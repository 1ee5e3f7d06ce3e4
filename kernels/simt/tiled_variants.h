// The tables of the thread-tiled variants.
#pragma once

#include "absl/strings/string_view.h"
#include "kernels/simt/tiled_config.h"

namespace gemm {

struct TiledRow {
  absl::string_view name;
  absl::string_view summary;
  TiledConfig config;
};

// ---- SGEMM, step by step: 128 x 128, 8 x 8 accumulators to a thread ----

inline constexpr TiledRow kTiledSgemm[] = {
    {"sgemm_t_8x8_sliced_k_f32x4", "8x8 accumulators a thread, 16-byte loads", {}},
    {"sgemm_t_8x8_sliced_k_f32x4_bcf",
     "A transposed in shared memory, no bank conflicts",
     {.conflict_free = true}},
    {"sgemm_t_8x8_sliced_k_f32x4_bcf_dbuf",
     "two shared-memory buffers, one barrier a k-tile",
     {.conflict_free = true, .buffers = 2}},
    {"sgemm_t_8x8_sliced_k16_f32x4_bcf_dbuf",
     "k-tiles of 16",
     {.block_k = 16, .conflict_free = true, .buffers = 2}},
    {"sgemm_t_8x8_sliced_k16_f32x4_bcf_dbuf_async",
     "cp.async, which transposes A element by element",
     {.block_k = 16, .conflict_free = true, .buffers = 2, .async = true}},
};

// ---- SGEMM, one template over (block, k-tile, thread tile), without and with
// prefetching into shared memory and registers ----

namespace sgemm_block {

inline constexpr absl::string_view kSingle = "one buffer, no prefetching";
inline constexpr absl::string_view kDouble =
    "prefetches k-tiles to a second buffer, fragments to registers";

// A block makes a square tile of D in k-tiles, a thread a square part of it.
struct Tile {
  int block;
  int block_k;
  int thread;

  constexpr int threads() const { return block / thread * (block / thread); }
};

// A thread's registers hold its accumulators, two steps' strips of A and B, and its
// share of a k-tile on its way.
constexpr int Registers(const Tile& tile) {
  if (tile.thread == 4) return 80;
  const int in_flight = 2 * tile.block * tile.block_k / tile.threads();
  return in_flight <= 16 ? 128 : in_flight <= 32 ? 168 : 255;
}

constexpr TiledConfig Single(const Tile& tile) {
  return {.block_m = tile.block,
          .block_n = tile.block,
          .block_k = tile.block_k,
          .thread_m = tile.thread,
          .thread_n = tile.thread,
          .conflict_free = true,
          .registers = Registers(tile)};
}

constexpr TiledConfig Double(const Tile& tile) {
  TiledConfig config = Single(tile);
  config.buffers = 2;
  config.prefetch = true;
  return config;
}

}  // namespace sgemm_block

inline constexpr TiledRow kTiledSgemmBlock[] = {
    {"sgemm_block_64x64x16_thread_4x4", sgemm_block::kSingle,
     sgemm_block::Single({.block = 64, .block_k = 16, .thread = 4})},
    {"sgemm_block_64x64x16_thread_4x4_dbuf", sgemm_block::kDouble,
     sgemm_block::Double({.block = 64, .block_k = 16, .thread = 4})},
    {"sgemm_block_64x64x32_thread_4x4", sgemm_block::kSingle,
     sgemm_block::Single({.block = 64, .block_k = 32, .thread = 4})},
    {"sgemm_block_64x64x32_thread_4x4_dbuf", sgemm_block::kDouble,
     sgemm_block::Double({.block = 64, .block_k = 32, .thread = 4})},
    {"sgemm_block_64x64x4_thread_8x8", sgemm_block::kSingle,
     sgemm_block::Single({.block = 64, .block_k = 4, .thread = 8})},
    {"sgemm_block_64x64x4_thread_8x8_dbuf", sgemm_block::kDouble,
     sgemm_block::Double({.block = 64, .block_k = 4, .thread = 8})},
    {"sgemm_block_64x64x8_thread_8x8", sgemm_block::kSingle,
     sgemm_block::Single({.block = 64, .block_k = 8, .thread = 8})},
    {"sgemm_block_64x64x8_thread_8x8_dbuf", sgemm_block::kDouble,
     sgemm_block::Double({.block = 64, .block_k = 8, .thread = 8})},
    {"sgemm_block_64x64x16_thread_8x8", sgemm_block::kSingle,
     sgemm_block::Single({.block = 64, .block_k = 16, .thread = 8})},
    {"sgemm_block_64x64x16_thread_8x8_dbuf", sgemm_block::kDouble,
     sgemm_block::Double({.block = 64, .block_k = 16, .thread = 8})},
    {"sgemm_block_64x64x32_thread_8x8", sgemm_block::kSingle,
     sgemm_block::Single({.block = 64, .block_k = 32, .thread = 8})},
    {"sgemm_block_64x64x32_thread_8x8_dbuf", sgemm_block::kDouble,
     sgemm_block::Double({.block = 64, .block_k = 32, .thread = 8})},
    {"sgemm_block_128x128x16_thread_8x8", sgemm_block::kSingle,
     sgemm_block::Single({.block = 128, .block_k = 16, .thread = 8})},
    {"sgemm_block_128x128x16_thread_8x8_dbuf", sgemm_block::kDouble,
     sgemm_block::Double({.block = 128, .block_k = 16, .thread = 8})},
    {"sgemm_block_128x128x8_thread_8x8", sgemm_block::kSingle,
     sgemm_block::Single({.block = 128, .block_k = 8, .thread = 8})},
    {"sgemm_block_128x128x8_thread_8x8_dbuf", sgemm_block::kDouble,
     sgemm_block::Double({.block = 128, .block_k = 8, .thread = 8})},
};

// ---- HGEMM, step by step; accumulators in f16 ----

namespace hgemm_t {

// An f16x8 row: packed, without bank conflicts, 16-byte loads.
constexpr TiledConfig F16x8(TiledConfig config) {
  config.type = DType::kF16;
  config.vector = 8;
  config.packed = true;
  config.conflict_free = true;
  return config;
}

}  // namespace hgemm_t

inline constexpr TiledRow kTiledHgemm[] = {
    {"hgemm_t_8x8_sliced_k_f16x4",
     "8x8 accumulators a thread, 8-byte loads",
     {.type = DType::kF16}},
    {"hgemm_t_8x8_sliced_k_f16x4_pack",
     "two accumulators an instruction",
     {.type = DType::kF16, .packed = true}},
    {"hgemm_t_8x8_sliced_k_f16x4_bcf",
     "A transposed in shared memory, no bank conflicts",
     {.type = DType::kF16, .conflict_free = true}},
    {"hgemm_t_8x8_sliced_k_f16x4_pack_bcf",
     "two accumulators an instruction, no bank conflicts",
     {.type = DType::kF16, .packed = true, .conflict_free = true}},
    {"hgemm_t_4x4_sliced_k_f16x4_pack_bcf",
     "4x4 accumulators a thread",
     {.type = DType::kF16,
      .block_m = 64,
      .block_n = 64,
      .thread_m = 4,
      .thread_n = 4,
      .packed = true,
      .conflict_free = true,
      .registers = 64}},
    {"hgemm_t_8x8_sliced_k_f16x8_pack_bcf", "16-byte loads",
     hgemm_t::F16x8({.block_k = 8, .buffers = 1})},
    {"hgemm_t_8x8_sliced_k_f16x8_pack_bcf_dbuf", "two shared-memory buffers, one barrier a k-tile",
     hgemm_t::F16x8({.block_k = 8, .buffers = 2})},
    {"hgemm_t_8x8_sliced_k16_f16x8_pack_bcf_dbuf", "k-tiles of 16",
     hgemm_t::F16x8({.block_k = 16, .buffers = 2})},
    {"hgemm_t_8x8_sliced_k16_f16x8_pack_bcf_dbuf_async",
     "cp.async, which leaves A as it is, read in 16-byte pieces along k",
     hgemm_t::F16x8({.block_k = 16, .buffers = 2, .async = true})},
    {"hgemm_t_8x8_sliced_k32_f16x8_pack_bcf_dbuf", "k-tiles of 32",
     hgemm_t::F16x8({.block_k = 32, .buffers = 2})},
    {"hgemm_t_8x8_sliced_k32_f16x8_pack_bcf_dbuf_async", "k-tiles of 32, cp.async",
     hgemm_t::F16x8({.block_k = 32, .buffers = 2, .async = true})},
};

}  // namespace gemm
