// Freed memory given back to the system.
#include "server/heap_trimmer.h"

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace gemmd {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
const HeapTrimmer::Clock::time_point kStart{};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnAllocator = true;
#else
constexpr bool kOwnAllocator = false;
#endif

// A burst of allocations as long messages make them, on threads that have arenas of their own,
// then freed but for one in a hundred, which keeps the rest of its arena from going by itself.
std::vector<std::unique_ptr<char[]>> AllocateAndFree(size_t bytes) {
  constexpr size_t kPiece = 100'000;
  std::vector<std::unique_ptr<char[]>> kept;
  std::thread([&] {
    std::vector<std::unique_ptr<char[]>> burst;
    for (size_t i = 0; i < bytes / kPiece; ++i) {
      burst.push_back(std::make_unique<char[]>(kPiece));  // zeroed, and so touched
    }
    for (size_t i = 0; i < burst.size(); i += 100) kept.push_back(std::move(burst[i]));
    kept.push_back(std::move(burst.back()));
  }).join();
  return kept;
}

TEST(HeapTrimmer, GivesBackWhatABurstLeft) {
  if (kOwnAllocator) GTEST_SKIP() << "the sanitizer has an allocator of its own";
  HeapTrimmer trimmer;
  const size_t before = ResidentBytes();
  const auto kept = AllocateAndFree(256 * kMiB);
  ASSERT_GT(ResidentBytes(), before + 128 * kMiB) << "nothing is left to give back";
  EXPECT_TRUE(trimmer.Look());
  EXPECT_LT(ResidentBytes(), before + 32 * kMiB);
}

TEST(HeapTrimmer, LeavesAProcessAloneThatHasNotGrown) {
  size_t resident = 1000 * kMiB;
  HeapTrimmer trimmer([&] { return resident; });
  resident += HeapTrimmer::kGrowth - 1;
  EXPECT_FALSE(trimmer.Look(kStart));
  resident += 1;
  EXPECT_TRUE(trimmer.Look(kStart + HeapTrimmer::kPeriod));
  EXPECT_FALSE(trimmer.Look(kStart + 2 * HeapTrimmer::kPeriod)) << "it has not grown since";
}

TEST(HeapTrimmer, CountsGrowthFromTheLeast) {
  size_t resident = 1000 * kMiB;
  HeapTrimmer trimmer([&] { return resident; });
  resident = 100 * kMiB;
  EXPECT_FALSE(trimmer.Look(kStart));
  resident += HeapTrimmer::kGrowth;
  EXPECT_TRUE(trimmer.Look(kStart + HeapTrimmer::kPeriod));
}

TEST(HeapTrimmer, LooksOnceAPeriod) {
  size_t resident = 0;
  HeapTrimmer trimmer([&] { return resident; });
  EXPECT_FALSE(trimmer.Look(kStart));
  resident += HeapTrimmer::kGrowth;
  EXPECT_FALSE(trimmer.Look(kStart + HeapTrimmer::kPeriod / 2));
  EXPECT_TRUE(trimmer.Look(kStart + HeapTrimmer::kPeriod));
}

}  // namespace
}  // namespace gemmd
