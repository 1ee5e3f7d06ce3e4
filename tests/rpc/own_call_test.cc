// The server's call to itself: when it is made, and what its answer means.
#include "server/listening/own_call.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proto/keep_grpc.h"
#include "server/base/mutex.h"
#include "server/floods/call_counting.h"
#include "server/floods/unfinished_calls.h"
#include "tests/net/loopback.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

// Answers every call when the test says so.
class HeldAnswers final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    auto* const reactor = new Reactor;
    MutexLock lock(mutex_);
    ++calls_;
    if (answer_.has_value()) {
      reactor->End(*answer_);
    } else {
      held_.push_back(reactor);
    }
    changed_.NotifyAll();
    return reactor;
  }

  void AwaitCalls(int calls) {
    MutexLock lock(mutex_);
    while (calls_ < calls) changed_.Wait(mutex_);
  }
  int calls() {
    MutexLock lock(mutex_);
    return calls_;
  }
  // The answer to calls that wait and to later ones; nullopt: they wait.
  void Answer(std::optional<grpc::Status> status) {
    MutexLock lock(mutex_);
    answer_ = std::move(status);
    if (!answer_.has_value()) return;
    for (Reactor* const reactor : std::exchange(held_, {})) reactor->End(*answer_);
  }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    void End(const grpc::Status& status) {
      if (!status.ok()) return Finish(status);
      StartWriteAndFinish(&nothing_, {}, status);
    }
    void OnDone() override { delete this; }

   private:
    const grpc::Slice no_bytes_;
    const grpc::ByteBuffer nothing_{&no_bytes_, 1};
  };

  Mutex mutex_;
  CondVar changed_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<grpc::Status> answer_ ABSL_GUARDED_BY(mutex_);
  std::vector<Reactor*> held_ ABSL_GUARDED_BY(mutex_);
};

class OwnCallTest : public testing::Test {
 protected:
  OwnCallTest() {
    EXPECT_TRUE(KeepGrpc());
    grpc::EnableDefaultHealthCheckService(false);  // the test answers instead
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&answers_);
    server_ = builder.BuildAndStart();
  }
  ~OwnCallTest() override {
    answers_.Answer(grpc::Status::OK);
    server_->Shutdown();
  }

  // Whether all of these looks say that calls are answered.
  static bool All(OwnCall& call, int looks) {
    bool all = true;
    for (int i = 0; i < looks; ++i) all &= call.Look();
    return all;
  }

  HeldAnswers answers_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(OwnCallTest, ACallWithoutAnAnswerIsSeenAndSoIsItsAnswer) {
  OwnCall call(*server_);
  EXPECT_TRUE(All(call, OwnCall::kLooksBetween - 1));
  EXPECT_EQ(answers_.calls(), 0);
  EXPECT_TRUE(call.Look());
  answers_.AwaitCalls(1);
  EXPECT_TRUE(All(call, OwnCall::kLooksToAnswer - 1));
  EXPECT_FALSE(call.Look());
  EXPECT_FALSE(All(call, 100));
  EXPECT_EQ(answers_.calls(), 1) << "one at a time";

  answers_.Answer(grpc::Status::OK);
  while (!call.Look()) {
  }
  EXPECT_TRUE(All(call, OwnCall::kLooksBetween - 1));
  EXPECT_EQ(answers_.calls(), 1);
  answers_.Answer(std::nullopt);
  EXPECT_TRUE(call.Look());
  answers_.AwaitCalls(2);
}

TEST_F(OwnCallTest, AnErrorIsNoAnswer) {
  answers_.Answer(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no"));
  OwnCall call(*server_);
  EXPECT_FALSE(call.Wait(absl::Minutes(1)));
  while (call.Look()) {
  }
  answers_.AwaitCalls(2);
  answers_.Answer(grpc::Status::OK);
  while (!call.Look()) {
  }
  EXPECT_TRUE(call.Wait(absl::Minutes(1)));
}

TEST_F(OwnCallTest, MayEndBeforeItsAnswer) {
  {
    OwnCall call(*server_);
    EXPECT_FALSE(call.Wait(absl::ZeroDuration()));
  }
  answers_.AwaitCalls(1);
}

// Its connections do not count as those of a client, who has a bound.
TEST(OwnCallCounts, ManyAreNoFlood) {
  ASSERT_TRUE(KeepGrpc());
  int excesses = 0;
  UnfinishedCalls unfinished(
      4, [&](const std::string&) { ++excesses; }, [](const std::string&, const std::string&) {});
  grpc::EnableDefaultHealthCheckService(true);
  gemm::v1::GemmService::CallbackService service;  // gRPC starts no server without one
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  CountEnds(unfinished, builder);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  OwnCall call(*server);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(call.Wait(absl::Minutes(1))) << i;
  server->Shutdown();
  EXPECT_EQ(excesses, 0);
  EXPECT_EQ(unfinished.connections(), 0);
}

class ServedCallsTest : public RpcTest {
 protected:
  ServedCallsTest() : RpcTest(WithPages()) {}

  static ServerOptions WithPages() {
    ServerOptions options = SmallServer();
    options.metrics_address = "127.0.0.1:0";
    return options;
  }

  // Looks until the page says so.
  void LookUntil(const std::string& page) {
    for (int looks = 0; looks < 100'000; ++looks) {
      if (absl::StrContains(HttpGet(server_->metrics_address(), "/readyz"), page)) return;
      ASSERT_TRUE(server_->CheckHealth().ok()) << "a call without an answer ends no server";
    }
    FAIL() << "never: " << page;
  }
  Serving Health() {
    std::string response;
    EXPECT_TRUE(
        CallUnary(channel_, "/grpc.health.v1.Health/Check", HealthRequest(""), response).ok());
    return ParseHealth(response);
  }
};

TEST_F(ServedCallsTest, AServerWhoseCallsHangIsNotReady) {
  LookUntil(" 200 ");
  // Callbacks that wait hold gRPC's threads: those of the server are the same.
  constexpr int kMoreThanThreads = 32;
  struct Question {
    grpc::ClientContext context;
    v1::GetServerInfoRequest request;
    v1::GetServerInfoResponse response;
  };
  std::vector<Question> questions(kMoreThanThreads);
  Mutex mutex;
  CondVar changed;
  bool release = false;
  int waiting = kMoreThanThreads;
  for (Question& each : questions) {
    stub_->async()->GetServerInfo(&each.context, &each.request, &each.response,
                                  [&](const grpc::Status&) {
                                    MutexLock lock(mutex);
                                    while (!release) changed.Wait(mutex);
                                    --waiting;
                                    changed.NotifyAll();
                                  });
  }
  LookUntil("calls are not answered");
  {
    MutexLock lock(mutex);
    release = true;
    changed.NotifyAll();
    while (waiting > 0) changed.Wait(mutex);
  }
  LookUntil(" 200 ");
  EXPECT_EQ(Health(), Serving::kServing);
}

}  // namespace
}  // namespace gemmd
