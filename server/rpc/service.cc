#include "server/rpc/service.h"

#include "server/base/clock.h"
#include "server/rpc/benchmark_call.h"
#include "server/rpc/call_guard.h"
#include "server/rpc/get_matrix_call.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/multiply_stream.h"
#include "server/rpc/put_matrix_call.h"
#include "server/rpc/queries.h"
#include "server/rpc/status.h"
#include "server/rpc/unary_product.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

// A call that was answered at once. It lives until its client has taken the answer.
class AnsweredCall final : public grpc::ServerUnaryReactor, public LiveCall {
 public:
  AnsweredCall(ServiceContext& service, grpc::CallbackServerContext* call, const char* method)
      : service_(service), guard_(service, call, method) {}

  static AnsweredCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                             const char* method, const grpc::Status& status) {
    auto answered = std::make_shared<AnsweredCall>(service, call, method);
    AnsweredCall* const raw = answered.get();
    {
      MutexLock lock(raw->mutex_);
      raw->guard_.SendBegins();
    }
    service.live_calls.Add(std::move(answered));
    raw->Finish(status);
    return raw;
  }

  void OnDone() override {
    {
      MutexLock lock(mutex_);
      guard_.CallIsDone();
    }
    service_.live_calls.Remove(this);
  }
  void BeginDrain() override {}
  void CheckWaits(const Patience& patience) override {
    const CallEnding ending = [&] {
      MutexLock lock(mutex_);
      return guard_.CheckSend(patience);
    }();
  }

 private:
  ServiceContext& service_;
  Mutex mutex_;
  CallGuard guard_ ABSL_GUARDED_BY(mutex_);
};

// Answers a call at once. `method` is a literal.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* Answer(ServiceContext& context, const char* method,
                                 grpc::CallbackServerContext* call,
                                 absl::Status (*query)(ServiceContext&, const Request&, Response&),
                                 const Request& request, Response& response) {
  const absl::Time began = SteadyNow();
  const absl::Status status = query(context, request, response);
  context.on_end({.method = method, .code = status.code(), .elapsed = SteadyNow() - began});
  return AnsweredCall::Begin(context, call, method, ToGrpc(status));
}

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* GemmService::Multiply(
    grpc::CallbackServerContext* call) {
  return MultiplyStream::Begin(context(), call);
}

grpc::ServerUnaryReactor* GemmService::MultiplyUnary(grpc::CallbackServerContext* call,
                                                     const v1::MultiplyUnaryRequest* request,
                                                     v1::MultiplyUnaryResponse* response) {
  return UnaryProduct::Begin(context(), call, request, response);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* GemmService::PutMatrix(grpc::CallbackServerContext* call,
                                                                  grpc::ByteBuffer* response) {
  return PutMatrixCall::Begin(context(), call, response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GemmService::GetMatrix(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request) {
  return WriteCall::Begin(std::make_shared<GetMatrixCall>(context(), call), *request);
}

grpc::ServerUnaryReactor* GemmService::ListMatrices(grpc::CallbackServerContext* call,
                                                    const v1::ListMatricesRequest* request,
                                                    v1::ListMatricesResponse* response) {
  return Answer(context(), "ListMatrices", call, &gemmd::ListMatrices, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::DeleteMatrix(grpc::CallbackServerContext* call,
                                                    const v1::DeleteMatrixRequest* request,
                                                    v1::DeleteMatrixResponse* response) {
  return Answer(context(), "DeleteMatrix", call, &gemmd::DeleteMatrix, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::ListKernels(grpc::CallbackServerContext* call,
                                                   const v1::ListKernelsRequest* request,
                                                   v1::ListKernelsResponse* response) {
  return Answer(context(), "ListKernels", call, &gemmd::ListKernels, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::GetServerInfo(grpc::CallbackServerContext* call,
                                                     const v1::GetServerInfoRequest* request,
                                                     v1::GetServerInfoResponse* response) {
  return Answer(context(), "GetServerInfo", call, &gemmd::GetServerInfo, *request, *response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GemmService::Benchmark(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request) {
  return WriteCall::Begin(std::make_shared<BenchmarkCall>(context(), call), *request);
}

}  // namespace gemmd
