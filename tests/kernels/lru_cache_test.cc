#include "kernels/blas/lru_cache.h"

#include <gtest/gtest.h>

namespace gemm {
namespace {

TEST(LruCache, ForgetsTheLeastRecentlyUsed) {
  LruCache<int, int> cache(2);
  cache.Insert(1, 10);
  cache.Insert(2, 20);
  ASSERT_NE(cache.Find(1), nullptr);  // 2 is now the older
  cache.Insert(3, 30);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.Find(2), nullptr);
  ASSERT_NE(cache.Find(1), nullptr);
  EXPECT_EQ(*cache.Find(1), 10);
  EXPECT_EQ(*cache.Find(3), 30);
}

TEST(LruCache, ValuesCanBeChangedInPlace) {
  LruCache<int, int> cache(4);
  cache.Insert(1, 10) = 11;
  *cache.Find(1) += 1;
  EXPECT_EQ(*cache.Find(1), 12);
  EXPECT_EQ(cache.Find(7), nullptr);
}

TEST(LruCache, NeverExceedsItsCapacity) {
  LruCache<int, int> cache(3);
  for (int i = 0; i < 100; ++i) {
    cache.Insert(i, i);
    EXPECT_LE(cache.size(), 3u);
  }
  EXPECT_EQ(*cache.Find(97), 97);
  EXPECT_EQ(cache.Find(96), nullptr);
}

}  // namespace
}  // namespace gemm
