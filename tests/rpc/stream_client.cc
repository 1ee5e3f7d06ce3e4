#include "tests/rpc/stream_client.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace gemmd {

namespace v1 = gemm::v1;

StreamClient::StreamClient(v1::GemmService::Stub& stub, std::optional<absl::Duration> timeout) {
  if (timeout.has_value()) context_.set_deadline(absl::ToChronoTime(absl::Now() + *timeout));
  stream_ = stub.Multiply(&context_);
}

void StreamClient::Header(uint64_t job_id, const v1::Product& product) {
  v1::MultiplyRequest request;
  request.mutable_header()->set_job_id(job_id);
  *request.mutable_header()->mutable_product() = product;
  Write(request);
}

void StreamClient::Chunk(uint64_t job_id, v1::OperandRole role, uint64_t offset,
                         const std::string& data) {
  v1::MultiplyRequest request;
  v1::OperandChunk& chunk = *request.mutable_chunk();
  chunk.set_job_id(job_id);
  chunk.set_operand(role);
  chunk.set_offset(offset);
  chunk.set_data(data);
  Write(request);
}

void StreamClient::Payload(uint64_t job_id, v1::OperandRole role, const HostMatrix& matrix,
                           size_t chunk_bytes) {
  for (size_t offset = 0; offset < matrix.bytes.size(); offset += chunk_bytes) {
    Chunk(job_id, role, offset, matrix.bytes.substr(offset, chunk_bytes));
  }
}

void StreamClient::Cancel(uint64_t job_id) {
  v1::MultiplyRequest request;
  request.mutable_cancel()->set_job_id(job_id);
  Write(request);
}

bool StreamClient::ReadOne() {
  v1::MultiplyResponse response;
  if (!stream_->Read(&response)) return false;
  switch (response.message_case()) {
    case v1::MultiplyResponse::kChunk: {
      JobOutcome& job = jobs_[response.chunk().job_id()];
      EXPECT_EQ(response.chunk().offset(), job.data.size()) << "result chunks come in order";
      EXPECT_FALSE(job.ended()) << "a chunk after the end of job " << response.chunk().job_id();
      job.data += response.chunk().data();
      break;
    }
    case v1::MultiplyResponse::kResult:
      jobs_[response.result().job_id()].result = response.result();
      break;
    case v1::MultiplyResponse::kError:
      jobs_[response.error().job_id()].error = response.error();
      break;
    case v1::MultiplyResponse::MESSAGE_NOT_SET:
      ADD_FAILURE() << "an empty response";
  }
  return true;
}

JobOutcome StreamClient::Wait(uint64_t job_id) {
  while (!jobs_[job_id].ended() && ReadOne()) {
  }
  return std::exchange(jobs_[job_id], JobOutcome());
}

grpc::Status StreamClient::Finish() {
  while (ReadOne()) {
  }
  return stream_->Finish();
}

}  // namespace gemmd
