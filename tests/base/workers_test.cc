#include "server/base/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/processor_time.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;

constexpr std::chrono::seconds kLong{30};

TEST(Workers, OneRunsFunctionsInTheirOrder) {
  std::vector<int> ran;
  Workers workers("test", 1);
  for (int i = 0; i < 5; ++i) workers.Schedule([&ran, i] { ran.push_back(i); });
  workers.Stop();
  EXPECT_THAT(ran, ElementsAre(0, 1, 2, 3, 4));
}

// Each waits for all others: fewer threads would wait for ever.
TEST(Workers, RunAsManyFunctionsAtATimeAsThereAreThreads) {
  constexpr int kThreads = 4;
  Workers workers("test", kThreads);
  std::barrier<> together(kThreads + 1);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < kThreads; ++i) {
      workers.Schedule([&together] { together.arrive_and_wait(); });
    }
    together.arrive_and_wait();
  }
}

TEST(Workers, StopRunsWhatWasScheduled) {
  std::promise<void> release;
  std::vector<int> ran;
  Workers workers("test", 1);
  workers.Schedule([&release] { release.get_future().wait(); });
  for (int i = 0; i < 5; ++i) workers.Schedule([&ran, i] { ran.push_back(i); });
  std::thread other([&release] { release.set_value(); });
  workers.Stop();
  EXPECT_EQ(ran.size(), 5u);
  other.join();
}

TEST(Workers, AfterStopAFunctionRunsAtOnceOnTheCallersThread) {
  Workers workers("test", 2);
  workers.Stop();
  std::thread::id thread;
  workers.Schedule([&thread] { thread = std::this_thread::get_id(); });
  EXPECT_EQ(thread, std::this_thread::get_id());
  workers.Stop();
}

TEST(Workers, FunctionsMayScheduleOthers) {
  std::promise<void> ran;
  Workers workers("test", 1);
  workers.Schedule([&] { workers.Schedule([&ran] { ran.set_value(); }); });
  ran.get_future().wait();
}

TEST(Workers, ThreadsHaveTheName) {
  std::promise<std::string> name;
  Workers workers("some-workers", 1);
  workers.Schedule([&name] {
    char buffer[16] = {};
    pthread_getname_np(pthread_self(), buffer, sizeof buffer);
    name.set_value(buffer);
  });
  EXPECT_EQ(name.get_future().get(), "some-workers");
}

// Spins that end at once, in the middle of a test, and not before its end.
class AwakeWorkers : public ::testing::TestWithParam<absl::Duration> {};
INSTANTIATE_TEST_SUITE_P(Spin, AwakeWorkers,
                         ::testing::Values(absl::Microseconds(1), absl::Microseconds(50),
                                           absl::Minutes(1)));

// Before anyone stops them.
TEST_P(AwakeWorkers, RunEachFunctionOnce) {
  constexpr int kThreads = 3, kCallers = 3, kEach = 2000;
  std::atomic<int> ran{0};
  Workers workers("test", kThreads, GetParam());
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        workers.Schedule([&ran] { ++ran; });
        if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(30));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  const auto begun = std::chrono::steady_clock::now();
  while (ran < kCallers * kEach && std::chrono::steady_clock::now() - begun < kLong) {
    std::this_thread::yield();
  }
  EXPECT_EQ(ran, kCallers * kEach);
}

// The one that looks takes the first one; others have to be woken for the rest.
TEST_P(AwakeWorkers, RunAsManyFunctionsAtATimeAsThereAreThreads) {
  constexpr int kThreads = 4;
  Workers workers("test", kThreads, GetParam());
  std::barrier<> together(kThreads + 1);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < kThreads; ++i) {
      workers.Schedule([&together] { together.arrive_and_wait(); });
    }
    together.arrive_and_wait();
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

TEST(Workers, EndThoughOneLooks) {
  std::promise<void> ran;
  Workers workers("test", 2, absl::Minutes(1));
  workers.Schedule([&ran] { ran.set_value(); });
  ran.get_future().wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // one of them looks by now
  const auto begun = std::chrono::steady_clock::now();
  workers.Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kLong);
}

TEST(Workers, SleepBehindAPatientFunction) {
  Workers workers("test", 1, absl::Minutes(1));
  pthread_t thread{};
  for (const Urgency urgency : {Urgency::kPrompt, Urgency::kCanWait}) {
    std::promise<pthread_t> ran;
    workers.Schedule([&ran] { ran.set_value(pthread_self()); }, urgency);
    thread = ran.get_future().get();
  }
  const double before = ProcessorSeconds(thread);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(ProcessorSeconds(thread) - before, 0.05);
}

TEST(Workers, ReleaseWhatAFunctionOwnsOnceItHasRun) {
  auto owned = std::make_shared<int>();
  Workers workers("test", 1);
  workers.Schedule([owned] {});
  workers.Stop();
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace gemmd
