#include "tests/wire/baseline_server.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "tests/wire/raw_channel.h"

namespace gemmd::wire {
namespace {

using ::gemm::v1::GemmService;

class DropReactor final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  explicit DropReactor(grpc::ByteBuffer* response) : response_(response) { StartRead(&message_); }

  void OnReadDone(bool ok) override {
    if (ok) {
      message_.Clear();
      StartRead(&message_);
      return;
    }
    grpc::Slice empty;
    *response_ = grpc::ByteBuffer(&empty, 1);
    Finish(grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer* const response_;
  grpc::ByteBuffer message_;
};

// Sends `data` in messages of up to `chunk_bytes`, as gemmd does: the first has none.
class SendReactor final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  SendReactor(uint64_t offset, absl::Span<const std::byte> data, uint64_t chunk_bytes)
      : offset_(offset), left_(data), chunk_bytes_(chunk_bytes) {
    message_ = Serialize(gemm::v1::GetMatrixResponse());
    StartWrite(&message_);
  }
  explicit SendReactor(const grpc::Status& status) : chunk_bytes_(0) { Finish(status); }

  void OnWriteDone(bool ok) override {
    if (!ok || left_.empty()) return Finish(grpc::Status::OK);
    const auto piece = left_.subspan(0, std::min<uint64_t>(chunk_bytes_, left_.size()));
    message_ = DataMessage(offset_, piece);
    offset_ += piece.size();
    left_.remove_prefix(piece.size());
    StartWrite(&message_);
  }
  void OnDone() override { delete this; }

 private:
  uint64_t offset_ = 0;
  absl::Span<const std::byte> left_;
  const uint64_t chunk_bytes_;
  grpc::ByteBuffer message_;
};

// The answers to a job of a stream, as gemmd sends them: its result, then its report.
class StreamReactor final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  StreamReactor(grpc::ByteBuffer result, grpc::ByteBuffer report)
      : answers_{std::move(result), std::move(report)} {
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    bool write = false, finish = false;
    {
      const std::lock_guard lock(mutex_);
      if (ok) {
        write = unwritten_ == 0;
        unwritten_ += 2;
      } else {
        reading_ = false;
        finish = unwritten_ == 0;
      }
    }
    if (finish) return Finish(grpc::Status::OK);
    if (write) StartWrite(&answers_[0]);
    if (ok) StartRead(&message_);
  }
  void OnWriteDone(bool ok) override {
    uint64_t left = 0;
    bool finish = false;
    {
      const std::lock_guard lock(mutex_);
      left = --unwritten_;
      finish = !reading_ && (left == 0 || !ok);
    }
    if (finish) return Finish(grpc::Status::OK);
    if (ok && left > 0) StartWrite(&answers_[left % 2]);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
  grpc::ByteBuffer answers_[2];
  std::mutex mutex_;
  uint64_t unwritten_ = 0;
  bool reading_ = true;
};

// Calls with payload as raw bytes.
using RawProducts =
    GemmService::WithRawCallbackMethod_Multiply<GemmService::WithRawCallbackMethod_MultiplyUnary<
        GemmService::WithRawCallbackMethod_PutMatrix<GemmService::WithRawCallbackMethod_GetMatrix<
            GemmService::WithCallbackMethod_GetServerInfo<GemmService::Service>>>>>;

// As many bytes as the answers of gemmd to small products have beside the elements.
constexpr size_t kReportBytes = 200;

class BaselineService final : public RawProducts {
 public:
  explicit BaselineService(const BaselineOptions& options) : options_(options) {
    gemm::v1::MultiplyUnaryResponse unary;
    gemm::v1::MultiplyResponse result, report;
    if (options.answer_bytes > 0) {
      unary.set_data(std::string(options.answer_bytes, '\x5a'));
      unary.mutable_report()->set_reason(std::string(kReportBytes, ' '));
      result.mutable_chunk()->set_data(unary.data());
      report.mutable_result()->mutable_report()->set_reason(unary.report().reason());
    }
    unary_ = Serialize(unary);
    result_ = Serialize(result);
    report_ = Serialize(report);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetMatrix(grpc::CallbackServerContext*,
                                                        const grpc::ByteBuffer* message) override {
    gemm::v1::GetMatrixRequest request;
    if (!Parse(*message, &request) || request.range().offset() > options_.bytes ||
        request.range().length() > options_.bytes - request.range().offset()) {
      return new SendReactor({grpc::StatusCode::OUT_OF_RANGE, "more than --bytes"});
    }
    // Written to, and so in memory; in no cache where it is larger than those.
    std::call_once(filled_, [this] { matrix_.assign(options_.bytes, std::byte{0x5A}); });
    return new SendReactor(
        request.range().offset(),
        absl::MakeConstSpan(matrix_).subspan(request.range().offset(), request.range().length()),
        options_.chunk_bytes);
  }
  grpc::ServerReadReactor<grpc::ByteBuffer>* PutMatrix(grpc::CallbackServerContext*,
                                                       grpc::ByteBuffer* response) override {
    return new DropReactor(response);
  }
  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const gemm::v1::GetServerInfoRequest*,
                                          gemm::v1::GetServerInfoResponse*) override {
    return Empty(context);
  }
  grpc::ServerUnaryReactor* MultiplyUnary(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer*,
                                          grpc::ByteBuffer* response) override {
    *response = unary_;
    return Empty(context);
  }
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Multiply(
      grpc::CallbackServerContext*) override {
    return new StreamReactor(result_, report_);
  }

 private:
  const BaselineOptions options_;
  grpc::ByteBuffer unary_, result_, report_;  // answers that lie ready
  std::once_flag filled_;
  std::vector<std::byte> matrix_;  // what GetMatrix sends

  static grpc::ServerUnaryReactor* Empty(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

int ServeBaseline(const BaselineOptions& options) {
  BaselineService service(options);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  // As gemmd sets its own transport.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::fprintf(stderr, "--listen: cannot listen on %s\n", options.listen.c_str());
    return 1;
  }
  std::printf("baseline listening on port %d\n", port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

}  // namespace gemmd::wire
