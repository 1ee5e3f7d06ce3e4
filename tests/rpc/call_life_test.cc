// The promises of CallLife, without gRPC: the test takes the reactor's place.
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
#include "tests/rpc/test_call.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

TEST_F(CallLifeTest, TellsItsConnectionWhatItReads) {
  const auto read = std::make_shared<std::atomic<int64_t>>(0);
  service_.on_call = [&](const std::string&) { return read; };
  call_->GoLive();
  EXPECT_EQ(*read, 0);
  call_->WantReads(true);
  call_->ReadEnds(true);
  call_->ReadEnds(true);
  EXPECT_EQ(*read, 2 * 64) << "two messages without bytes";
  call_->ReadEnds(false);
  EXPECT_EQ(*read, 2 * 64) << "the end is none";
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
