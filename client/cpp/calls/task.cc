#include "client/cpp/calls/task.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls/clock.h"
#include "client/cpp/calls/connection.h"
#include "grpcpp/alarm.h"

namespace gemmd::client {
namespace {

// The message of the status of a task whose canceller was used.
constexpr absl::string_view kByCaller = "cancelled by the caller";

// Runs `function` on a thread of gRPC's, from outside whatever runs here.
void RunElsewhere(std::function<void()> function) {
  auto* alarm = new grpc::Alarm;
  alarm->Set(gpr_now(GPR_CLOCK_MONOTONIC), [alarm, function = std::move(function)](bool) {
    function();
    delete alarm;
  });
}

}  // namespace

std::shared_ptr<Task> Task::Begin(Connection& connection, const CallOptions& options,
                                  const char* what, Finish finish) {
  std::shared_ptr<Task> task = BeginCleanUp(connection, options, what, std::move(finish));
  // Asked once the connection knows the task: the destructor has seen one or the other.
  if (connection.closing()) task->Fail(absl::CancelledError(kDestroyed));
  return task;
}

std::shared_ptr<Task> Task::BeginCleanUp(Connection& connection, const CallOptions& options,
                                         const char* what, Finish finish) {
  std::shared_ptr<Task> task(new Task(connection, options, what, std::move(finish)));
  connection.Add(task);
  task->cancel_hook_ =
      std::make_unique<CancelHook>(options.canceller, [weak = std::weak_ptr<Task>(task)] {
        if (const auto live = weak.lock()) live->Fail(absl::CancelledError(kByCaller));
      });
  return task;
}

Task::Task(Connection& connection, const CallOptions& options, const char* what, Finish finish)
    : connection_(connection),
      deadline_(connection.Deadline(options)),
      timeout_(connection.Timeout(options)),
      idle_timeout_(connection.IdleTimeout(options)),
      moved_ns_(absl::ToUnixNanos(SteadyNow())),
      what_(what),
      progress_(options.progress),
      finish_(std::move(finish)) {}

void Task::Hold() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++holds_;
}

void Task::DropHold(bool inside_transport) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--holds_ > 0) return;
  }
  if (inside_transport) {
    RunElsewhere([self = shared_from_this()] { self->End(); });
  } else {
    End();
  }
}

void Task::End() {
  // The hook holds the task weakly, so this one reference may be the last.
  const std::shared_ptr<Task> self = shared_from_this();
  cancel_hook_.reset();
  absl::Status status;
  {
    // A canceller may still be used; that changes nothing any more.
    std::lock_guard<std::mutex> lock(mutex_);
    status = status_;
  }
  const bool cancelled = absl::IsCancelled(status) && status.message() == kByCaller;
  std::exchange(finish_, nullptr)(connection_.Explain(status, what_, timeout_, cancelled));
  connection_.Remove(this);
}

void Task::Fail(absl::Status why) {
  if (why.ok()) return;
  // When time is up, the server drops the upload of the task's calls. A stripe that comes then
  // finds the name of its own upload taken, or gone.
  if ((absl::IsAlreadyExists(why) || absl::IsNotFound(why)) && SteadyNow() >= deadline_) {
    why = absl::DeadlineExceededError("Deadline Exceeded");
  }
  std::map<uint64_t, std::function<void()>> cancels;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok() && !absl::IsAborted(status_)) return;
    if (absl::IsAborted(why)) {
      status_ = std::move(why);
      return;
    }
    status_ = std::move(why);
    cancels = std::exchange(cancels_, {});
  }
  for (auto& [id, cancel] : cancels) cancel();
}

bool Task::failed() const { return !status().ok(); }

absl::Status Task::status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

void Task::Moved() {
  if (may_be_idle()) moved_ns_.store(absl::ToUnixNanos(SteadyNow()), std::memory_order_relaxed);
}

