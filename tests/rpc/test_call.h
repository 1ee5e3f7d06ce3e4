// A call without gRPC: the test takes the reactor's place.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/benchmark/benchmarks.h"
#include "server/rpc/life/call_life.h"
#include "tests/telemetry/fake_engine.h"

namespace gemmd {

inline grpc::ByteBuffer Message(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

inline std::string Text(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

// Records the operations that CallLife starts. Its reactions are public.
class TestCall final : public CallLife {
 public:
  TestCall(ServiceContext& service, grpc::CallbackServerContext* call)
      : CallLife(service, call, "Test") {}

  using CallLife::Advance;
  using CallLife::BeginDrain;
  using CallLife::Cancelled;
  using CallLife::Charge;
  using CallLife::Ended;
  using CallLife::GoLive;
  using CallLife::GoLiveAtItsRate;
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
  // How long it has waited for its client to send.
  absl::Duration waited() {
    MutexLock lock(mutex_);
    return payload_clock_.Elapsed();
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
  // Callbacks that the call got.
  int messages = 0;
  bool input_ended = false;
  bool was_cancelled = false;
  bool held_back = false;
  bool while_draining = false;
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
  bool begins_while_draining() const override { return while_draining; }
  void OnHeldBack(bool held) override { held_back = held; }

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
  CallerTraffic traffic_{[](absl::string_view) {}};
  LiveCalls live_calls_;
  std::unique_ptr<Identity> identity_ = *Identity::Create({}, nullptr);
  std::vector<RpcEnd> ends_;
  ServiceContext service_{.engine = engine_,
                          .benchmarks = benchmarks_,
                          .live_calls = live_calls_,
                          .traffic = traffic_,
                          .identity = *identity_,
                          .limits = {},
                          .version = "",
                          .commit = "",
                          .started = {},
                          .on_end = [this](const RpcEnd& end) { ends_.push_back(end); }};
  grpc::CallbackServerContext context_;
  std::shared_ptr<TestCall> call_ = std::make_shared<TestCall>(service_, &context_);
};

}  // namespace gemmd
