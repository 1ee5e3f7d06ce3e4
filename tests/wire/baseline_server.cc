#include "tests/wire/baseline_server.h"

#include <cstdio>
#include <memory>

#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/grpcpp.h"

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

class BaselineService final
    : public GemmService::WithRawCallbackMethod_PutMatrix<GemmService::CallbackService> {
 public:
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
                                          const gemm::v1::MultiplyUnaryRequest*,
                                          gemm::v1::MultiplyUnaryResponse*) override {
    return Empty(context);
  }

 private:
  static grpc::ServerUnaryReactor* Empty(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

int ServeBaseline(const std::string& listen) {
  BaselineService service;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  // As gemmd sets its own transport.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::fprintf(stderr, "--listen: cannot listen on %s\n", listen.c_str());
    return 1;
  }
  std::printf("baseline listening on port %d\n", port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

}  // namespace gemmd::wire
