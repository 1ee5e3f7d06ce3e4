#include "server/engine/device/completion_poller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace gemmd {
namespace {

using ::testing::ElementsAre;

// Marks are atomics that a test sets.
class FakeProbe final : public CompletionProbe {
 public:
  using Mark = std::atomic<bool>;

  absl::StatusOr<bool> Reached(void* mark) override {
    ++looks;
    if (broken) return absl::UnavailableError("device gone");
    return static_cast<Mark*>(mark)->load();
  }
  void Recycle(void*) override { ++recycled; }

  std::atomic<bool> broken{false};
  std::atomic<int> recycled{0};
  std::atomic<int> looks{0};
};

class Done {
 public:
  CompletionCallback Callback() {
    return [this](absl::Status status) {
      MutexLock lock(mutex_);
      statuses_.push_back(std::move(status));
      changed_.NotifyAll();
    };
  }
  std::vector<absl::StatusCode> Await(size_t count) {
    MutexLock lock(mutex_);
    while (statuses_.size() < count) changed_.Wait(mutex_);
    std::vector<absl::StatusCode> codes;
    for (const absl::Status& status : statuses_) codes.push_back(status.code());
    return codes;
  }
  size_t count() {
    MutexLock lock(mutex_);
    return statuses_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<absl::Status> statuses_;
};

struct Manner {
  Urgency urgency = Urgency::kPrompt;
  absl::Duration spin;
};

// Spinning, napping and blocking have to behave alike.
class CompletionPollerTest : public ::testing::TestWithParam<Manner> {
 protected:
  void Post(int channel, FakeProbe::Mark* mark, CompletionCallback done) {
    poller_.Post(channel, mark, std::move(done), GetParam().urgency);
  }

