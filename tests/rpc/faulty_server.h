// The server's program with devices that fail on purpose.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/net/loopback.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {

inline constexpr int kDataLoss = static_cast<int>(grpc::StatusCode::DATA_LOSS);
inline constexpr int kUnavailable = static_cast<int>(grpc::StatusCode::UNAVAILABLE);

// With these --devices and this GEMMD_FAULTS (tests/engine/faulty_device.h).
class FaultyServer {
 public:
  FaultyServer(const std::string& devices, const std::string& faults,
               const std::vector<std::string>& more_flags = {}) {
    std::vector<std::string> arguments = HostServerFlags();
    arguments[0] = "--devices=" + devices;
    // Longer than a product takes on a busy machine: a shorter time would lose a device that works.
    arguments.insert(arguments.end(), {"--job-timeout=5s", "--warm-up=off"});
    arguments.insert(arguments.end(), more_flags.begin(), more_flags.end());
    setenv("GEMMD_FAULTS", faults.c_str(), 1);
    // If the test was carried to another machine, the program is elsewhere.
    const char* const program = getenv("FAULTY_GEMMD");
    process_ = std::make_unique<GemmdProcess>(arguments, nullptr,
                                              program == nullptr ? FAULTY_GEMMD_BINARY : program);
    unsetenv("GEMMD_FAULTS");
    at_ = process_->AwaitServing();
    channel_ = grpc::CreateChannel(at_.address, grpc::InsecureChannelCredentials());
    stub_ = gemm::v1::GemmService::NewStub(channel_);
  }

  // Puts a matrix on a device, and returns its id.
  std::string Put(const std::string& device) {
    grpc::ClientContext context;
    gemm::v1::PutMatrixResponse response;
    const auto call = stub_->PutMatrix(&context, &response);
    gemm::v1::PutMatrixRequest request;
    const gemm::v1::Operand drawn = GeneratedOperand({32, 32, gemm::DType::kF32}, 1);
    *request.mutable_header()->mutable_shape() = drawn.shape();
    *request.mutable_header()->mutable_generator() = drawn.generator();
    request.mutable_header()->set_device(device);
    call->Write(request);
    call->WritesDone();
    const grpc::Status status = call->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.matrix().id();
  }

  // How one product of its own call ends. `matrix`: the id of its first operand.
  JobOutcome Multiply(const std::string& matrix = "") {
    gemm::v1::Product product;
    *product.mutable_a() =
        matrix.empty() ? GeneratedOperand({32, 32, gemm::DType::kF32}, 1) : ResidentOperand(matrix);
    *product.mutable_b() = GeneratedOperand({32, 32, gemm::DType::kF32}, 2);
    StreamClient stream(*stub_, absl::Seconds(120));
    stream.Header(1, product);
    return stream.Wait(1);
  }
  // How a product of a matrix of a lost device ends, once the server has dealt with the loss.
  int CodeAfterLoss(const std::string& matrix) {
    int code = kUnavailable;
    for (int i = 0; i < 1000 && code == kUnavailable; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
      code = Multiply(matrix).code();
    }
    return code;
  }
  std::string Page(const std::string& path) { return HttpGet(at_.metrics, path); }
  GemmdProcess& process() { return *process_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  gemm::v1::GemmService::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<GemmdProcess> process_;
  ServingAt at_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<gemm::v1::GemmService::Stub> stub_;
};

}  // namespace gemmd