void Task::FailIfIdle() {
  if (!may_be_idle()) return;
  const absl::Time moved = absl::FromUnixNanos(moved_ns_.load(std::memory_order_relaxed));
  if (SteadyNow() - moved >= idle_timeout_) Fail(Connection::Idle(what_, idle_timeout_));
}

uint64_t Task::OnFailure(std::function<void()> cancel) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t id = ++last_id_;
    if (status_.ok() || absl::IsAborted(status_)) {
      cancels_.emplace(id, std::move(cancel));
      return id;
    }
  }
  cancel();
  return 0;
}

void Task::Forget(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  cancels_.erase(id);
}

void Task::PrepareContext(grpc::ClientContext& context) const {
  connection_.Authorize(context);
  if (deadline_ != absl::InfiniteFuture()) context.set_deadline(GrpcTime(deadline_));
}

void Task::Stream(int channel, RawCallSpec spec) {
  // Learnt only once the call exists; the call's end comes after that.
  auto id = std::make_shared<uint64_t>(0);
  spec.deadline = deadline_;
  spec.prepare = [this](grpc::ClientContext& context) { connection_.Authorize(context); };
  // Destroyed before on_done, which holds the task.
  spec.next = [this, next = std::move(spec.next)](grpc::ByteBuffer* message) {
    Moved();
    return next(message);
  };
  spec.on_message = [this,
                     on_message = std::move(spec.on_message)](const grpc::ByteBuffer& message) {
    Moved();
    return on_message(message);
  };
  spec.on_done = [self = shared_from_this(), id,
                  done = std::move(spec.on_done)](absl::Status status) mutable {
    self->Forget(*id);
    self->Fail(status);
    std::exchange(done, nullptr)(std::move(status));
    self->Drop();
  };
  Hold();
  const std::shared_ptr<RawCall> call = RawCall::Create(std::move(spec));
  *id = OnFailure([weak = std::weak_ptr<RawCall>(call)] {
    if (const auto live = weak.lock()) live->Cancel();
  });
  call->Start(connection_.generic(channel));
}

void Task::Wait(absl::Duration time) {
  if (connection_.closing()) return Fail(absl::CancelledError(kDestroyed));
  // The alarm goes when it has rung, on gRPC's thread, which may be now.
  struct Ringing {
    std::mutex mutex;
    std::unique_ptr<grpc::Alarm> alarm;
  };
  const auto ringing = std::make_shared<Ringing>();
  Hold();
  {
    std::lock_guard<std::mutex> lock(ringing->mutex);
    ringing->alarm = std::make_unique<grpc::Alarm>();
    ringing->alarm->Set(GrpcTime(SteadyNow() + time), [self = shared_from_this(), ringing](bool) {
      std::unique_ptr<grpc::Alarm> rung;
      {
        std::lock_guard<std::mutex> ending(ringing->mutex);
        rung.swap(ringing->alarm);
      }
      self->Drop();
    });
  }
  // Not forgotten before the task's end: it refers to nothing that lives.
  OnFailure([weak = std::weak_ptr<Ringing>(ringing)] {
    const auto live = weak.lock();
    if (live == nullptr) return;
    std::lock_guard<std::mutex> lock(live->mutex);
    if (live->alarm != nullptr) live->alarm->Cancel();
  });
}

std::shared_ptr<const void> Task::Lease(const MatrixView& view) {
  if (view.owner != nullptr) return view.owner;
  Hold();
  // The deleter runs where the transport drops the last slice, with locks of
  // its own held.
  return std::shared_ptr<const void>(
      view.data, [self = shared_from_this()](const void*) { self->DropHold(true); });
}

void Task::AddTotal(uint64_t bytes) {
  if (!progress_) return;
  std::lock_guard<std::mutex> lock(progress_mutex_);
  total_bytes_ += bytes;
  progress_(done_bytes_, total_bytes_);
}

void Task::AddDone(uint64_t bytes) {
  if (!progress_) return;
  std::lock_guard<std::mutex> lock(progress_mutex_);
  done_bytes_ += bytes;
  progress_(done_bytes_, total_bytes_);
}

}  // namespace gemmd::client
