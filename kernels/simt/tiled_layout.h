// The layouts of a thread-tiled kernel: the elements that each thread computes and
// copies, and the k-tiles in shared memory.
//
// A warp's access to shared memory runs in phases. A phase has 32 lanes if a lane moves at most 4
// bytes, 16 lanes for 8 bytes, and 8 lanes for 16. Lanes of a phase conflict if they touch
// different words of one of the 32 banks of 4 bytes. In a conflict_free configuration no phase of
// any load or store has a conflict.
#pragma once

#include "kernels/simt/tiled_config.h"

namespace gemm {

// A position in a tile of D (m, n) or in a k-tile of A (m, k) or of B (k, n).
struct TilePosition {
  int row;
  int col;
};

struct TiledLayout {
  TiledConfig config;

  static GEMM_HOST_DEVICE constexpr int Min(int x, int y) { return x < y ? x : y; }
  static GEMM_HOST_DEVICE constexpr int Max(int x, int y) { return x < y ? y : x; }

  // ---- The elements of D that a thread computes ----
  //
  // The lanes of a warp form a grid of lanes_m x lanes_n, the warps a grid of those. A
  // thread's part of D consists of runs of neighbours, run_m x run_n, with runs of the
  // warp's other lanes between them.

  GEMM_HOST_DEVICE constexpr int lanes_n() const {
    return config.conflict_free ? 8 : Min(32, config.block_n / config.thread_n);
  }
  GEMM_HOST_DEVICE constexpr int lanes_m() const { return 32 / lanes_n(); }
  GEMM_HOST_DEVICE constexpr int warp_m() const { return lanes_m() * config.thread_m; }
  GEMM_HOST_DEVICE constexpr int warp_n() const { return lanes_n() * config.thread_n; }

  // A run is at most 16 bytes in a conflict_free configuration, so that the lanes of a
  // phase read neighbouring runs. Rows of a k-tile of A that is m x k are read one by one:
  // runs of 1.
  GEMM_HOST_DEVICE constexpr int run_m() const {
    if (!config.conflict_free) return config.thread_m;
    return config.transposes_a() ? Min(config.thread_m, config.widest()) : 1;
  }
  GEMM_HOST_DEVICE constexpr int run_n() const {
    return config.conflict_free ? Min(config.thread_n, config.widest()) : config.thread_n;
  }

  // The first element of a thread's part. The lanes of a half warp alternate between two
  // rows of the grid. A 16-byte load of A or B then touches at most 128 different bytes
  // in a half warp, which takes one pass and not two.
  GEMM_HOST_DEVICE constexpr TilePosition ThreadOrigin(int thread) const {
    const int warp = thread / 32, lane = thread % 32;
    const int warps_n = config.block_n / warp_n();
    const int lane_m = config.conflict_free ? lane / 16 * 2 + lane % 2 : lane / lanes_n();
    const int lane_n = config.conflict_free ? lane % 16 / 2 : lane % lanes_n();
    return {warp / warps_n * warp_m() + lane_m * run_m(),
            warp % warps_n * warp_n() + lane_n * run_n()};
  }

  // From the origin to row i and column j of the thread's part.
  GEMM_HOST_DEVICE constexpr int RowStep(int i) const {
    return i / run_m() * lanes_m() * run_m() + i % run_m();
  }
  GEMM_HOST_DEVICE constexpr int ColStep(int j) const {
    return j / run_n() * lanes_n() * run_n() + j % run_n();
  }

  // ---- The layout of a k-tile, in elements from its start ----

  // 16 bytes of padding behind each row of a transposed k-tile of A shift the next row by 4 banks.
  // So lanes that store to different rows do not conflict.
  GEMM_HOST_DEVICE constexpr int a_pitch() const {
    return config.transposes_a() ? config.block_m + config.widest() : config.block_k;
  }
  GEMM_HOST_DEVICE constexpr int a_elements() const {
    return a_pitch() * (config.transposes_a() ? config.block_k : config.block_m);
  }
  GEMM_HOST_DEVICE constexpr int AOffset(int m, int k) const {
    return config.transposes_a() ? k * a_pitch() + m : m * a_pitch() + k;
  }
  GEMM_HOST_DEVICE constexpr int b_elements() const { return config.block_k * config.block_n; }
  GEMM_HOST_DEVICE constexpr int BOffset(int k, int n) const { return k * config.block_n + n; }

  // ---- The vectors that a thread copies ----
  //
  // A k-tile is divided into vectors along its rows in global memory. Thread t copies the
  // vectors t + i * threads(). If there are fewer vectors than threads, the first threads copy A
  // and the last B.

  // cp.async transposes A element by element.
  GEMM_HOST_DEVICE constexpr int a_vector() const {
    return config.async && config.transposes_a() ? 1 : config.vector;
  }
  GEMM_HOST_DEVICE constexpr int a_vectors() const {
    return config.block_m * config.block_k / a_vector();
  }
  GEMM_HOST_DEVICE constexpr int b_vectors() const {
    return config.block_k * config.block_n / config.vector;
  }
  GEMM_HOST_DEVICE constexpr int a_vectors_per_thread() const {
    return Max(1, a_vectors() / config.threads());
  }
  GEMM_HOST_DEVICE constexpr int b_vectors_per_thread() const {
    return Max(1, b_vectors() / config.threads());
  }

  // Lanes of a warp that are neighbours along a row of A. The transposing stores of a warp go to
  // the rows of `copy_lanes_k` vectors of the k-tile. These are as many as the pitch keeps free of
  // conflicts, and at most 32 bytes, a sector of global memory.
  GEMM_HOST_DEVICE constexpr int copy_lanes_k() const {
    const int across = config.block_k / a_vector();
    if (!config.transposes_a()) return across;
    if (a_vector() == 1) return Min(across, 8);
    return a_vector() * config.element_bytes() == 16 && config.element_bytes() == 2
               ? 1
               : Min(across, 2);
  }

  // (m, k) of a vector of A. Warps go down the rows first, then along k.
  GEMM_HOST_DEVICE constexpr TilePosition AVector(int vector) const {
    const int warp = vector / 32, lane = vector % 32;
    const int rows = 32 / copy_lanes_k();
    const int warps_down = config.block_m / rows;
    return {warp % warps_down * rows + lane / copy_lanes_k(),
            (warp / warps_down * copy_lanes_k() + lane % copy_lanes_k()) * a_vector()};
  }
  // The vectors of a thread are in this many rows of A, in turn.
  GEMM_HOST_DEVICE constexpr int a_rows_per_thread() const {
    const int warps_down = config.block_m * copy_lanes_k() / 32;
    return Min(a_vectors_per_thread(), Max(1, warps_down / config.warps()));
  }

  // (k, n) of a vector of B.
  GEMM_HOST_DEVICE constexpr TilePosition BVector(int vector) const {
    const int across = config.block_n / config.vector;
    return {vector / across, vector % across * config.vector};
  }
};

}  // namespace gemm
