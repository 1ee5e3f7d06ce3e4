#include "server/rpc/life/reactors.h"

namespace gemmd {

AnswerStream* AnswerStream::Begin(const std::shared_ptr<AnswerStream>& call,
                                  const grpc::ByteBuffer& request) {
  // gRPC keeps the request as long as the call.
  call->GoLiveAtItsRate(request.Length(),
                        [raw = call.get(), &request] { return raw->Start(request); });
  return call.get();
}

void AnswerStream::OnCancelled() {
  absl::Status why;
  {
    MutexLock lock(mutex_);
    why = WhyEnded();
  }
  Stop(why);
}

void AnswerStream::Stop(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    stopped_.Update(why);
  }
  changed_.NotifyAll();
  CancelWork(why);
}

}  // namespace gemmd
