// Messages that wait for their turn on a stream that takes one at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "grpcpp/support/byte_buffer.h"

namespace gemmd {

// Guarded by its owner's lock. Letting go of a message may call into the
// engine, and back from there into the owner: whoever removes messages destroys
// them after unlocking.
class Outbox {
 public:
  void Push(grpc::ByteBuffer& message) { queue_.emplace_back().Swap(&message); }

  // The message to write now; null where there is none or one is under way.
  // Valid until OnWritten.
  const grpc::ByteBuffer* Next() {
    if (writing_ || queue_.empty()) return nullptr;
    writing_ = true;
    current_.Swap(&queue_.front());
    queue_.pop_front();
    return &current_;
  }

  // The message whose write has ended.
  void OnWritten(grpc::ByteBuffer& written) {
    writing_ = false;
    written.Swap(&current_);
  }

  // All messages but the one under way.
  std::deque<grpc::ByteBuffer> TakeAll() { return std::exchange(queue_, {}); }

  bool idle() const { return !writing_ && queue_.empty(); }
  size_t waiting() const { return queue_.size(); }

 private:
  std::deque<grpc::ByteBuffer> queue_;
  grpc::ByteBuffer current_;
  bool writing_ = false;
};

}  // namespace gemmd
