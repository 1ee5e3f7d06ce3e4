// The messages that wait to be written to a stream, which takes one at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "grpcpp/support/byte_buffer.h"

namespace gemmd {

// Guarded by its owner's lock. Destroying a message may call into the engine, and from
// there back into the owner. So removed messages must be destroyed after unlocking.
class Outbox {
 public:
  void Push(grpc::ByteBuffer& message) { queue_.emplace_back().Swap(&message); }

  // The message to write now. Null if there is none, or if a write is under way. Valid
  // until OnWritten.
  const grpc::ByteBuffer* Next() {
    if (writing_ || queue_.empty()) return nullptr;
    writing_ = true;
    current_.Swap(&queue_.front());
    queue_.pop_front();
    return &current_;
  }

  // Moves the message whose write has ended to `written`.
  void OnWritten(grpc::ByteBuffer& written) {
    writing_ = false;
    written.Swap(&current_);
  }

  // Removes all messages except the one being written.
  std::deque<grpc::ByteBuffer> TakeAll() { return std::exchange(queue_, {}); }

  bool idle() const { return !writing_ && queue_.empty(); }
  size_t waiting() const { return queue_.size(); }

 private:
  std::deque<grpc::ByteBuffer> queue_;
  grpc::ByteBuffer current_;
  bool writing_ = false;
};

}  // namespace gemmd
