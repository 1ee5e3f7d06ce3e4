#include "tests/wire/raw_channel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/generic/generic_stub.h"

namespace gemmd::wire {
namespace {

// A slice over memory that outlives the call.
grpc::Slice Borrow(absl::Span<const std::byte> bytes) {
  return grpc::Slice(const_cast<std::byte*>(bytes.data()), bytes.size(), [](void*) {});
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// PutMatrixRequest{chunk{offset, data}}: the fields before `data` in a slice of
// their own, then the data where it lies.
grpc::ByteBuffer ChunkMessage(uint64_t offset, absl::Span<const std::byte> data) {
  std::string chunk = "\x08";  // MatrixChunk.offset
  AppendVarint(offset, &chunk);
  chunk.push_back('\x7a');  // MatrixChunk.data
  AppendVarint(data.size(), &chunk);
  std::string prefix = "\x12";  // PutMatrixRequest.chunk
  AppendVarint(chunk.size() + data.size(), &prefix);
  prefix += chunk;
  const grpc::Slice slices[] = {grpc::Slice(prefix), Borrow(data)};
  return grpc::ByteBuffer(slices, 2);
}

// One PutMatrix call, step by step, on a completion queue of its own.
class RawUpload {
 public:
  explicit RawUpload(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(channel),
        call_(stub_.PrepareCall(&context_, "/gemm.v1.GemmService/PutMatrix", &queue_)) {}

  absl::StatusOr<gemm::v1::PutMatrixResponse> Run(const gemm::v1::PutMatrixHeader& header,
                                                  uint64_t begin, absl::Span<const std::byte> data,
                                                  uint64_t chunk_bytes) {
    gemm::v1::PutMatrixRequest first;
    *first.mutable_header() = header;
    call_->StartCall(nullptr);
    bool ok = Step();
    if (ok) {
      call_->Write(Serialize(first), nullptr);
      ok = Step();
    }
    for (uint64_t at = 0; ok && at < data.size(); at += chunk_bytes) {
      const auto piece = data.subspan(at, std::min<uint64_t>(chunk_bytes, data.size() - at));
      call_->Write(ChunkMessage(begin + at, piece), nullptr);
      ok = Step();
    }
    if (ok) {
      call_->WritesDone(nullptr);
      Step();
    }
    grpc::ByteBuffer answer;
    call_->Read(&answer, nullptr);
    const bool answered = Step();
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Step();
    if (!status.ok()) return FromGrpc(status);
    gemm::v1::PutMatrixResponse response;
    if (!answered || !Parse(answer, &response)) return absl::InternalError("PutMatrix: no answer");
    return response;
  }

 private:
  bool Step() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

}  // namespace

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

bool Parse(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return false;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return message->ParseFromString(bytes);
}

grpc::ByteBuffer DataMessage(uint64_t offset, absl::Span<const std::byte> data) {
  std::string prefix = "\x10";  // GetMatrixResponse.offset
  AppendVarint(offset, &prefix);
  prefix.push_back('\x7a');  // GetMatrixResponse.data
  AppendVarint(data.size(), &prefix);
  const grpc::Slice slices[] = {grpc::Slice(prefix), Borrow(data)};
  return grpc::ByteBuffer(slices, 2);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::Status DeleteMatrix(const std::shared_ptr<grpc::Channel>& channel,
                          const std::string& matrix_id) {
  grpc::ClientContext context;
  gemm::v1::DeleteMatrixRequest request;
  request.mutable_matrix()->set_id(matrix_id);
  gemm::v1::DeleteMatrixResponse response;
  return FromGrpc(
      gemm::v1::GemmService::NewStub(channel)->DeleteMatrix(&context, request, &response));
}

absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> Connect(
    const std::string& address, int count,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(10);
  for (int i = 0; i < count; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    // Without a pool of its own a channel shares its connection with the others.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels.push_back(grpc::CreateCustomChannel(address, credentials, arguments));
    if (!channels.back()->WaitForConnected(deadline)) {
      return absl::UnavailableError(absl::StrCat("no server answers at ", address));
    }
  }
  return channels;
}

absl::StatusOr<gemm::v1::PutMatrixResponse> Upload(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels, const UploadPlan& plan) {
  gemm::v1::PutMatrixHeader header;
  header.mutable_shape()->set_rows(static_cast<int64_t>(plan.data.size() / plan.row_bytes));
  header.mutable_shape()->set_cols(static_cast<int64_t>(plan.row_bytes / sizeof(float)));
  header.mutable_shape()->set_dtype(gemm::v1::DATA_TYPE_F32);
  if (channels.size() == 1) {
    return RawUpload(channels[0]).Run(header, 0, plan.data, plan.chunk_bytes);
  }
  static std::atomic<uint64_t> next{std::random_device{}()};
  header.set_upload_id(absl::StrCat("wire-bench-", next.fetch_add(1)));
  std::vector<absl::StatusOr<gemm::v1::PutMatrixResponse>> answers(channels.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < channels.size(); ++i) {
    threads.emplace_back([&, i] {
      const uint64_t begin = plan.data.size() * i / channels.size();
      const uint64_t end = plan.data.size() * (i + 1) / channels.size();
      gemm::v1::PutMatrixHeader mine = header;
      mine.mutable_range()->set_offset(begin);
      mine.mutable_range()->set_length(end - begin);
      answers[i] = RawUpload(channels[i])
                       .Run(mine, begin, plan.data.subspan(begin, end - begin), plan.chunk_bytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& answer : answers) {
    if (!answer.ok()) return answer.status();
  }
  for (const auto& answer : answers) {
    if (answer->complete()) return *answer;
  }
  return *answers[0];
}

absl::StatusOr<grpc::ByteBuffer> CallUnary(const std::shared_ptr<grpc::Channel>& channel,
                                           const std::string& method,
                                           const std::vector<absl::Span<const std::byte>>& parts) {
  std::vector<grpc::Slice> slices;
  for (const auto part : parts) slices.push_back(Borrow(part));
  const grpc::ByteBuffer request(slices.data(), slices.size());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  grpc::ByteBuffer response;
  grpc::Status status;
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return FromGrpc(status);
  return response;
}

}  // namespace gemmd::wire
