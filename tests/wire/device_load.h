// Products that load a device and not the wire: on resident operands, with many in flight.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "tests/wire/wire_bench.h"

namespace gemmd::wire {

// One who calls: a connection of its own, with a token where one is given.
struct WireCaller {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<gemm::v1::GemmService::Stub> stub;
};
absl::StatusOr<WireCaller> ConnectCaller(const CallerOptions& options);

// `batch` products of extent x inner by inner x extent, in f32.
struct ResidentSizes {
  int64_t extent = 0;
  int64_t inner = 0;  // 0: the extent, so that each is a cube
  int64_t batch = 1;
};

// A job of products whose operands are two resident matrices, which live as long as this.
class ResidentProduct {
 public:
  static absl::StatusOr<std::unique_ptr<ResidentProduct>> Put(WireCaller& caller,
                                                              ResidentSizes sizes,
                                                              bool keep_result);
  ~ResidentProduct();
  ResidentProduct(const ResidentProduct&) = delete;
  ResidentProduct& operator=(const ResidentProduct&) = delete;

  const gemm::v1::Product& product() const { return product_; }
  double flops() const { return flops_; }  // of the job

 private:
  explicit ResidentProduct(WireCaller& caller) : caller_(caller) {}

  WireCaller& caller_;
  gemm::v1::Product product_;
  double flops_ = 0;
  std::vector<std::string> ids_;
};

// Keeps `in_flight` jobs of a product under way, on one stream, until it is destroyed.
class StreamLoad {
 public:
  StreamLoad(WireCaller& caller, const gemm::v1::Product& product, int in_flight);
  // Ends the jobs under way.
  ~StreamLoad();
  StreamLoad(const StreamLoad&) = delete;
  StreamLoad& operator=(const StreamLoad&) = delete;

  uint64_t done() const { return done_.load(); }
  // Jobs that ended with an error, and the first of them.
  uint64_t failed() const { return failed_.load(); }
  std::string first_error() const;

 private:
  void Write();
  void Read();

  const gemm::v1::Product& product_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<gemm::v1::MultiplyRequest, gemm::v1::MultiplyResponse>>
      stream_;
  std::atomic<uint64_t> done_{0};
  std::atomic<uint64_t> failed_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int to_send_;
  bool stopping_ = false;
  std::string first_error_;
  std::thread writer_;
  std::thread reader_;
};

}  // namespace gemmd::wire
