// Copies the k-tiles of A and B from global to shared memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/ptx/cp_async.cuh"
#include "kernels/simt/tiled_registers.cuh"

namespace gemm {

// The stored operands: A is m x k, B is k x n.
template <class Element>
struct TiledOperands {
  const Element* a;
  int64_t lda;
  const Element* b;
  int64_t ldb;
  int64_t m, n, k;
};

// One buffer of shared memory: a k-tile of A and one of B.
template <class Variant>
struct SharedKTile {
  alignas(16) typename Variant::Element a[Variant::kLayout.a_elements()];
  alignas(16) typename Variant::Element b[Variant::kLayout.b_elements()];
};

// Copies a thread's share of each k-tile. Instead of rows of A beyond m and columns of B beyond n
// it reads others inside the matrix: they affect only elements that D does not have. Elements
// beyond k become zeros. Only the k-tile at the end of k can have those, so it is copied first, and
// the loop over the others needs no bounds.
template <class Variant>
class KTileCopy {
 public:
  using Element = typename Variant::Element;
  using KTile = SharedKTile<Variant>;
  static constexpr TiledLayout kLayout = Variant::kLayout;
  static constexpr TiledConfig kConfig = kLayout.config;
  // For device code, where kLayout has no address.
  static GEMM_HOST_DEVICE constexpr TiledLayout Layout() {
    constexpr TiledLayout kCopy = Variant::kLayout;
    return kCopy;
  }

  __device__ KTileCopy(const TiledOperands<Element>& operands, int64_t first_m, int64_t first_n)
      : ldb_(operands.ldb) {
    const TilePosition a_start = Layout().AVector(AShare(threadIdx.x).vector);
    const TilePosition b_start = Layout().BVector(BShare(threadIdx.x).vector);
    a_shared_ = Layout().AOffset(a_start.row, a_start.col);
    b_shared_ = Layout().BOffset(b_start.row, b_start.col);
#pragma unroll
    for (int i = 0; i < kRowsOfA; ++i) {
      int64_t row = first_m + a_start.row + AStep(i).row;
      if (row >= operands.m) row = operands.m - 1;
      a_[i] = operands.a + row * operands.lda + a_start.col;
    }
    int64_t col = first_n + b_start.col;
    if (col >= operands.n) col = (operands.n - 1) / kConfig.vector * kConfig.vector;
    b_ = operands.b + b_start.row * ldb_ + col;
  }

  // Starts to copy k-tile `index` to registers, or with cp.async to `to`. `valid_k` (1 to block_k)
  // of its steps are inside k.
  __device__ void StartLast(uint32_t index, int valid_k, KTile& to) {
    const int64_t first_k = int64_t{index} * kConfig.block_k;
    Advance(first_k);
    StartKTile<false>(valid_k, to);
    Advance(-first_k);
  }

  // The same for the k-tiles from k = 0 on, which are whole ones.
  __device__ void StartNext(KTile& to) {
    StartKTile<true>(kConfig.block_k, to);
    Advance(kConfig.block_k);
  }

  // Ends the copy that was started: this thread's share is in `to`.
  __device__ void Finish(KTile& to) {
    if constexpr (kConfig.async) {
      ptx::CpAsyncWait<0>();
    } else {
      Store(to);
    }
  }

 private:
  static constexpr int kVectorsOfA = kLayout.a_vectors_per_thread();
  static constexpr int kVectorsOfB = kLayout.b_vectors_per_thread();
  static constexpr int kRowsOfA = kLayout.a_rows_per_thread();
  static constexpr int kRowsOfB = kConfig.threads() * kConfig.vector / kConfig.block_n;
  static constexpr int kABytes = kLayout.a_vector() * kConfig.element_bytes();
  static constexpr int kBBytes = kConfig.vector * kConfig.element_bytes();

  // A vector in registers, between global and shared memory.
  template <int kBytes>
  struct Words {
    uint32_t words[kBytes / 4];

    __device__ void Load(const Element* from) {
      using Type = typename WordsType<kBytes>::Type;
      const Type all = *reinterpret_cast<const Type*>(from);
      memcpy(words, &all, kBytes);
    }
    __device__ void Store(Element* to) const {
      typename WordsType<kBytes>::Type all;
      memcpy(&all, words, kBytes);
      *reinterpret_cast<decltype(all)*>(to) = all;
    }
    __device__ void StoreOne(int x, Element* to) const {
      if constexpr (sizeof(Element) == 4) {
        *reinterpret_cast<uint32_t*>(to) = words[x];
      } else {
        *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(words[x / 2] >> x % 2 * 16);
      }
    }
    // Zeros from element `count` on.
    __device__ void Keep(int count) {
      constexpr int kPerWord = 4 / sizeof(Element);
#pragma unroll
      for (int w = 0; w < kBytes / 4; ++w) {
        const int kept = count - w * kPerWord;
        if (kept <= 0) words[w] = 0;
        if (kPerWord == 2 && kept == 1) words[w] &= 0xFFFFu;
      }
    }
  };

