// One name, many threads: replacements, conditions, deletes and expiries at once.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "server/engine/store/store.h"
#include "tests/engine/store_fixture.h"

namespace gemmd {
namespace {

class StoreRaceTest : public StoreTest {
 protected:
  static constexpr int kWriters = 3;
  static constexpr int kRounds = 500;

  static KeepSpec Keep(std::optional<uint64_t> if_version = std::nullopt) {
    return {.name = "x", .replace = true, .if_version = if_version};
  }
  absl::Status Put(const KeepSpec& keep) {
    absl::StatusOr<StoreReservation> room = roomy_.Reserve(0, 1, keep);
    if (!room.ok()) return room.status();
    return roomy_.Add(*std::move(room), memory_).status();
  }
  // The version of the name; 0 for none.
  uint64_t Version() {
    const absl::StatusOr<MatrixPin> pin = roomy_.Pin({.name = "x"});
    return pin.ok() ? roomy_.Record(*pin).version : 0;
  }

  // Runs `round` so often in each writer, while `read` runs again and again.
  template <typename Round, typename Read>
  void Race(Round round, Read read) {
    std::atomic<int> writing = kWriters;
    std::vector<std::thread> threads;
    for (int writer = 0; writer < kWriters; ++writer) {
      threads.emplace_back([&, writer] {
        for (int i = 0; i < kRounds; ++i) round(writer, i);
        --writing;
      });
    }
    do {
      read();
    } while (writing > 0);
    for (std::thread& thread : threads) thread.join();
  }

  MatrixStore roomy_{2, 1 << 20, 1000, timer_};
  const std::shared_ptr<MatrixMemory> memory_ = MemoryOn(0);
};

TEST_F(StoreRaceTest, AReaderFindsTheOldOneOrTheNewOneAndNeverNone) {
  ASSERT_TRUE(Put(Keep()).ok());
  uint64_t last = 0;
  int missing = 0, older = 0;
  Race([&](int, int) { EXPECT_TRUE(Put(Keep()).ok()); },
       [&] {
         const uint64_t version = Version();
         if (version == 0) ++missing;
         if (version < last) ++older;
         last = version;
       });
  EXPECT_EQ(missing, 0);
  EXPECT_EQ(older, 0);
  EXPECT_EQ(roomy_.count(), 1);
}

TEST_F(StoreRaceTest, OneVersionIsReplacedOnce) {
  std::mutex mutex;
  std::set<uint64_t> replaced;
  std::atomic<int> twice = 0;
  Race(
      [&](int, int) {
        const uint64_t from = Version();
        const absl::Status status = Put(Keep(from));
        EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
        const std::lock_guard<std::mutex> lock(mutex);
        if (status.ok() && !replaced.insert(from).second) ++twice;
      },
      [&] { Version(); });
  EXPECT_EQ(twice, 0);
  EXPECT_GT(replaced.size(), 1u);
  EXPECT_EQ(roomy_.count(), 1);
}

TEST_F(StoreRaceTest, WhateverMeetsWhateverNothingIsLeft) {
  Race(
      [&](int writer, int i) {
        KeepSpec keep = Keep();
        keep.replace = (writer + i) % 3 != 0;
        if (i % 4 == 0) keep.ttl = absl::Nanoseconds(1);
        if (keep.replace && i % 5 == 0) keep.if_version = 0;
        absl::StatusOr<StoreReservation> room = roomy_.Reserve(0, 1, keep);
        if (room.ok() && i % 7 != 0) (void)roomy_.Add(*std::move(room), memory_);
        if (i % 3 == 0) (void)roomy_.Delete({.name = "x"});
        clock_.Advance(absl::Nanoseconds(1));
      },
      [&] {
        RunDue(timer_);
        Version();
      });
  (void)roomy_.Delete({.name = "x"});
  clock_.Advance(absl::Hours(1));
  RunDue(timer_);
  EXPECT_EQ(roomy_.count(), 0);
  EXPECT_EQ(roomy_.used_bytes(0), 0u);
  EXPECT_TRUE(Put({.name = "x"}).ok()) << "the name is free";
}

}  // namespace
}  // namespace gemmd
