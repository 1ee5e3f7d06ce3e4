#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/engine/bounds/bound_error.h"
#include "server/engine/core/tuning.h"

namespace gemmd {
namespace {

// Readings that begin when they are let.
class Readings {
 public:
  absl::StatusOr<TuningLoad> Read() {
    const size_t number = ++begun_;
    if (number == 1) {
      first_began_.Notify();
      let_first_end_.WaitForNotification();
    }
    TuningLoad load;
    load.entries = number;
    return load;
  }

  void AwaitFirst() { first_began_.WaitForNotification(); }
  void LetFirstEnd() { let_first_end_.Notify(); }
  size_t begun() const { return begun_; }

 private:
  std::atomic<size_t> begun_ = 0;
  absl::Notification first_began_;
  absl::Notification let_first_end_;
};

TEST(TuningReloads, WhoComesDuringAReadingSharesTheNextOne) {
  Readings readings;
  std::atomic<size_t> first = 0, others = 0;
  {
    TuningReloads reloads([&] { return readings.Read(); });
    reloads.Read([&](const absl::StatusOr<TuningLoad>& load) { first = load->entries; });
    readings.AwaitFirst();
    for (int i = 0; i < 5; ++i) {
      reloads.Read([&](const absl::StatusOr<TuningLoad>& load) { others += load->entries; });
    }
    readings.LetFirstEnd();
  }
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(others, 5 * 2u);
  EXPECT_EQ(readings.begun(), 2u);
}

TEST(TuningReloads, OneMoreThanMayWaitIsRefusedAtOnce) {
  Readings readings;
  std::atomic<size_t> served = 0;
  absl::Status refused;
  {
    TuningReloads reloads([&] { return readings.Read(); });
    const auto served_one = [&](const absl::StatusOr<TuningLoad>& load) {
      if (load.ok()) ++served;
    };
    reloads.Read(served_one);
    readings.AwaitFirst();
    for (size_t i = 0; i < TuningReloads::kMostWaiting; ++i) reloads.Read(served_one);
    reloads.Read([&](const absl::StatusOr<TuningLoad>& load) { refused = load.status(); });
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(refused.message(),
              "64 calls wait already for the tuning tables to be read, the most that may: try "
              "again later");
    ASSERT_TRUE(ReachedBoundOf(refused).has_value());
    EXPECT_EQ(ReachedBoundOf(refused)->bound, "waiting-reloads");
    EXPECT_TRUE(ReachedBoundOf(refused)->retry_after.has_value());
    readings.LetFirstEnd();
  }
  EXPECT_EQ(served, 1 + TuningReloads::kMostWaiting);
}

}  // namespace
}  // namespace gemmd
