// One streaming RPC over byte buffers, with callbacks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/calls/retries.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"

namespace gemmd::client {

// What RawCallSpec::next has done.
enum class NextMessage : uint8_t {
  kMore,   // filled the message; asked again once it has left
  kLast,   // filled the message; none follows
  kLater,  // nothing to send now; asked again whenever a message has been received
  kNone,   // nothing to send any more
};

// The `next` of a call that sends this alone.
std::function<NextMessage(grpc::ByteBuffer*)> OnlyMessage(const grpc::ByteBuffer& message);

struct RawCallSpec {
  // Such as "/gemm.v1.GemmService/PutMatrix".
  const char* method = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
  // Adds to the call's context before it starts. Null: nothing.
  std::function<void(grpc::ClientContext&)> prepare;

  // Fills the next message to send, or does not. Called until it returns kLast or kNone,
  // one call at a time.
  std::function<NextMessage(grpc::ByteBuffer*)> next;
  // Gets each received message in order, one call at a time. An error cancels the
  // RPC and becomes its status.
  std::function<absl::Status(const grpc::ByteBuffer&)> on_message;
  // Called last, exactly once in any case, after next and on_message were destroyed.
  std::function<void(absl::Status)> on_done;
};

// Keeps itself alive from Start to on_done. Cancel is thread-safe, and may come
// before Start.
class RawCall : private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                public std::enable_shared_from_this<RawCall> {
 public:
  static std::shared_ptr<RawCall> Create(RawCallSpec spec);
  // Once.
  void Start(grpc::GenericStub& stub);
  void Cancel();

 private:
  explicit RawCall(RawCallSpec spec) : spec_(std::move(spec)) {}

  void Write();
  // Goes on writing where that waits for a message.
  void Received();
  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  RawCallSpec spec_;
  grpc::ClientContext context_;
  grpc::ByteBuffer outgoing_;
  grpc::ByteBuffer incoming_;
  bool more_to_write_ = true;      // whoever writes; below is who does
  absl::Status error_;             // of on_message; reactions to reads, then OnDone
  std::shared_ptr<RawCall> self_;  // until OnDone

  std::mutex mutex_;  // guards what follows
  bool started_ = false;
  bool cancelled_ = false;
  // Writes are made by one at a time: Start, then the reactions to writes, and, from when one of
  // these has set `waiting_`, the reaction to a read that takes it back.
  bool waiting_ = false;
  bool received_ = false;  // a message, since `next` was asked last and had nothing
};

}  // namespace gemmd::client
