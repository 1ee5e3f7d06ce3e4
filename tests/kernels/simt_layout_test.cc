// The thread-tiled kernels' layouts: the elements of each thread, and shared memory. The
// names of the variants agree with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/simt/tiled_layout.h"
#include "kernels/simt/tiled_variants.h"
#include "tests/kernels/bank_conflicts.h"

namespace gemm {
namespace {

constexpr int kWarp = 32;

std::vector<TiledRow> Rows() {
  std::vector<TiledRow> rows(std::begin(kTiledSgemm), std::end(kTiledSgemm));
  rows.insert(rows.end(), std::begin(kTiledSgemmBlock), std::end(kTiledSgemmBlock));
  rows.insert(rows.end(), std::begin(kTiledHgemm), std::end(kTiledHgemm));
  return rows;
}

// One access of a warp to shared memory: a byte offset for each lane that takes
// part, all of the same width.
struct Access {
  int bytes;
  std::vector<int> offsets;
};

// Every access of every warp to a k-tile in shared memory.
class Accesses {
 public:
  explicit Accesses(const TiledConfig& config) : layout_{config}, config_(config) {
    for (int warp = 0; warp < config.warps(); ++warp) {
      AddStores(warp);
      AddLoads(warp);
    }
  }

  const std::vector<Access>& stores() const { return stores_; }
  const std::vector<Access>& loads() const { return loads_; }

 private:
  template <class OffsetOfThread>
  static Access Of(int warp, int bytes, OffsetOfThread offset) {
    Access access{bytes, {}};
    for (int lane = 0; lane < kWarp; ++lane) {
      const int at = offset(warp * kWarp + lane);
      if (at >= 0) access.offsets.push_back(at);
    }
    return access;
  }

  void AddStores(int warp) {
    const int element = config_.element_bytes(), threads = config_.threads();
    const bool whole = !config_.transposes_a();
    for (int i = 0; i < layout_.a_vectors_per_thread(); ++i) {
      for (int x = 0; x < (whole ? 1 : layout_.a_vector()); ++x) {
        stores_.push_back(Of(warp, element * (whole ? layout_.a_vector() : 1), [&](int thread) {
          if (thread >= layout_.a_vectors()) return -1;
          const TilePosition at = layout_.AVector(thread + i * threads);
          return element * layout_.AOffset(at.row, at.col + x);
        }));
      }
    }
    for (int i = 0; i < layout_.b_vectors_per_thread(); ++i) {
      stores_.push_back(Of(warp, element * config_.vector, [&](int thread) {
        if (thread >= layout_.b_vectors()) return -1;
        const TilePosition at = layout_.BVector(thread + i * threads);
        return element * layout_.BOffset(at.row, at.col);
      }));
    }
  }

  void AddLoads(int warp) {
    const int element = config_.element_bytes();
    const int deep = config_.transposes_a() ? 1 : config_.widest();
    const int wide_m = config_.transposes_a() ? std::min(layout_.run_m(), config_.widest()) : 1;
    const int wide_n = std::min(layout_.run_n(), config_.widest());
    for (int k = 0; k < config_.block_k; ++k) {
      for (int i = 0; i < config_.thread_m && k % deep == 0; i += wide_m) {
        loads_.push_back(Of(warp, element * wide_m * deep, [&](int thread) {
          const int row = layout_.ThreadOrigin(thread).row + layout_.RowStep(i);
          return element * layout_.AOffset(row, k);
        }));
      }
      for (int j = 0; j < config_.thread_n; j += wide_n) {
        loads_.push_back(Of(warp, element * wide_n, [&](int thread) {
          const int col = layout_.ThreadOrigin(thread).col + layout_.ColStep(j);
          return element * layout_.BOffset(k, col);
        }));
      }
    }
  }

