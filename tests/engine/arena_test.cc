#include "server/engine/device/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace gemmd {
namespace {

constexpr size_t kUnit = Arena::kAlignment;

// The arena never touches its memory: any address will do.
std::byte* Base() { return reinterpret_cast<std::byte*>(uintptr_t{1} << 40); }

DeviceBuffer Take(Arena& arena, size_t bytes, Lifetime stay = Lifetime::kJob) {
  absl::StatusOr<DeviceBuffer> buffer = arena.Allocate(bytes, stay);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  return buffer.ok() ? *std::move(buffer) : DeviceBuffer();
}

TEST(Arena, RoundsSizesUpAndCapacityDown) {
  Arena arena(Base(), 4 * kUnit + 17);
  EXPECT_EQ(arena.capacity(), 4 * kUnit);
  const DeviceBuffer one = Take(arena, 1);
  EXPECT_EQ(one.bytes(), kUnit);
  const DeviceBuffer more = Take(arena, kUnit + 1);
  EXPECT_EQ(more.bytes(), 2 * kUnit);
  EXPECT_EQ(arena.used(), 3 * kUnit);
  EXPECT_EQ(arena.largest_free(), kUnit);
}

TEST(Arena, GivesMemoryBackOnDestructionResetAndAssignment) {
  Arena arena(Base(), 4 * kUnit);
  {
    const DeviceBuffer buffer = Take(arena, kUnit);
    EXPECT_EQ(arena.used(), kUnit);
  }
  EXPECT_EQ(arena.used(), 0u);

  DeviceBuffer buffer = Take(arena, kUnit);
  buffer = Take(arena, 2 * kUnit);
  EXPECT_EQ(arena.used(), 2 * kUnit);
  DeviceBuffer moved = std::move(buffer);
  EXPECT_FALSE(buffer);  // NOLINT: what a moved-from buffer is is part of its contract
  EXPECT_EQ(arena.used(), 2 * kUnit);
  moved.Reset();
  moved.Reset();
  EXPECT_FALSE(moved);
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, ExhaustionNamesWhatWasAskedForAndWhatIsFree) {
  Arena arena(Base(), 4 * kUnit);
  DeviceBuffer a = Take(arena, kUnit);
  DeviceBuffer b = Take(arena, kUnit);
  DeviceBuffer c = Take(arena, kUnit);
  b.Reset();
  const absl::Status status = arena.Allocate(2 * kUnit).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "device memory (--device-memory-bytes): 1024 bytes asked for, 1024 of 2048 free, 512 in "
      "one piece");
}

