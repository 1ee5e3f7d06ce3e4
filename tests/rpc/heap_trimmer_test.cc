// Freed memory given back to the system.
#include "server/process/heap_trimmer.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sanitized.h"

namespace gemmd {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
const HeapTrimmer::Clock::time_point kStart{};

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  size_t resident_pages = 0;
  statm >> pages >> resident_pages;
  return resident_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

using Pieces = std::vector<std::unique_ptr<char[]>>;

// A burst of allocations as long messages make them, on a thread that has an arena of its own.
Pieces Burst(size_t bytes) {
  constexpr size_t kPiece = 100'000;
  Pieces pieces;
  std::thread([&] {
    for (size_t i = 0; i < bytes / kPiece; ++i) {
      pieces.push_back(std::make_unique<char[]>(kPiece));  // zeroed, and so touched
    }
  }).join();
  return pieces;
}

// Frees all but one in a hundred, which keep the rest of the arena from going by itself.
void FreeMost(Pieces& pieces) {
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (i % 100 != 0) pieces[i].reset();
  }
}

TEST(HeapTrimmer, GivesBackWhatABurstLeft) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer has an allocator of its own";
  HeapTrimmer trimmer;
  const size_t before = ResidentBytes();
  Pieces burst = Burst(256 * kMiB);
  // Seen at its worst: nothing to give back, and nothing to get used to.
  EXPECT_FALSE(trimmer.Look(kStart));
  FreeMost(burst);
  ASSERT_GT(ResidentBytes(), before + 128 * kMiB) << "nothing is left to give back";
  EXPECT_TRUE(trimmer.Look(kStart + HeapTrimmer::kPeriod));
  EXPECT_LT(ResidentBytes(), before + 32 * kMiB);
}

TEST(HeapTrimmer, LeavesAloneWhatIsLittle) {
  size_t free_bytes = 1000 * kMiB;
  HeapTrimmer trimmer([&] { return MemoryUse{.free_bytes = free_bytes}; });
  free_bytes += HeapTrimmer::kGrowth - 1;
  EXPECT_FALSE(trimmer.Look(kStart));
  free_bytes += 1;
  EXPECT_TRUE(trimmer.Look(kStart + HeapTrimmer::kPeriod));
  EXPECT_FALSE(trimmer.Look(kStart + 2 * HeapTrimmer::kPeriod)) << "no more is free since";
}

TEST(HeapTrimmer, CountsGrowthFromTheLeast) {
  size_t free_bytes = 1000 * kMiB;
  HeapTrimmer trimmer([&] { return MemoryUse{.free_bytes = free_bytes}; });
  free_bytes = 100 * kMiB;
  EXPECT_FALSE(trimmer.Look(kStart));
  free_bytes += HeapTrimmer::kGrowth;
  EXPECT_TRUE(trimmer.Look(kStart + HeapTrimmer::kPeriod));
}

TEST(HeapTrimmer, SeesThatWhatWasGivenBackIsResidentAgain) {
  MemoryUse use{.free_bytes = 500 * kMiB, .resident_bytes = 1000 * kMiB};
  HeapTrimmer trimmer([&] { return use; });
  use.resident_bytes += HeapTrimmer::kGrowth;
  EXPECT_TRUE(trimmer.Look(kStart));
  EXPECT_FALSE(trimmer.Look(kStart + HeapTrimmer::kPeriod)) << "no growth since";
  use = {.free_bytes = HeapTrimmer::kGrowth - 1, .resident_bytes = 2000 * kMiB};
  EXPECT_FALSE(trimmer.Look(kStart + 2 * HeapTrimmer::kPeriod)) << "little is free";
}

// Others go on freeing while it gives back.
TEST(HeapTrimmer, GivesBackWhatWasFreedMeanwhile) {
  const std::vector<MemoryUse> uses = {
      {.free_bytes = 0, .resident_bytes = 1000 * kMiB},           // at first
      {.free_bytes = 300 * kMiB, .resident_bytes = 2000 * kMiB},  // behind a burst
      {.free_bytes = 300 * kMiB, .resident_bytes = 1700 * kMiB},  // given back, as much freed
      {.free_bytes = 300 * kMiB, .resident_bytes = 1700 * kMiB},
      {.free_bytes = 100 * kMiB, .resident_bytes = 1400 * kMiB},  // again, less freed
      {.free_bytes = 100 * kMiB, .resident_bytes = 1400 * kMiB},
      {.free_bytes = 0, .resident_bytes = 1300 * kMiB},
      {.free_bytes = 0, .resident_bytes = 1300 * kMiB},
  };
  size_t next = 0;
  HeapTrimmer trimmer([&] { return uses.at(next++); });
  for (int look = 0; look < 3; ++look) {
    EXPECT_TRUE(trimmer.Look(kStart + look * HeapTrimmer::kPeriod)) << look;
  }
  EXPECT_FALSE(trimmer.Look(kStart + 3 * HeapTrimmer::kPeriod)) << "nothing is left";
  EXPECT_EQ(next, uses.size());
}

TEST(HeapTrimmer, LooksOnceAPeriod) {
  size_t free_bytes = 0;
  HeapTrimmer trimmer([&] { return MemoryUse{.free_bytes = free_bytes}; });
  EXPECT_FALSE(trimmer.Look(kStart));
  free_bytes += HeapTrimmer::kGrowth;
  EXPECT_FALSE(trimmer.Look(kStart + HeapTrimmer::kPeriod / 2));
  EXPECT_TRUE(trimmer.Look(kStart + HeapTrimmer::kPeriod));
}

}  // namespace
}  // namespace gemmd
