// A Multiply stream as a test drives it: message by message, blocking.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/client_context.h"
#include "tests/rpc/host_matrix.h"

namespace gemmd {

// How a job ended, with what came before.
struct JobOutcome {
  std::string data;
  std::optional<gemm::v1::MultiplyResult> result;
  std::optional<gemm::v1::JobError> error;

  bool ended() const { return result.has_value() || error.has_value(); }
  int code() const { return error.has_value() ? error->code() : 0; }
};

class StreamClient {
 public:
  explicit StreamClient(gemm::v1::GemmService::Stub& stub,
                        std::optional<absl::Duration> timeout = std::nullopt);

  void Header(uint64_t job_id, const gemm::v1::Product& product);
  void Chunk(uint64_t job_id, gemm::v1::OperandRole role, uint64_t offset, const std::string& data);
  // All of an operand, or bytes [begin, end) of it, in chunks of `chunk_bytes`.
  void Payload(uint64_t job_id, gemm::v1::OperandRole role, const HostMatrix& matrix,
               size_t chunk_bytes = 50'000);
  void Cancel(uint64_t job_id);
  bool Write(const gemm::v1::MultiplyRequest& request) { return stream_->Write(request); }
  void HalfClose() { stream_->WritesDone(); }

  // Reads until the job has ended, or the stream has: then not ended().
  JobOutcome Wait(uint64_t job_id);
  // Reads one message. False at the end of the stream.
  bool ReadOne();
  // Reads the rest, and returns the call's status.
  grpc::Status Finish();
  grpc::ClientContext& context() { return context_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<gemm::v1::MultiplyRequest, gemm::v1::MultiplyResponse>>
      stream_;
  std::map<uint64_t, JobOutcome> jobs_;
};

}  // namespace gemmd