  TiledLayout layout_;
  TiledConfig config_;
  std::vector<Access> stores_;
  std::vector<Access> loads_;
};

int Sum(const std::vector<Access>& accesses) {
  int conflicts = 0;
  for (const Access& access : accesses) {
    conflicts += testing::BankConflicts(access.offsets, access.bytes);
  }
  return conflicts;
}

TEST(TiledLayout, ConflictFreeRowsHaveNoBankConflict) {
  for (const TiledRow& row : Rows()) {
    if (!row.config.conflict_free) continue;
    const Accesses accesses(row.config);
    EXPECT_EQ(Sum(accesses.stores()), 0) << "stores of " << row.name;
    EXPECT_EQ(Sum(accesses.loads()), 0) << "loads of " << row.name;
  }
}

// The plain SGEMM has the conflicts that the next step removes.
TEST(TiledLayout, PlainRowHasBankConflicts) {
  EXPECT_GT(Sum(Accesses(kTiledSgemm[0].config).loads()), 0);
}

// Lanes that read the same bytes let the two phases of a half warp go as one.
TEST(TiledLayout, ConflictFreeFragmentLoadsTakeOnePassToAHalfWarp) {
  for (const TiledRow& row : Rows()) {
    if (!row.config.conflict_free) continue;
    const Accesses accesses(row.config);
    for (const Access& access : accesses.loads()) {
      EXPECT_EQ(testing::BankConflicts(access.offsets, access.bytes, 16), 0) << row.name;
    }
  }
}

TEST(TiledLayout, VectorsLieOnTheirWidth) {
  for (const TiledRow& row : Rows()) {
    const Accesses accesses(row.config);
    for (const auto* list : {&accesses.stores(), &accesses.loads()}) {
      for (const Access& access : *list) {
        for (const int offset : access.offsets) EXPECT_EQ(offset % access.bytes, 0) << row.name;
      }
    }
  }
}

TEST(TiledLayout, ThreadsHoldEveryElementOnce) {
  for (const auto& [name, summary, config] : Rows()) {
    const TiledLayout layout{config};
    std::set<std::pair<int, int>> held;
    for (int thread = 0; thread < config.threads(); ++thread) {
      const TilePosition origin = layout.ThreadOrigin(thread);
      for (int i = 0; i < config.thread_m; ++i) {
        for (int j = 0; j < config.thread_n; ++j) {
          const int m = origin.row + layout.RowStep(i), n = origin.col + layout.ColStep(j);
          ASSERT_TRUE(m >= 0 && m < config.block_m && n >= 0 && n < config.block_n) << name;
          EXPECT_TRUE(held.insert({m, n}).second) << name;
        }
      }
    }
    EXPECT_EQ(held.size(), static_cast<size_t>(config.block_m * config.block_n)) << name;
  }
}

TEST(TiledLayout, ThreadsMoveEveryElementOnceToAPlaceOfItsOwn) {
  for (const auto& [name, summary, config] : Rows()) {
    const TiledLayout layout{config};
    std::set<int> a, b;
    for (int vector = 0; vector < layout.a_vectors(); ++vector) {
      const TilePosition at = layout.AVector(vector);
      ASSERT_LT(at.row, config.block_m) << name;
      ASSERT_LE(at.col + layout.a_vector(), config.block_k) << name;
      for (int x = 0; x < layout.a_vector(); ++x) a.insert(layout.AOffset(at.row, at.col + x));
    }
    for (int vector = 0; vector < layout.b_vectors(); ++vector) {
      const TilePosition at = layout.BVector(vector);
      ASSERT_LT(at.row, config.block_k) << name;
      for (int x = 0; x < config.vector; ++x) b.insert(layout.BOffset(at.row, at.col + x));
    }
    EXPECT_EQ(a.size(), static_cast<size_t>(config.block_m * config.block_k)) << name;
    EXPECT_EQ(b.size(), static_cast<size_t>(config.block_k * config.block_n)) << name;
    EXPECT_LT(*a.rbegin(), layout.a_elements()) << name;
    EXPECT_LT(*b.rbegin(), layout.b_elements()) << name;
  }
}

// The kernels rely on this: the step from a thread's first vector to its vector i is the same for
// all threads. So is the step between the rows that it has pointers to.
TEST(TiledLayout, StepsAreTheSameForAllThreads) {
  for (const auto& [name, summary, config] : Rows()) {
    const TiledLayout layout{config};
    const int threads = config.threads();
    for (int i = 0; i < layout.a_vectors_per_thread(); ++i) {
      const TilePosition step = layout.AVector(i * threads);
      const TilePosition pointer = layout.AVector(i % layout.a_rows_per_thread() * threads);
      EXPECT_EQ(step.row, pointer.row) << name;
      EXPECT_EQ(pointer.col, 0) << name;
      for (int thread = 0; thread < std::min(threads, layout.a_vectors()); ++thread) {
        const TilePosition first = layout.AVector(thread);
        const TilePosition at = layout.AVector(thread + i * threads);
        EXPECT_EQ(at.row - first.row, step.row) << name;
        EXPECT_EQ(at.col - first.col, step.col) << name;
      }
    }
    for (int i = 0; i < layout.b_vectors_per_thread(); ++i) {
      for (int thread = 0; thread < std::min(threads, layout.b_vectors()); ++thread) {
        const TilePosition first = layout.BVector(thread);
        const TilePosition at = layout.BVector(thread + i * threads);
        EXPECT_EQ(at.row - first.row, i * (threads * config.vector / config.block_n)) << name;
        EXPECT_EQ(at.col, first.col) << name;
      }
    }
  }
}

bool Says(const TiledRow& row, const std::string& word) {
  return ("_" + std::string(row.name) + "_").find("_" + word + "_") != std::string::npos;
}

TEST(TiledVariants, AreWhatTheirNamesSay) {
  for (const TiledRow& row : Rows()) {
    const TiledConfig& config = row.config;
    const std::string name(row.name);
    EXPECT_EQ(name[0] == 'h', config.type == DType::kF16) << name;
    EXPECT_EQ(Says(row, "dbuf"), config.buffers == 2) << name;
    EXPECT_EQ(Says(row, "async"), config.async) << name;
    EXPECT_EQ(Says(row, "pack"), config.packed) << name;
    const std::string thread =
        std::to_string(config.thread_m) + "x" + std::to_string(config.thread_n);
    if (Says(row, "block")) {
      EXPECT_TRUE(Says(row, std::to_string(config.block_m) + "x" + std::to_string(config.block_n) +
                                "x" + std::to_string(config.block_k)))
          << name;
      EXPECT_TRUE(Says(row, "thread_" + thread)) << name;
      continue;
    }
    EXPECT_TRUE(Says(row, "t_" + thread)) << name;
    EXPECT_EQ(Says(row, "bcf"), config.conflict_free) << name;
    EXPECT_TRUE(Says(row, (name[0] == 'h' ? "f16x" : "f32x") + std::to_string(config.vector)))
        << name;
    EXPECT_TRUE(
        Says(row, config.block_k == 8 ? std::string("k") : "k" + std::to_string(config.block_k)))
        << name;
  }
}

}  // namespace
}  // namespace gemm
