// A server in the test's process, on the host device and a free port.
#pragma once

#include <memory>
#include <string>

#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/channel.h"
#include "gtest/gtest.h"
#include "server/engine/engine.h"
#include "server/server.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {

// Small enough that its bounds are soon reached: 32 MiB of device memory, half
// of it for the store, 2 MiB of staging in blocks of 128 KiB.
ServerOptions SmallServer();

// Counts that must be the same before and after.
struct Held {
  int64_t jobs = 0;
  int64_t queued_jobs = 0;
  int64_t admitted_bytes = 0;
  int64_t matrices = 0;
  int64_t memory_bytes = 0;
  int64_t staging_bytes = 0;

  friend bool operator==(const Held&, const Held&) = default;
};
std::ostream& operator<<(std::ostream& out, const Held& held);

class RpcTest : public testing::Test {
 protected:
  explicit RpcTest(const ServerOptions& options = SmallServer());
  // Whatever a test did, nothing is left of it.
  void TearDown() override;

  Held HeldNow() const;
  // Waits until the server holds what `before` says: memory comes back just
  // after the answer that it belongs to.
  void ExpectHolds(const Held& before) const;
  // Waits until the server has begun an upload whose client is about to vanish:
  // a call that is cancelled sooner may begin after the test looked.
  void AwaitMatrices(int64_t matrices) const;

  // Uploads in chunks; the id of the matrix.
  std::string Put(const HostMatrix& matrix, const std::string& name = "");
  std::string Get(const std::string& id);
  void Delete(const std::string& id);

  // One product on a stream of its own, operands as the product says.
  JobOutcome Multiply(const gemm::v1::Product& product, const HostProduct& operands);

  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<gemm::v1::GemmService::Stub> stub_;
  Held before_;
};

}  // namespace gemmd
