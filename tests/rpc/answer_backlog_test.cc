// Which answers of unary products a connection may still have.
#include "server/rpc/watch/answer_backlog.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/bytes.h"
#include "server/base/clock.h"
#include "server/engine/bounds/bound_error.h"
#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kBusyConnection = 7;
constexpr uint64_t kFreeConnection = 8;

class AnswerBacklogTest : public testing::Test {
 protected:
  absl::StatusOr<AnswerBacklog::Place> Admit(absl::Duration left, uint64_t bytes = kMiB,
                                             uint64_t connection = kBusyConnection) {
    return backlog_.Admit(connection, bytes, SteadyNow() + left);
  }

  // Answers of 1 MiB with gRPC, none of them taken yet.
  std::vector<AnswerBacklog::Place> Handed(int count, uint64_t bytes = kMiB) {
    std::vector<AnswerBacklog::Place> places;
    for (int i = 0; i < count; ++i) {
      absl::StatusOr<AnswerBacklog::Place> place = Admit(absl::InfiniteDuration(), bytes);
      EXPECT_TRUE(place.ok()) << place.status();
      places.push_back(*std::move(place));
      places.back().Hand();
    }
    return places;
  }

  // A connection that takes 100 MiB a second.
  void LearnRate() {
    for (AnswerBacklog::Place& place : Handed(10)) {
      clock_.Advance(absl::Milliseconds(10));
      place.Take();
    }
  }

  TestClock clock_;
  AnswerBacklog backlog_;
};

TEST_F(AnswerBacklogTest, NothingIsRefusedBeforeTheRateIsKnown) {
  const std::vector<AnswerBacklog::Place> waiting = Handed(1000);
  EXPECT_TRUE(Admit(absl::Milliseconds(1)).ok());
}

TEST_F(AnswerBacklogTest, AnAnswerThatComesInAQuarterOfTheTimeIsTaken) {
  LearnRate();
  const std::vector<AnswerBacklog::Place> waiting = Handed(20);  // 210 ms with one more
  EXPECT_TRUE(Admit(absl::Milliseconds(844)).ok());
  EXPECT_FALSE(Admit(absl::Milliseconds(836)).ok());
  EXPECT_TRUE(Admit(absl::InfiniteDuration()).ok());
  EXPECT_TRUE(Admit(absl::Milliseconds(1), kMiB, kFreeConnection).ok());
}

TEST_F(AnswerBacklogTest, ARefusalSaysWhenToTryAgain) {
  LearnRate();
  const std::vector<AnswerBacklog::Place> waiting = Handed(99);
  const absl::Status refused = Admit(absl::Seconds(2)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("103809024 bytes of answers wait for this connection"),
                    HasSubstr("a quarter of the 2s that the call has left")));
  const std::optional<ReachedBound> reached = ReachedBoundOf(refused);
  ASSERT_TRUE(reached.has_value());
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*reached->retry_after), 500, 5);
}

TEST_F(AnswerBacklogTest, APlaceThatIsGivenUpTakesNoTime) {
  LearnRate();
  {
    const std::vector<AnswerBacklog::Place> waiting = Handed(99);
    EXPECT_FALSE(Admit(absl::Seconds(1)).ok());
  }
  EXPECT_TRUE(Admit(absl::Seconds(1)).ok());
}