  FakeProbe probe_;
  CompletionPoller poller_{"test", 3, GetParam().spin, probe_};
};
INSTANTIATE_TEST_SUITE_P(Manners, CompletionPollerTest,
                         ::testing::Values(Manner{Urgency::kPrompt, absl::ZeroDuration()},
                                           Manner{Urgency::kPrompt, absl::Microseconds(200)},
                                           Manner{Urgency::kPrompt, absl::Seconds(1)},
                                           Manner{Urgency::kCanWait, absl::ZeroDuration()},
                                           Manner{Urgency::kCanWait, absl::Seconds(1)}));

TEST_P(CompletionPollerTest, CallsBackOnceAMarkIsReachedAndNotBefore) {
  Done done;
  FakeProbe::Mark mark{false};
  Post(0, &mark, done.Callback());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(done.count(), 0u);
  mark = true;
  EXPECT_THAT(done.Await(1), ElementsAre(absl::StatusCode::kOk));
  EXPECT_EQ(probe_.recycled, 1);
}

TEST_P(CompletionPollerTest, LeavesABorrowedMarkToItsOwner) {
  Done done;
  FakeProbe::Mark mark{true};
  poller_.PostBorrowed(0, &mark, done.Callback());
  done.Await(1);
  Post(0, &mark, done.Callback());
  done.Await(2);
  EXPECT_EQ(probe_.recycled, 1);
}

TEST_P(CompletionPollerTest, KeepsTheOrderOfAChannelAndNotOfTwo) {
  Mutex mutex;
  std::vector<int> order;
  const auto note = [&](int i) {
    return [&, i](absl::Status) {
      MutexLock lock(mutex);
      order.push_back(i);
    };
  };
  Done first, last;
  FakeProbe::Mark never_first{false}, ready{true};
  Post(0, &never_first, note(0));
  poller_.PostEnded(0, absl::OkStatus(), note(1));
  Post(0, &ready, last.Callback());
  Post(1, &ready, note(2));
  poller_.PostEnded(1, absl::OkStatus(), first.Callback());
  first.Await(1);
  never_first = true;
  last.Await(1);
  MutexLock lock(mutex);
  EXPECT_THAT(order, ElementsAre(2, 0, 1));
}

TEST_P(CompletionPollerTest, HandsOverTheStatusOfWorkThatEndedAlready) {
  Done done;
  poller_.PostEnded(2, absl::InternalError("no event"), done.Callback());
  EXPECT_THAT(done.Await(1), ElementsAre(absl::StatusCode::kInternal));
}

TEST_P(CompletionPollerTest, AnErrorOfTheProbeEndsEverythingExactlyOnce) {
  Done done;
  std::vector<FakeProbe::Mark> marks(30);
  for (size_t i = 0; i < marks.size(); ++i) {
    Post(static_cast<int>(i % 3), &marks[i], done.Callback());
  }
  probe_.broken = true;
  done.Await(marks.size());
  Post(0, &marks[0], done.Callback());
  poller_.PostEnded(1, absl::OkStatus(), done.Callback());
  const std::vector<absl::StatusCode> codes = done.Await(marks.size() + 2);
  EXPECT_EQ(std::set(codes.begin(), codes.end()), std::set{absl::StatusCode::kUnavailable});
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(done.count(), marks.size() + 2);
}

TEST_P(CompletionPollerTest, WakesUpAgainAfterARest) {
  FakeProbe::Mark ready{true};
  for (int i = 0; i < 5; ++i) {
    Done done;
    Post(i % 3, &ready, done.Callback());
    done.Await(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_P(CompletionPollerTest, CallbacksMayPost) {
  Done done;
  FakeProbe::Mark ready{true};
  Post(0, &ready, [&](absl::Status) { Post(0, &ready, done.Callback()); });
  EXPECT_THAT(done.Await(1), ElementsAre(absl::StatusCode::kOk));
}

// One callback posts the next one, and asks while nothing else is pending.
TEST(CompletionPollerBusy, OnceCallbacksHaveComeFast) {
  FakeProbe probe;
  FakeProbe::Mark ready{true};
  Done done;
  bool asked = false, at_first = true, busy = false;
  CompletionPoller poller("test", 1, absl::Seconds(1), probe);
  const auto begun = std::chrono::steady_clock::now();
  std::function<void(absl::Status)> next = [&](const absl::Status&) {
    busy = poller.IsBusy();
    if (!std::exchange(asked, true)) at_first = busy;
    if (busy || std::chrono::steady_clock::now() - begun > std::chrono::seconds(60)) {
      return poller.PostEnded(0, absl::OkStatus(), done.Callback());
    }
    poller.Post(0, &ready, next);
  };
  poller.Post(0, &ready, next);
  done.Await(1);
  EXPECT_FALSE(at_first);
  EXPECT_TRUE(busy);
}

// A nap takes 20 us at least, so a busy machine has fewer looks and never more.
void ExpectNapsBetweenLooks(FakeProbe& probe) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a spin of less is over
  const auto begun = std::chrono::steady_clock::now();
  probe.looks = 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const int looks = probe.looks;
  const auto passed = std::chrono::steady_clock::now() - begun;
  EXPECT_LE(looks, passed / std::chrono::microseconds(20) + 2);
}

// Also after a prompt mark that came before.
TEST(CompletionPollerPatience, APatientMarkIsNotWaitedForAwake) {
  FakeProbe probe;
  FakeProbe::Mark at_once{true}, late{false};
  Done done;
  CompletionPoller poller("test", 2, absl::Microseconds(100), probe);
  poller.Post(1, &at_once, done.Callback());
  poller.Post(0, &at_once, done.Callback(), Urgency::kCanWait);
  done.Await(2);
  poller.Post(0, &late, done.Callback(), Urgency::kCanWait);
  ExpectNapsBetweenLooks(probe);
  late = true;
  done.Await(3);
}

// Patient marks that are reached one after the other keep nobody awake between them.
TEST(CompletionPollerPatience, PatientMarksDoNotBeginASpin) {
  FakeProbe probe;
  FakeProbe::Mark at_once{true}, late{false};
  Done done;
  CompletionPoller poller("test", 1, absl::Minutes(1), probe);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  poller.Post(0, &at_once, done.Callback(), Urgency::kCanWait);
  done.Await(1);
  poller.Post(0, &late, done.Callback(), Urgency::kCanWait);
  ExpectNapsBetweenLooks(probe);
  late = true;
  done.Await(2);
}

TEST(CompletionPollerEnd, WaitsForPendingMarks) {
  FakeProbe probe;
  FakeProbe::Mark mark{false};
  std::atomic<int> called{0};
  std::thread reach([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    mark = true;
  });
  {
    CompletionPoller poller("test", 1, absl::Microseconds(50), probe);
    poller.Post(0, &mark, [&](absl::Status) { ++called; });
  }
  EXPECT_EQ(called, 1);
  reach.join();
}

TEST(CompletionPollerEnd, ALongSpinDoesNotDelayIt) {
  FakeProbe probe;
  FakeProbe::Mark reached{true};
  const auto start = std::chrono::steady_clock::now();
  // Blocks behind the first, spins behind the second.
  for (const Urgency urgency : {Urgency::kCanWait, Urgency::kPrompt}) {
    Done done;
    CompletionPoller poller("test", 1, absl::Seconds(30), probe);
    poller.Post(0, &reached, done.Callback(), urgency);
    done.Await(1);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(CompletionPollerThreads, ManyPostAtOnce) {
  constexpr int kThreads = 6;
  constexpr int kPosts = 3000;
  FakeProbe probe;
  FakeProbe::Mark ready{true};
  std::atomic<int> called{0};
  {
    CompletionPoller poller("test", 3, absl::Microseconds(100), probe);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kPosts; ++i) {
          poller.Post(
              t % 3, &ready, [&](absl::Status status) { called += status.ok(); },
              i % 2 == 0 ? Urgency::kPrompt : Urgency::kCanWait);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(called, kThreads * kPosts);
  EXPECT_EQ(probe.recycled, kThreads * kPosts);
}

// In steps of `gap`.
void OnCallbacks(CallbackPace& pace, CallbackPace::Clock::time_point& now, int count,
                 std::chrono::microseconds gap) {
  for (int i = 0; i < count; ++i) pace.OnCallback(now += gap);
}

TEST(CallbackPace, CrowdsOnceManyHaveComeFast) {
  CallbackPace pace;
  CallbackPace::Clock::time_point now{std::chrono::hours(1)};
  EXPECT_FALSE(pace.crowds());
  OnCallbacks(pace, now, 3, std::chrono::microseconds(30));
  EXPECT_FALSE(pace.crowds());
  OnCallbacks(pace, now, 30, std::chrono::microseconds(30));
  EXPECT_TRUE(pace.crowds());
}

// One caller, say, who waits for each product.
TEST(CallbackPace, DoesNotCrowdWhereTheyComeSlowly) {
  CallbackPace pace;
  CallbackPace::Clock::time_point now{std::chrono::hours(1)};
  OnCallbacks(pace, now, 1000, std::chrono::microseconds(100));
  EXPECT_FALSE(pace.crowds());
}

TEST(CallbackPace, ForgetsACrowdSoonAndALongRestAtOnce) {
  CallbackPace pace;
  CallbackPace::Clock::time_point now{std::chrono::hours(1)};
  OnCallbacks(pace, now, 100, std::chrono::microseconds(10));
  EXPECT_TRUE(pace.crowds());
  OnCallbacks(pace, now, 1, std::chrono::hours(1));
  EXPECT_FALSE(pace.crowds());
  OnCallbacks(pace, now, 20, std::chrono::microseconds(10));
  EXPECT_TRUE(pace.crowds());
  OnCallbacks(pace, now, 20, std::chrono::microseconds(200));
  EXPECT_FALSE(pace.crowds());
}

}  // namespace
}  // namespace gemmd
