#include "server/base/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <barrier>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace gemmd {
namespace {

using ::testing::ElementsAre;

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

TEST(Workers, ReleaseWhatAFunctionOwnsOnceItHasRun) {
  auto owned = std::make_shared<int>();
  Workers workers("test", 1);
  workers.Schedule([owned] {});
  workers.Stop();
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace gemmd