TEST_F(AnswerBacklogTest, WhatHasNoTimeLeftIsTooLate) {
  LearnRate();
  const std::vector<AnswerBacklog::Place> waiting = Handed(20);
  EXPECT_EQ(Admit(absl::Milliseconds(1)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Admit(absl::ZeroDuration()).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Admit(-absl::Seconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

// What is promised waits, too, whether or not its product is made.
TEST_F(AnswerBacklogTest, PromisedAnswersCount) {
  LearnRate();
  std::vector<AnswerBacklog::Place> promised;
  for (int i = 0; i < 200; ++i) {
    absl::StatusOr<AnswerBacklog::Place> place = Admit(absl::Seconds(1));
    if (!place.ok()) break;
    promised.push_back(*std::move(place));
  }
  EXPECT_EQ(promised.size(), 25);
}

// With little in its hands gRPC waits for answers, and not for the client.
TEST_F(AnswerBacklogTest, SmallAnswersOneAtATimeTellNoRate) {
  for (int i = 0; i < 100; ++i) {
    std::vector<AnswerBacklog::Place> one = Handed(1, kKiB);
    clock_.Advance(absl::Milliseconds(10));
    one.front().Take();
  }
  const std::vector<AnswerBacklog::Place> waiting = Handed(1000);
  EXPECT_TRUE(Admit(absl::Milliseconds(1)).ok());
}

TEST_F(AnswerBacklogTest, AnswersThatWereNotTakenTellNoRate) {
  for (int i = 0; i < 10; ++i) {
    const std::vector<AnswerBacklog::Place> dropped = Handed(4);
    clock_.Advance(absl::Seconds(1));
  }
  const std::vector<AnswerBacklog::Place> waiting = Handed(1000);
  EXPECT_TRUE(Admit(absl::Milliseconds(1)).ok());
}

TEST_F(AnswerBacklogTest, TheRateFollowsTheConnection) {
  LearnRate();
  for (int i = 0; i < 10; ++i) {  // then ten times as fast
    for (AnswerBacklog::Place& place : Handed(10)) {
      clock_.Advance(absl::Milliseconds(1));
      place.Take();
    }
  }
  const std::vector<AnswerBacklog::Place> waiting = Handed(99);
  EXPECT_TRUE(Admit(absl::Milliseconds(500)).ok());
  EXPECT_FALSE(Admit(absl::Milliseconds(350)).ok());
}

TEST_F(AnswerBacklogTest, ARateHoldsForTenSeconds) {
  LearnRate();
  const std::vector<AnswerBacklog::Place> waiting = Handed(99);
  clock_.Advance(absl::Seconds(10));
  EXPECT_FALSE(Admit(absl::Milliseconds(1)).ok());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(Admit(absl::Milliseconds(1)).ok());
}

// Nor does an old rate come back with the next answer.
TEST_F(AnswerBacklogTest, ASlowSpellIsForgotten) {
  for (AnswerBacklog::Place& place : Handed(20)) {
    clock_.Advance(absl::Seconds(1));
    place.Take();
  }
  clock_.Advance(absl::Seconds(11));
  LearnRate();
  const std::vector<AnswerBacklog::Place> waiting = Handed(9);  // 100 ms with one more
  EXPECT_TRUE(Admit(absl::Milliseconds(420)).ok());
  EXPECT_FALSE(Admit(absl::Milliseconds(380)).ok());
}

// One user's answer is not read, another one's are, on the same connection.
TEST_F(AnswerBacklogTest, TimeBeforeAnAnswerIsNotItsOwnBesideAStalledOne) {
  const std::vector<AnswerBacklog::Place> stalled = Handed(1, 2 * kMiB);
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(absl::Seconds(1));
    absl::StatusOr<AnswerBacklog::Place> small = Admit(absl::Seconds(1), 64 * kKiB);
    ASSERT_TRUE(small.ok()) << i << ": " << small.status();
    small->Hand();
    clock_.Advance(absl::Milliseconds(1));
    small->Take();
  }
}

TEST_F(AnswerBacklogTest, TimeBeforeALargeAnswerIsNotItsOwnBesideASmallStalledOne) {
  const std::vector<AnswerBacklog::Place> stalled = Handed(1, 512 * kKiB);
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(absl::Seconds(5));
    absl::StatusOr<AnswerBacklog::Place> large = Admit(absl::Seconds(1), kMiB);
    ASSERT_TRUE(large.ok()) << i << ": " << large.status();
    large->Hand();
    const absl::StatusOr<AnswerBacklog::Place> next = Admit(absl::Seconds(1), kMiB);
    ASSERT_TRUE(next.ok()) << i << ": " << next.status();
    clock_.Advance(absl::Milliseconds(1));
    large->Take();
  }
}

}  // namespace
}  // namespace gemmd
