#include "server/floods/call_counting.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "grpcpp/server_context.h"
#include "grpcpp/support/server_interceptor.h"
#include "server/identity/connection_number.h"

namespace gemmd {
namespace {

// gRPC makes, hands over and deletes a context on three threads, one after the other. A step that
// begins and ends with this shows the thread sanitizer the order, which gRPC keeps out of its
// sight.
class Step {
 public:
  Step() { steps_.load(); }
  ~Step() { steps_.fetch_add(1); }
  Step(const Step&) = delete;

 private:
  static inline std::atomic<uint64_t> steps_{0};
};

// Counts until gRPC deletes it.
class CountedContext final : public grpc::CallbackServerContext {
 public:
  explicit CountedContext(UnfinishedCalls& calls) : calls_(calls) {}
  ~CountedContext() override {
    if (connection_ != 0) calls_.End(connection_);
  }

  void Begin() {
    connection_ = ConnectionOf(c_call());
    if (connection_ != 0) calls_.HandOver(connection_, peer());  // else of the server's own
  }

 private:
  UnfinishedCalls& calls_;
  uint64_t connection_ = 0;
};

class CountedContexts final : public grpc::ContextAllocator {
 public:
  explicit CountedContexts(UnfinishedCalls& calls) : calls_(calls) {}
  ~CountedContexts() override { const Step step; }

  grpc::CallbackServerContext* NewCallbackServerContext() override {
    const Step step;
    return new CountedContext(calls_);
  }
  void Release(grpc::CallbackServerContext* context) override {
    const Step step;
    // Of a method that no service has, the context is gRPC's own, and comes here all the same.
    delete dynamic_cast<CountedContext*>(context);
  }

 private:
  UnfinishedCalls& calls_;
};

// The same for a call whose context is gRPC's own: of a service that blocks a thread, such as
// reflection, or of a method that no service has. The context may not know the call yet when gRPC
// makes this.
class OtherCall final : public grpc::experimental::Interceptor {
 public:
  OtherCall(UnfinishedCalls& calls, grpc::ServerContextBase& context)
      : calls_(calls), context_(context) {}
  ~OtherCall() override {
    const Step step;
    if (connection_ != 0) calls_.End(connection_);
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* operation) override {
    {
      const Step step;  // before it is read, too: another thread may have written it
      if (connection_ == 0) {
        connection_ = ConnectionOf(context_.c_call());
        if (connection_ != 0) calls_.HandOver(connection_, context_.peer());
      }
    }
    operation->Proceed();
  }

 private:
  UnfinishedCalls& calls_;
  grpc::ServerContextBase& context_;
  uint64_t connection_ = 0;
};

// gRPC asks for a call's interceptor when the call is handed over. Calls whose
// context counts get none: it would cost each of their operations a turn through gRPC's queue.
class AtHandover final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit AtHandover(UnfinishedCalls& calls) : calls_(calls) {}
  ~AtHandover() override { const Step step; }

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    const Step step;
    auto* const counted = dynamic_cast<CountedContext*>(call->server_context());
    if (counted == nullptr) return new OtherCall(calls_, *call->server_context());
    counted->Begin();
    return nullptr;
  }

 private:
  UnfinishedCalls& calls_;
};

}  // namespace

absl::Status CountAtHeaders(UnfinishedCalls& calls, uint64_t connection, bool of_caller,
                            const std::string& caller) {
  if (calls.Begin(connection, of_caller, caller)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "the connection resets calls faster than the server can end them");
}

void CountEnds(UnfinishedCalls& calls, grpc::ServerBuilder& builder) {
  const Step step;
  builder.SetContextAllocator(std::make_unique<CountedContexts>(calls));
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<AtHandover>(calls));
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace gemmd