  // The vectors that a thread copies: `vector` and each threads() further on.
  struct ThreadShare {
    int vector;
    bool any;
  };
  static __device__ ThreadShare Share(int thread, int vectors, int first_thread) {
    if (vectors >= kConfig.threads()) return {thread, true};
    const int vector = thread - first_thread;
    const bool any = vector >= 0 && vector < vectors;
    return {any ? vector : 0, any};
  }
  static __device__ ThreadShare AShare(int thread) { return Share(thread, kLayout.a_vectors(), 0); }
  static __device__ ThreadShare BShare(int thread) {
    return Share(thread, kLayout.b_vectors(), kConfig.threads() - kLayout.b_vectors());
  }

  // From a thread's first vector of A to its vector i.
  static __device__ constexpr TilePosition AStep(int i) {
    const TilePosition first = Layout().AVector(0), at = Layout().AVector(i * kConfig.threads());
    return {at.row - first.row, at.col - first.col};
  }

  __device__ Element* AShared(int i, KTile& k_tile) const {
    return k_tile.a + a_shared_ + Layout().AOffset(AStep(i).row, AStep(i).col);
  }
  __device__ Element* BShared(int i, KTile& k_tile) const {
    return k_tile.b + b_shared_ + Layout().BOffset(i * kRowsOfB, 0);
  }

  __device__ void Advance(int64_t k) {
#pragma unroll
    for (int i = 0; i < kRowsOfA; ++i) a_[i] += k;
    b_ += k * ldb_;
  }

  template <bool kFull>
  __device__ void StartKTile(int valid_k, KTile& to) {
    // Only a partial k-tile needs the positions of the thread's vectors in it.
    const int a_col = kFull ? 0 : Layout().AVector(AShare(threadIdx.x).vector).col;
    const int b_row = kFull ? 0 : Layout().BVector(BShare(threadIdx.x).vector).row;
    if (AShare(threadIdx.x).any) {
#pragma unroll
      for (int i = 0; i < kVectorsOfA; ++i) {
        const int col = a_col + AStep(i).col;
        StartA<kFull>(i, a_[i % kRowsOfA] + AStep(i).col, a_[0] - a_col, valid_k - col, to);
      }
    }
    if (BShare(threadIdx.x).any) {
#pragma unroll
      for (int i = 0; i < kVectorsOfB; ++i) {
        const int row = i * kRowsOfB;
        StartB<kFull>(i, b_ + row * ldb_, b_ - b_row * ldb_, b_row + row < valid_k, to);
      }
    }
    if constexpr (kConfig.async) ptx::CpAsyncCommit();
  }

  // Vector i of A. `count` of its elements are inside k: any number unless kFull. `inside` is an
  // address that may be read in any case.
  template <bool kFull>
  __device__ void StartA(int i, const Element* from, const Element* inside, int count, KTile& to) {
    if constexpr (kConfig.async) {
      const int valid = TiledLayout::Min(TiledLayout::Max(count, 0), kLayout.a_vector()) *
                        kConfig.element_bytes();
      ptx::CpAsync<kABytes>(ptx::SharedAddress(AShared(i, to)), kFull || valid > 0 ? from : inside,
                            kFull ? kABytes : valid);
    } else {
      if (kFull || count > 0) a_registers_[i].Load(from);
      if (!kFull && count < kLayout.a_vector()) a_registers_[i].Keep(count);
    }
  }
  // Vector i of B, which is inside k as a whole or not at all.
  template <bool kFull>
  __device__ void StartB(int i, const Element* from, const Element* inside, bool valid, KTile& to) {
    if constexpr (kConfig.async) {
      ptx::CpAsync<kBBytes>(ptx::SharedAddress(BShared(i, to)), kFull || valid ? from : inside,
                            kFull || valid ? kBBytes : 0);
    } else if (kFull || valid) {
      b_registers_[i].Load(from);
    } else {
      b_registers_[i].Keep(0);
    }
  }

  __device__ void Store(KTile& to) const {
    if (AShare(threadIdx.x).any) {
#pragma unroll
      for (int i = 0; i < kVectorsOfA; ++i) {
        if constexpr (kConfig.transposes_a()) {
#pragma unroll
          for (int x = 0; x < kLayout.a_vector(); ++x) {
            a_registers_[i].StoreOne(x, AShared(i, to) + Layout().AOffset(0, x));
          }
        } else {
          a_registers_[i].Store(AShared(i, to));
        }
      }
    }
    if (BShare(threadIdx.x).any) {
#pragma unroll
      for (int i = 0; i < kVectorsOfB; ++i) b_registers_[i].Store(BShared(i, to));
    }
  }

  int a_shared_;  // offset of the thread's first vector in a k-tile; of B likewise
  int b_shared_;
  const int64_t ldb_;
  const Element* a_[kRowsOfA];  // in the next k-tile
  const Element* b_;
  Words<kABytes> a_registers_[kConfig.async ? 1 : kVectorsOfA];
  Words<kBBytes> b_registers_[kConfig.async ? 1 : kVectorsOfB];
};

}  // namespace gemm
