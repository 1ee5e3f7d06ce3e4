#include "tests/rpc/test_server.h"

#include <ostream>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"

namespace gemmd {

namespace v1 = gemm::v1;

// The server's defaults, except these.
ServerOptions SmallServer() {
  ServerOptions options;
  options.address = "127.0.0.1:0";  // programs of tests run side by side
  options.metrics_address = "";     // the same; tests of metrics have their own
  EngineOptions& engine = options.engine;
  engine.devices = "host";                  // also where there is a GPU
  engine.device_memory_bytes = 32 * kMiB;   // a test can fill it
  engine.staging_bytes = 2 * kMiB;          // the same
  engine.staging_block_bytes = 128 * kKiB;  // a payload of some hundred KiB has many
  engine.copy_threads = 2;                  // however many cores there are
  engine.max_queue_wait = absl::Hours(1);   // no test but its own depends on speed
  options.rpc.max_message_bytes = kMiB;     // a test can send a message that is too large
  options.rpc.max_jobs_per_stream = 16;     // a test can send one too many
  return options;
}

std::ostream& operator<<(std::ostream& out, const Held& held) {
  return out << "jobs " << held.jobs << ", queued " << held.queued_jobs << ", admitted bytes "
             << held.admitted_bytes << ", matrices " << held.matrices << ", memory "
             << held.memory_bytes << ", staging " << held.staging_bytes;
}

RpcTest::RpcTest(const ServerOptions& options) {
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  stub_ = v1::GemmService::NewStub(channel_);
  before_ = HeldNow();
}

void RpcTest::TearDown() { ExpectHolds(before_); }

Held RpcTest::HeldNow() const {
  const EngineStats stats = server_->engine().Stats();
  Held held{.jobs = stats.jobs.used,
            .queued_jobs = stats.queued_jobs.used,
            .admitted_bytes = stats.admitted_bytes.used,
            .matrices = stats.matrices.used};
  for (const DeviceStats& device : stats.devices) {
    held.memory_bytes += device.memory_bytes.used;
    held.staging_bytes += device.upload_staging_bytes.used + device.download_staging_bytes.used;
  }
  return held;
}

void RpcTest::ExpectHolds(const Held& before) const {
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (!(HeldNow() == before) && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(HeldNow(), before);
}

void RpcTest::AwaitMatrices(int64_t matrices) const {
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (HeldNow().matrices != matrices && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(HeldNow().matrices, matrices);
}

std::string RpcTest::Put(const HostMatrix& matrix, const std::string& name) {
  constexpr size_t kChunk = 100'000;
  grpc::ClientContext context;
  v1::PutMatrixResponse response;
  auto call = stub_->PutMatrix(&context, &response);
  v1::PutMatrixRequest request;
  *request.mutable_header()->mutable_shape() = ProtoShape(matrix.shape);
  request.mutable_header()->mutable_keep()->set_name(name);
  call->Write(request);
  for (size_t offset = 0; offset < matrix.bytes.size(); offset += kChunk) {
    request.mutable_chunk()->set_offset(offset);
    request.mutable_chunk()->set_data(matrix.bytes.substr(offset, kChunk));
    call->Write(request);
  }
  call->WritesDone();
  const grpc::Status status = call->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(response.complete());
  EXPECT_EQ(response.bytes_received(), matrix.bytes.size());
  return response.matrix().id();
}

std::string RpcTest::Get(const std::string& id) {
  grpc::ClientContext context;
  v1::GetMatrixRequest request;
  request.mutable_matrix()->set_id(id);
  auto call = stub_->GetMatrix(&context, request);
  v1::GetMatrixResponse response;
  std::string bytes;
  while (call->Read(&response)) {
    if (response.has_matrix()) continue;
    EXPECT_EQ(response.offset(), bytes.size());
    bytes += response.data();
  }
  const grpc::Status status = call->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return bytes;
}

void RpcTest::Delete(const std::string& id) {
  grpc::ClientContext context;
  v1::DeleteMatrixRequest request;
  v1::DeleteMatrixResponse response;
  request.mutable_matrix()->set_id(id);
  const grpc::Status status = stub_->DeleteMatrix(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

JobOutcome RpcTest::Multiply(const v1::Product& product, const HostProduct& operands) {
  StreamClient stream(*stub_);
  stream.Header(1, product);
  if (product.a().has_payload()) stream.Payload(1, v1::OPERAND_ROLE_A, operands.a);
  if (product.b().has_payload()) stream.Payload(1, v1::OPERAND_ROLE_B, operands.b);
  if (product.c().has_payload()) stream.Payload(1, v1::OPERAND_ROLE_C, *operands.c);
  if (product.bias().has_payload()) stream.Payload(1, v1::OPERAND_ROLE_BIAS, *operands.bias);
  stream.HalfClose();
  JobOutcome outcome = stream.Wait(1);
  const grpc::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return outcome;
}

}  // namespace gemmd
