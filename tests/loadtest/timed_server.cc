// A server whose products take a time that is known, and a bare client beside gemmctl loadtest.
//
//   timed_server serve --listen 127.0.0.1:50070 --service-ms 20 --in-turn
//   timed_server calls --address 127.0.0.1:50070 --concurrency 4 --seconds 5
//
// Times of service are waits by the steady clock, so a busy processor does not lengthen them, but
// for the wake-up at their end.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "gemm/v1/gemm.grpc.pb.h"

namespace {

namespace v1 = gemm::v1;
using Time = std::chrono::steady_clock::time_point;
using Seconds = std::chrono::duration<double>;

struct ServeOptions {
  std::string listen = "127.0.0.1:0";
  // Request i takes entry i modulo their number.
  std::vector<double> service_ms = {0};
  // One product after the other: the capacity is one over the service time.
  bool in_turn = false;
};

class TimedServer : public v1::GemmService::Service {
 public:
  explicit TimedServer(const ServeOptions& options) : options_(options) {}

  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    response->set_version("timed");
    response->mutable_limits()->set_max_message_bytes(4 << 20);
    response->mutable_limits()->set_chunk_bytes(1 << 20);
    return grpc::Status::OK;
  }

  grpc::Status MultiplyUnary(grpc::ServerContext*, const v1::MultiplyUnaryRequest* request,
                             v1::MultiplyUnaryResponse* response) override {
    const Time end = End();
    const auto& a = request->product().a().shape();
    const auto& b = request->product().b().shape();
    auto& report = *response->mutable_report();
    report.set_kernel("timed");
    report.set_m(a.rows());
    report.set_n(b.cols());
    report.set_k(a.cols());
    report.set_compute(v1::COMPUTE_MODE_F32);
    auto& shape = *report.mutable_result_shape();
    shape.set_rows(a.rows());
    shape.set_cols(b.cols());
    shape.set_dtype(v1::DATA_TYPE_F32);
    shape.set_layout(v1::LAYOUT_ROW_MAJOR);
    response->set_data(std::string(static_cast<size_t>(a.rows() * b.cols()) * 4, '\0'));
    std::this_thread::sleep_until(end);
    return grpc::Status::OK;
  }

 private:
  // When the product that comes now is over.
  Time End() {
    const std::lock_guard lock(mutex_);
    const Time now = std::chrono::steady_clock::now();
    const double milliseconds = options_.service_ms[next_++ % options_.service_ms.size()];
    const auto service = std::chrono::duration_cast<Time::duration>(Seconds(milliseconds / 1000));
    if (!options_.in_turn) return now + service;
    free_ = std::max(free_, now) + service;
    return free_;
  }

  const ServeOptions options_;
  std::mutex mutex_;
  uint64_t next_ = 0;
  Time free_;
};

int Serve(const ServeOptions& options) {
  TimedServer service(options);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("%d\n", port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

struct CallOptions {
  std::string address;
  int concurrency = 4;
  double seconds = 5;
  int extent = 8;
};

// Closed loops of the bare stub, a thread and a connection each. Prints calls per second.
int CallAgain(const CallOptions& options) {
  v1::MultiplyUnaryRequest request;
  const size_t bytes =
      static_cast<size_t>(options.extent) * static_cast<size_t>(options.extent) * 4;
  for (v1::Operand* operand :
       {request.mutable_product()->mutable_a(), request.mutable_product()->mutable_b()}) {
    auto& shape = *operand->mutable_shape();
    shape.set_rows(options.extent);
    shape.set_cols(options.extent);
    shape.set_dtype(v1::DATA_TYPE_F32);
    shape.set_layout(v1::LAYOUT_ROW_MAJOR);
    operand->set_data(std::string(bytes, '\0'));
  }
  std::atomic<uint64_t> calls{0}, failed{0};
  std::vector<std::thread> threads;
  const Time begin = std::chrono::steady_clock::now();
  const Time end = begin + std::chrono::duration_cast<Time::duration>(Seconds(options.seconds));
  for (int i = 0; i < options.concurrency; ++i) {
    threads.emplace_back([&] {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      const auto stub = v1::GemmService::NewStub(grpc::CreateCustomChannel(
          options.address, grpc::InsecureChannelCredentials(), arguments));
      v1::MultiplyUnaryResponse response;
      while (std::chrono::steady_clock::now() < end) {
        grpc::ClientContext context;
        (stub->MultiplyUnary(&context, request, &response).ok() ? calls : failed).fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Seconds took = std::chrono::steady_clock::now() - begin;
  std::printf("%.1f\n", static_cast<double>(calls.load()) / took.count());
  return failed.load() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A server of known times, and a bare client");
  app.require_subcommand(1);
  ServeOptions serve;
  CLI::App* const server = app.add_subcommand("serve", "Serve, and print the port");
  server->add_option("--listen", serve.listen, "The address");
  server->add_option("--service-ms", serve.service_ms, "The times of products, in turn")
      ->delimiter(',');
  server->add_flag("--in-turn", serve.in_turn, "One product after the other");
  CallOptions calls;
  CLI::App* const client = app.add_subcommand("calls", "Call again and again, and print calls/s");
  client->add_option("--address", calls.address, "The server")->required();
  client->add_option("--concurrency", calls.concurrency, "Calls under way");
  client->add_option("--seconds", calls.seconds, "How long");
  client->add_option("--extent", calls.extent, "The edge of the matrices");
  CLI11_PARSE(app, argc, argv);
  return server->parsed() ? Serve(serve) : CallAgain(calls);
}
