// Matrices without a name live as long as their client.
#include "client/cpp/calls/renewals.h"

#include <pthread.h>

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/server.h"

namespace gemmd::client {
namespace {

using ::testing::ElementsAre;

TEST(RenewalsTest, EachIsRenewedUntilItIsGoneOrRemoved) {
  std::map<std::string, int> calls;
  absl::Notification enough;
  // Called on one thread, which Stop waits for.
  Renewals renewals(absl::Milliseconds(4), [&](const std::string& id, Renewals::Done done) {
    if (id == "stays" && calls[id] == 5) enough.Notify();
    ++calls[id];
    done(id == "gone" ? absl::NotFoundError("") : absl::OkStatus());
  });
  for (const char* id : {"gone", "removed", "stays"}) renewals.Add(id);
  renewals.Remove("removed");
  enough.WaitForNotification();
  renewals.Stop();
  EXPECT_LE(calls["removed"], 1) << "a beat may have been under way";
  EXPECT_EQ(calls["gone"], 1);
}

TEST(RenewalsTest, AServerThatDoesNotAnswerIsAskedForOneMatrixABeatEachInItsTurn) {
  std::vector<std::string> calls;
  absl::Notification enough;
  Renewals renewals(absl::Milliseconds(4), [&](const std::string& id, Renewals::Done done) {
    calls.push_back(id);
    if (calls.size() == 4) enough.Notify();
    done(absl::UnavailableError(""));
  });
  renewals.Add("a");
  renewals.Add("b");
  enough.WaitForNotification();
  renewals.Stop();
  for (size_t i = 2; i < calls.size(); ++i) EXPECT_NE(calls[i], calls[i - 1]) << i;
}

TEST(RenewalsTest, OneThatIsRefusedIsNotForgotten) {
  std::map<std::string, int> calls;
  absl::Notification enough;
  Renewals renewals(absl::Milliseconds(4), [&](const std::string& id, Renewals::Done done) {
    if (++calls[id] == 3) enough.Notify();
    done(absl::ResourceExhaustedError("streams: 4 of 4"));
  });
  renewals.Add("a");
  enough.WaitForNotification();
  renewals.Stop();
}

TEST(RenewalsTest, SeveralAreUnderWayAtATimeAndNoMore) {
  std::mutex mutex;
  std::vector<Renewals::Done> under_way;  // under mutex, as `over`
  bool over = false;
  absl::Notification full;
  Renewals renewals(absl::Milliseconds(4), [&](const std::string&, Renewals::Done done) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!over) {
      under_way.push_back(std::move(done));
      if (under_way.size() == Renewals::kAtOnce) full.Notify();
      return;
    }
    lock.unlock();
    done(absl::CancelledError(""));
  });
  for (int i = 0; i < 3 * Renewals::kAtOnce; ++i) renewals.Add(std::to_string(i));
  full.WaitForNotification();
  {
    std::lock_guard<std::mutex> lock(mutex);
    over = true;
  }
  EXPECT_EQ(under_way.size(), Renewals::kAtOnce);
  for (const Renewals::Done& done : under_way) done(absl::OkStatus());
  renewals.Stop();
}

TEST(RenewalsTest, WithoutAThreadAMatrixIsAddedAndTheNextOneAsksAgain) {
  pthread_attr_t usual;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  pthread_attr_t huge;
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 48), 0);
  std::map<std::string, int> calls;
  absl::Notification both;
  Renewals renewals(absl::Milliseconds(4), [&](const std::string& id, Renewals::Done done) {
    ++calls[id];
    if (calls.size() == 2 && !both.HasBeenNotified()) both.Notify();
    done(absl::OkStatus());
  });
  // No thread can have a stack so large.
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  EXPECT_THROW(std::thread([] {}), std::system_error);
  EXPECT_NO_THROW(renewals.Add("a"));
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  renewals.Add("b");
  both.WaitForNotification();
  renewals.Stop();
}

TEST(RenewalsTest, WithoutATimeToLiveThereIsNothingToDo) {
  Renewals renewals(absl::ZeroDuration(),
                    [](const std::string&, const Renewals::Done&) { ADD_FAILURE(); });
  renewals.Add("a");
}

TEST(RenewalsServerTest, WhatAClientHasLeftBehindExpiresAndWhatItHoldsStays) {
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.metrics_address = "";
  options.engine.devices = "host";
  options.engine.device_memory_bytes = 256 * gemmd::kMiB;
  options.engine.max_queue_wait = absl::Hours(1);
  options.engine.unnamed_ttl = absl::Seconds(3);
  const auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto connect = [&] { return Client::Connect({.address = (*server)->address()}); };
  const auto client = connect();
  ASSERT_TRUE(client.ok()) << client.status();
  const Generated noise = {.shape = {.rows = 8, .cols = 8, .dtype = kF32}};
  const auto held = (*client)->PutGenerated(noise);
  ASSERT_TRUE(held.ok()) << held.status();
  auto product =
      (*client)->Multiply({.a = noise, .b = noise, .result = {.fetch = false, .keep = Keep{}}});
  ASSERT_TRUE(product.ok()) << product.status();
  ASSERT_TRUE((*connect())->PutGenerated(noise).ok());
  const auto left = [&] {
    std::vector<std::string> ids;
    const auto matrices = (*client)->ListMatrices();
    for (const MatrixInfo& matrix : *matrices) ids.push_back(matrix.id());
    return ids;
  };
  while (left().size() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_THAT(left(), ElementsAre(held->id(), product->kept->id()));
  EXPECT_EQ((*client)->GetServerInfo()->load().matrices_expired(), 1u);
}

}  // namespace
}  // namespace gemmd::client
