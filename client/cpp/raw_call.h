// One streaming RPC over byte buffers, with callbacks.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/retries.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"

namespace gemmd::client {

struct RawCallSpec {
  // Such as "/gemm.v1.GemmService/PutMatrix".
  const char* method = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
  // Adds to the call's context before it starts. Null: nothing.
  std::function<void(grpc::ClientContext&)> prepare;

  // Fills the next message to send, and returns whether another follows. Called
  // until it returns false, one call at a time.
  std::function<bool(grpc::ByteBuffer*)> next;
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
  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  RawCallSpec spec_;
  grpc::ClientContext context_;
  grpc::ByteBuffer outgoing_;
  grpc::ByteBuffer incoming_;
  bool more_to_write_ = true;      // reactions to writes alone
  absl::Status error_;             // of on_message; reactions to reads, then OnDone
  std::shared_ptr<RawCall> self_;  // until OnDone

  std::mutex mutex_;  // guards what follows
  bool started_ = false;
  bool cancelled_ = false;
};

}  // namespace gemmd::client
