// The whole message path of Multiply and PutMatrix: gRPC over a socket, the
// reactors, the engine on a small host device. Whatever comes, the call ends,
// and nothing stays allocated.
//
// Input: one byte that picks the RPC, then messages, each after its length in
// two little-endian bytes.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/calls/raw_call.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "server/engine/engine.h"
#include "server/rpc/service.h"
#include "server/rpc/watch/caller_traffic.h"
#include "server/rpc/watch/live_calls.h"

namespace {

class Target {
 public:
  Target() {
    gemmd::EngineOptions options;
    options.devices = "host";
    options.device_memory_bytes = 16 * gemmd::kMiB;
    options.staging_bytes = 2 * gemmd::kMiB;
    options.staging_block_bytes = 128 * gemmd::kKiB;
    options.streams_per_device = 1;
    options.copy_threads = 1;
    options.max_job_bytes = gemmd::kMiB;
    options.upload_timeout = absl::Milliseconds(200);
    absl::StatusOr<std::unique_ptr<gemmd::Engine>> engine = gemmd::Engine::Create(options, nullptr);
    if (!engine.ok()) Die(engine.status().ToString());
    engine_ = *std::move(engine);
    benchmarks_ = std::make_unique<gemmd::Benchmarks>(*engine_, gemmd::BenchmarkLimits{}, nullptr);
    context_.reset(new gemmd::ServiceContext{*engine_, *benchmarks_, live_calls_, traffic_,
                                             *identity_, gemmd::RpcLimits{}, "fuzz", "",
                                             absl::Now(), [](const gemmd::RpcEnd&) {}});
    service_ = std::make_unique<gemmd::GemmService>(*context_);
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    // Not gRPC's in-process transport, which keeps 12 KiB of each call.
    const std::string address = absl::StrCat("unix-abstract:stream_fuzz.", getpid());
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) Die(absl::StrCat("cannot listen on ", address));
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }

  void Call(bool put, std::vector<std::string> messages) {
    std::promise<void> done;
    size_t next = 0;
    gemmd::client::RawCallSpec spec;
    spec.method = put ? "/gemm.v1.GemmService/PutMatrix" : "/gemm.v1.GemmService/Multiply";
    spec.deadline = absl::Now() + absl::Seconds(20);
    spec.next = [&](grpc::ByteBuffer* message) {
      if (messages.empty()) messages.emplace_back();
      grpc::Slice slice(messages[next++]);
      *message = grpc::ByteBuffer(&slice, 1);
      return next < messages.size() ? gemmd::client::NextMessage::kMore
                                    : gemmd::client::NextMessage::kLast;
    };
    spec.on_message = [](const grpc::ByteBuffer&) { return absl::OkStatus(); };
    spec.on_done = [&](absl::Status status) {
      if (status.code() == absl::StatusCode::kInternal) Die(status.ToString());
      done.set_value();
    };
    gemmd::client::RawCall::Create(std::move(spec))->Start(*stub_);
    if (done.get_future().wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      Die("the call does not end");
    }
  }

  void RequireNothingHeld() {
    const absl::StatusOr<gemmd::MatrixPage> page = engine_->ListMatrices({.name_prefix = ""});
    for (const gemmd::MatrixRecord& matrix : page->matrices) {
      (void)engine_->DeleteMatrix({matrix.id, ""});
    }
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (Held()) {
      if (absl::Now() > deadline) Die("something stays allocated");
      absl::SleepFor(absl::Microseconds(50));
    }
  }

 private:
  static void Die(const std::string& why) {
    std::fprintf(stderr, "stream_fuzz: %s\n", why.c_str());
    std::abort();
  }
  bool Held() const {
    const gemmd::EngineStats stats = engine_->Stats();
    const gemmd::DeviceStats& device = stats.devices[0];
    return stats.jobs.used + stats.admitted_bytes.used + stats.matrices.used +
               device.memory_bytes.used + device.upload_staging_bytes.used +
               device.download_staging_bytes.used !=
           0;
  }

  std::unique_ptr<gemmd::Engine> engine_;
  gemmd::LiveCalls live_calls_;
  gemmd::CallerTraffic traffic_{[](absl::string_view) {}};
  std::unique_ptr<gemmd::Identity> identity_ = *gemmd::Identity::Create({}, nullptr);
  std::unique_ptr<gemmd::Benchmarks> benchmarks_;
  std::unique_ptr<gemmd::ServiceContext> context_;
  std::unique_ptr<gemmd::GemmService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Lives as long as the process: gRPC's own threads outlast main's statics.
  static Target* const target = new Target;
  if (size == 0) return 0;
  std::vector<std::string> messages;
  size_t at = 1;
  while (at + 2 <= size && messages.size() < 64) {
    const size_t length = std::min<size_t>(data[at] + 256u * data[at + 1], size - at - 2);
    messages.emplace_back(reinterpret_cast<const char*>(data) + at + 2, length);
    at += 2 + length;
  }
  target->Call(/*put=*/data[0] % 2 == 1, std::move(messages));
  target->RequireNothingHeld();
  return 0;
}