TEST(Arena, RefusesSizesThatWouldOverflow) {
  Arena arena(Base(), 4 * kUnit);
  EXPECT_EQ(arena.Allocate(std::numeric_limits<size_t>::max()).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(arena.Allocate(4 * kUnit + 1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, AnEmptyOneHasNothing) {
  Arena arena(Base(), kUnit - 1);
  EXPECT_EQ(arena.capacity(), 0u);
  EXPECT_EQ(arena.largest_free(), 0u);
  EXPECT_FALSE(arena.Allocate(1).ok());
}

TEST(Arena, TakesTheSmallestPieceThatFits) {
  Arena arena(Base(), 16 * kUnit);
  DeviceBuffer hole_of_4 = Take(arena, 4 * kUnit);
  const DeviceBuffer wall1 = Take(arena, kUnit);
  DeviceBuffer hole_of_2 = Take(arena, 2 * kUnit);
  const DeviceBuffer wall2 = Take(arena, kUnit);
  std::byte* const expected = hole_of_2.data();
  hole_of_4.Reset();
  hole_of_2.Reset();
  EXPECT_EQ(Take(arena, 2 * kUnit).data(), expected);
}

// A matrix's piece must not lie in the middle when the jobs' pieces beside it are freed.
TEST(Arena, WhatStaysAndWhatPassesLieAtOppositeEnds) {
  Arena arena(Base(), 64 * kUnit);
  DeviceBuffer job = Take(arena, 20 * kUnit);
  const DeviceBuffer kept = Take(arena, 4, Lifetime::kMatrix);
  EXPECT_EQ(kept.data(), Base() + 63 * kUnit);
  job.Reset();
  EXPECT_EQ(arena.largest_free(), 63 * kUnit);

  // Holes are filled from the same end: the last one that is large enough.
  DeviceBuffer low = Take(arena, kUnit, Lifetime::kMatrix);
  const DeviceBuffer lower = Take(arena, kUnit, Lifetime::kMatrix);
  low.Reset();
  EXPECT_EQ(Take(arena, kUnit, Lifetime::kMatrix).data(), Base() + 62 * kUnit);
  EXPECT_EQ(Take(arena, 2 * kUnit, Lifetime::kMatrix).data(), Base() + 59 * kUnit);
  EXPECT_EQ(Take(arena, 2 * kUnit).data(), Base());
}

// A matrix finds room however many holes lie behind it, in the last piece of twice its size if
// there is one.
TEST(Arena, WhatStaysDoesNotLookAtEveryHole) {
  constexpr int kHoles = 200;
  Arena arena(Base(), (3 * kHoles + 20) * kUnit);
  std::vector<DeviceBuffer> holes, walls;
  for (int i = 0; i < kHoles; ++i) {
    walls.push_back(Take(arena, kUnit, Lifetime::kMatrix));
    holes.push_back(Take(arena, 2 * kUnit, Lifetime::kMatrix));
  }
  const DeviceBuffer wall = Take(arena, kUnit, Lifetime::kMatrix);
  DeviceBuffer fits = Take(arena, 3 * kUnit, Lifetime::kMatrix);
  std::byte* const fitting = fits.data();
  const DeviceBuffer wall_behind = Take(arena, kUnit, Lifetime::kMatrix);
  holes.clear();
  fits.Reset();
  const DeviceBuffer below = Take(arena, 3 * kUnit, Lifetime::kMatrix);
  EXPECT_EQ(below.data(), wall_behind.data() - 3 * kUnit);
  const DeviceBuffer all_below = Take(arena, arena.largest_free());
  EXPECT_EQ(Take(arena, 3 * kUnit, Lifetime::kMatrix).data(), fitting);
}

TEST(Arena, JoinsNeighboursInEveryOrderOfFreeing) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    Arena arena(Base(), 4 * kUnit);
    std::vector<DeviceBuffer> buffers;
    for (int i = 0; i < 4; ++i) buffers.push_back(Take(arena, kUnit));
    EXPECT_EQ(arena.largest_free(), 0u);
    for (const int i : order) buffers[i].Reset();
    EXPECT_EQ(arena.largest_free(), 4 * kUnit);
  } while (std::next_permutation(order.begin(), order.end()));
}

// The arena against one flag a unit: no overlap, best fit (the last one, for matrices), exact
// accounts.
TEST(Arena, AgreesWithAModelUnderRandomUse) {
  constexpr size_t kUnits = 200;
  struct Held {
    DeviceBuffer buffer;
    size_t first;
    size_t units;
  };
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Arena arena(Base(), kUnits * kUnit);
    std::vector<bool> taken(kUnits, false);
    std::vector<Held> held;
    for (int step = 0; step < 3000; ++step) {
      // The free runs of the model.
      size_t used = 0, largest = 0, run = 0;
      size_t want = 1 + random() % 24;
      size_t best = kUnits + 1, last_end = 0;
      for (size_t i = 0; i <= kUnits; ++i) {
        if (i < kUnits && !taken[i]) {
          ++run;
          continue;
        }
        if (run >= want) {
          best = std::min(best, run);
          last_end = i;
        }
        largest = std::max(largest, run);
        run = 0;
        used += i < kUnits;
      }
      ASSERT_EQ(arena.used(), used * kUnit);
      ASSERT_EQ(arena.largest_free(), largest * kUnit);

      if (held.empty() || random() % 2 == 0) {
        const Lifetime stay = random() % 3 == 0 ? Lifetime::kMatrix : Lifetime::kJob;
        absl::StatusOr<DeviceBuffer> buffer = arena.Allocate(want * kUnit - random() % kUnit, stay);
        ASSERT_EQ(buffer.ok(), want <= largest);
        if (!buffer.ok()) continue;
        const size_t first = static_cast<size_t>(buffer->data() - Base()) / kUnit;
        size_t begin = first, end = first;
        while (begin > 0 && !taken[begin - 1]) --begin;
        while (end < kUnits && !taken[end]) ++end;
        if (stay == Lifetime::kMatrix) {
          ASSERT_EQ(first + want, last_end) << "not the end of the last piece that fits";
        } else {
          ASSERT_EQ(end - begin, best) << "not the smallest piece that fits";
          ASSERT_EQ(first, begin) << "not its front";
        }
        for (size_t i = first; i < first + want; ++i) {
          ASSERT_FALSE(taken[i]);
          taken[i] = true;
        }
        held.push_back({*std::move(buffer), first, want});
      } else {
        std::swap(held[random() % held.size()], held.back());
        for (size_t i = 0; i < held.back().units; ++i) taken[held.back().first + i] = false;
        held.pop_back();
      }
    }
  }
}

TEST(Arena, ServesManyThreads) {
  Arena arena(Base(), 64 * kUnit);
  std::vector<std::thread> threads;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&arena, seed] {
      std::mt19937 random(seed);
      std::vector<DeviceBuffer> held;
      for (int step = 0; step < 2000; ++step) {
        absl::StatusOr<DeviceBuffer> buffer = arena.Allocate(1 + random() % (8 * kUnit));
        if (buffer.ok()) held.push_back(*std::move(buffer));
        if (!held.empty() && random() % 2 == 0) held.erase(held.begin() + random() % held.size());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_EQ(arena.largest_free(), 64 * kUnit);
}

}  // namespace
}  // namespace gemmd
