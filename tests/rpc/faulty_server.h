// The server's program with devices that fail on purpose.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/create_channel.h"
#include "tests/net/loopback.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {

// With these --devices and this GEMMD_FAULTS (tests/engine/faulty_device.h).
class FaultyServer {
 public:
  FaultyServer(const std::string& devices, const std::string& faults) {
    std::vector<std::string> arguments = HostServerFlags();
    arguments[0] = "--devices=" + devices;
    // Above what a product takes on a busy machine, which would lose a device that works.
    arguments.insert(arguments.end(), {"--job-timeout=5s", "--warm-up=off"});
    setenv("GEMMD_FAULTS", faults.c_str(), 1);
    // Where the test was carried to another machine, the program is elsewhere.
    const char* const program = getenv("FAULTY_GEMMD");
    process_ = std::make_unique<GemmdProcess>(arguments, nullptr,
                                              program == nullptr ? FAULTY_GEMMD_BINARY : program);
    unsetenv("GEMMD_FAULTS");
    at_ = process_->AwaitServing();
    stub_ = gemm::v1::GemmService::NewStub(
        grpc::CreateChannel(at_.address, grpc::InsecureChannelCredentials()));
  }

  // How one product of its own call ends.
  JobOutcome Multiply() {
    gemm::v1::Product product;
    *product.mutable_a() = GeneratedOperand({32, 32, gemm::DType::kF32}, 1);
    *product.mutable_b() = GeneratedOperand({32, 32, gemm::DType::kF32}, 2);
    StreamClient stream(*stub_, absl::Seconds(120));
    stream.Header(1, product);
    return stream.Wait(1);
  }
  std::string Page(const std::string& path) { return HttpGet(at_.metrics, path); }
  GemmdProcess& process() { return *process_; }

 private:
  std::unique_ptr<GemmdProcess> process_;
  ServingAt at_;
  std::unique_ptr<gemm::v1::GemmService::Stub> stub_;
};

inline constexpr int kUnavailable = static_cast<int>(grpc::StatusCode::UNAVAILABLE);

}  // namespace gemmd
