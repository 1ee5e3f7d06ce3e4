// What CallLife promises, without gRPC: the test takes the reactor's place.
#include "server/rpc/life/call_life.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/benchmark/benchmarks.h"
#include "tests/telemetry/fake_engine.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

grpc::ByteBuffer Message(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Text(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

// Records what the life does to gRPC. Its reactions are public.
class TestCall final : public CallLife {
 public:
  TestCall(ServiceContext& service, grpc::CallbackServerContext* call)
      : CallLife(service, call, "Test") {}

  using CallLife::Advance;
  using CallLife::Cancelled;
  using CallLife::Ended;
  using CallLife::GoLive;
  using CallLife::ReadEnds;
  using CallLife::ReportEnd;
  using CallLife::Send;
  using CallLife::WriteEnds;

  void WorkEnds(absl::Status status) {
    {
      MutexLock lock(mutex_);
      outcome_ = std::move(status);
    }
    Advance();
  }
  void WantReads(bool want) {
    {
      MutexLock lock(mutex_);
      want_reads_ = want;
    }
    Advance();
  }

  // One entry for each operation.
  int reads = 0;
  std::vector<std::string> written;
  std::vector<grpc::Status> finished;
  // What the call heard.
  int messages = 0;
  bool input_ended = false;
  bool was_cancelled = false;
  std::function<void()> in_message = [] {};
  std::function<void()> in_write = [] {};

 private:
  bool WantsRead() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return want_reads_; }
  void OnMessage(grpc::ByteBuffer&) override {
    ++messages;
    in_message();
  }
  void OnInputEnd() override { input_ended = true; }
  void OnCancelled() override { was_cancelled = true; }

  void GrpcRead(grpc::ByteBuffer*) override { ++reads; }
  void GrpcWrite(const grpc::ByteBuffer* message) override {
    written.push_back(Text(*message));
    in_write();
  }
  GrpcFinish FinishFunction() const override {
    return [](CallLife& call, grpc::Status status) {
      static_cast<TestCall&>(call).finished.push_back(std::move(status));
    };
  }

  bool want_reads_ ABSL_GUARDED_BY(mutex_) = false;
};

class CallLifeTest : public testing::Test {
 protected:
  FakeEngine engine_{EngineStats{}};
  Benchmarks benchmarks_{engine_, BenchmarkLimits{}, nullptr};
  LiveCalls live_calls_;
  std::unique_ptr<Identity> identity_ = *Identity::Create({}, nullptr);
  std::vector<RpcEnd> ends_;
  ServiceContext service_{.engine = engine_,
                          .benchmarks = benchmarks_,
                          .live_calls = live_calls_,
                          .identity = *identity_,
                          .limits = {},
                          .version = "",
                          .commit = "",
                          .started = {},
                          .on_end = [this](const RpcEnd& end) { ends_.push_back(end); }};
  grpc::CallbackServerContext context_;
  std::shared_ptr<TestCall> call_ = std::make_shared<TestCall>(service_, &context_);
};

TEST_F(CallLifeTest, ReadsOneMessageAtATime) {
  call_->GoLive();
  EXPECT_EQ(call_->reads, 0) << "the call does not want any";
  call_->WantReads(true);
  call_->Advance();
  EXPECT_EQ(call_->reads, 1);
  call_->in_message = [this] {
    call_->Advance();
    EXPECT_EQ(call_->reads, 1) << "the message is not handled yet";
  };
  call_->ReadEnds(true);
  EXPECT_EQ(call_->messages, 1);
  EXPECT_EQ(call_->reads, 2);
  call_->WantReads(false);
  call_->ReadEnds(false);
  EXPECT_TRUE(call_->input_ended);
  EXPECT_EQ(call_->messages, 1);
  EXPECT_EQ(call_->reads, 2);
}

TEST_F(CallLifeTest, WritesInOrderOneAtATime) {
  call_->GoLive();
  for (const char* text : {"a", "b", "c"}) call_->Send(Message(text));
  EXPECT_THAT(call_->written, ElementsAre("a"));
  call_->WriteEnds();
  call_->WriteEnds();
  EXPECT_THAT(call_->written, ElementsAre("a", "b", "c"));
}

TEST_F(CallLifeTest, FinishesOnceAllIsWritten) {
  call_->GoLive();
  call_->Send(Message("a"));
  call_->Send(Message("b"));
  call_->WorkEnds(absl::NotFoundError("nothing here"));
  call_->WriteEnds();
  EXPECT_THAT(call_->finished, IsEmpty()) << "b is under way";
  call_->WriteEnds();
  call_->Advance();
  ASSERT_EQ(call_->finished.size(), 1);
  EXPECT_EQ(call_->finished[0].error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(call_->finished[0].error_message(), "nothing here");
}

TEST_F(CallLifeTest, DoesNotFinishUnderItsOwnFunctions) {
  call_->GoLive([this] {
    call_->WantReads(true);
    EXPECT_EQ(call_->reads, 1);
    return absl::OkStatus();
  });
  call_->in_message = [this] {
    call_->WorkEnds(absl::OkStatus());
    EXPECT_THAT(call_->finished, IsEmpty());
  };
  call_->ReadEnds(true);
  EXPECT_EQ(call_->finished.size(), 1);
}

TEST_F(CallLifeTest, AnErrorAtTheStartIsTheOutcome) {
  call_->GoLive([] { return absl::InvalidArgumentError("m: 0"); });
  ASSERT_EQ(call_->finished.size(), 1);
  EXPECT_EQ(call_->finished[0].error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CallLifeTest, ACancelledCallReadsAndSendsNothingMore) {
  call_->GoLive();
  call_->WantReads(true);
  call_->Send(Message("a"));
  call_->Send(Message("dropped"));
  call_->Cancelled();
  EXPECT_TRUE(call_->was_cancelled);
  call_->Send(Message("dropped, too"));
  call_->WriteEnds();
  call_->ReadEnds(true);
  EXPECT_THAT(call_->written, ElementsAre("a"));
  EXPECT_EQ(call_->reads, 1);
  EXPECT_THAT(call_->finished, IsEmpty()) << "its work has not ended";
  call_->WorkEnds(absl::CancelledError("gone"));
  EXPECT_EQ(call_->finished.size(), 1);
}

TEST_F(CallLifeTest, AWriteMayCallBack) {
  call_->GoLive();
  call_->in_write = [this] {
    if (call_->written.size() == 1) call_->Send(Message("b"));
  };
  call_->Send(Message("a"));
  call_->WriteEnds();
  EXPECT_THAT(call_->written, ElementsAre("a", "b"));
}

TEST_F(CallLifeTest, ReportsItsEndOnceAndIsNoLongerLive) {
  call_->GoLive();
  call_->WorkEnds(absl::UnavailableError("draining"));
  EXPECT_THAT(ends_, IsEmpty());
  EXPECT_FALSE(live_calls_.WaitUntilNone(SteadyNow()));
  call_->Ended();
  ASSERT_EQ(ends_.size(), 1);
  EXPECT_EQ(ends_[0].method, "Test");
  EXPECT_EQ(ends_[0].code, absl::StatusCode::kUnavailable);
  EXPECT_TRUE(live_calls_.WaitUntilNone(SteadyNow()));
}

TEST_F(CallLifeTest, AnEarlyReportIsTheOnlyOne) {
  call_->GoLive([this] {
    call_->ReportEnd(absl::StatusCode::kOk);
    return absl::OkStatus();
  });
  EXPECT_EQ(ends_.size(), 1);
  call_->WorkEnds(absl::OkStatus());
  call_->Ended();
  EXPECT_EQ(ends_.size(), 1);
}

// For the thread sanitizer, too: many threads send, one ends the work, and one is gRPC.
TEST_F(CallLifeTest, ManyThreadsSendAndAllIsWrittenBeforeTheOneEnd) {
  constexpr int kSenders = 4;
  constexpr int kEach = 200;
  std::atomic<int> started{0};
  call_->in_write = [&] { ++started; };
  call_->GoLive();
  std::thread grpc([&] {
    for (int ended = 0; ended < kSenders * kEach; ++ended) {
      while (started.load() <= ended) std::this_thread::yield();
      call_->WriteEnds();
    }
  });
  std::atomic<int> running{kSenders};
  std::vector<std::thread> senders;
  for (int i = 0; i < kSenders; ++i) {
    senders.emplace_back([&, i] {
      for (int j = 0; j < kEach; ++j) call_->Send(Message(absl::StrCat(i, " ", j)));
      if (--running == 0) call_->WorkEnds(absl::OkStatus());
    });
  }
  for (std::thread& sender : senders) sender.join();
  grpc.join();
  EXPECT_EQ(call_->written.size(), kSenders * kEach);
  EXPECT_EQ(call_->finished.size(), 1);
}

}  // namespace
}  // namespace gemmd
