#include "server/listening/own_call.h"

#include <sys/socket.h>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server_posix.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"

namespace gemmd {

// Lives until gRPC has told how it ended, which may be after the server's end.
struct OwnCall::Call {
  explicit Call(int fd)
      : channel(grpc::CreateInsecureChannelFromFd("gemmd", fd)), stub(channel), request(&none, 1) {}

  const std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
  grpc::ClientContext context;
  const grpc::Slice none;  // of bytes: the health of all services
  const grpc::ByteBuffer request;
  grpc::ByteBuffer response;

  enum class State { kUnderWay, kAnswered, kFailed };
  Mutex mutex;
  CondVar changed;
  State state ABSL_GUARDED_BY(mutex) = State::kUnderWay;

  void Set(State now) {
    MutexLock lock(mutex);
    state = now;
    changed.NotifyAll();
  }
  State Get() {
    MutexLock lock(mutex);
    return state;
  }
};

void OwnCall::Begin() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return;
  grpc::AddInsecureChannelFromFd(&server_, ends[0]);
  call_ = std::make_shared<Call>(ends[1]);
  call_->Set(Call::State::kUnderWay);  // under its lock: the next to take it is a thread of gRPC
  call_->stub.UnaryCall(&call_->context, "/grpc.health.v1.Health/Check", {}, &call_->request,
                        &call_->response, [call = call_](const grpc::Status& status) {
                          call->Set(status.ok() ? Call::State::kAnswered : Call::State::kFailed);
                        });
}

bool OwnCall::Wait(absl::Duration timeout) {
  Begin();
  if (call_ == nullptr) return false;
  const absl::Time end = SteadyNow() + timeout;
  Call::State state;
  {
    MutexLock lock(call_->mutex);
    while (call_->state == Call::State::kUnderWay && SteadyNow() < end) {
      call_->changed.WaitUntil(call_->mutex, end);
    }
    state = call_->state;
  }
  call_.reset();
  return state == Call::State::kAnswered;
}

bool OwnCall::Look() {
  ++looks_;
  if (call_ != nullptr) {
    const Call::State state = call_->Get();
    if (state == Call::State::kAnswered) looks_ = 0;
    if (state != Call::State::kUnderWay) call_.reset();
  }
  if (call_ == nullptr && looks_ >= kLooksBetween) Begin();
  return looks_ < kLooksBetween + kLooksToAnswer;
}

}  // namespace gemmd
