#include "server/rpc/answer_stream.h"

#include <utility>

namespace gemmd {

AnswerStream* AnswerStream::Begin(const std::shared_ptr<AnswerStream>& call,
                                  const grpc::ByteBuffer& request) {
  AnswerStream* const raw = call.get();
  raw->GoLive([&] {
    absl::Status status = raw->Start(request);
    if (status.ok()) return;
    MutexLock lock(raw->mutex_);
    raw->outcome_ = std::move(status);
  });
  return raw;
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
