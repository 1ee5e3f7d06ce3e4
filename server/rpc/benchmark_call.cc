#include "server/rpc/benchmark_call.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/benchmark_codec.h"
#include "server/rpc/codec.h"
#include "server/rpc/status.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

// As the contract says.
constexpr size_t kRowsOfMessage = 100;
constexpr absl::Duration kProgressTime = absl::Milliseconds(200);
// Messages that wait for the client; the benchmark waits with more.
constexpr size_t kMostWaiting = 32;
// How long messages wait for room past the time that a benchmark may take, as
// the contract says.
constexpr absl::Duration kPatience = absl::Seconds(10);

}  // namespace

BenchmarkCall* BenchmarkCall::Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                                    const grpc::ByteBuffer& request) {
  auto benchmark = std::make_shared<BenchmarkCall>(service, call);
  BenchmarkCall* const raw = benchmark.get();
  service.live_calls.Add(std::move(benchmark));
  absl::Status status = raw->Start(request);
  {
    MutexLock lock(raw->mutex_);
    --raw->busy_;
    if (!status.ok()) raw->outcome_ = std::move(status);
  }
  raw->Advance();
  return raw;
}

absl::Status BenchmarkCall::Start(const grpc::ByteBuffer& message) {
  {
    // A server that drains has told so already.
    MutexLock lock(mutex_);
    if (!stopped_.ok()) return stopped_;
  }
  v1::BenchmarkRequest request;
  if (!Parse(message, request)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request's ", message.Length(), " bytes are not a BenchmarkRequest"));
  }
  absl::StatusOr<BenchmarkSpec> spec = ParseBenchmark(request);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::shared_ptr<BenchmarkRun>> run =
      service_.benchmarks.Start(*std::move(spec), Self<BenchmarkCall>());
  if (!run.ok()) return run.status();
  absl::Status stopped;
  {
    MutexLock lock(mutex_);
    run_ = *run;
    stopped = stopped_;
  }
  if (!stopped.ok()) (*run)->Cancel(std::move(stopped));
  return absl::OkStatus();
}

void BenchmarkCall::Stop(absl::Status why) {
  std::shared_ptr<BenchmarkRun> run;
  {
    MutexLock lock(mutex_);
    stopped_.Update(why);
    run = run_;
  }
  room_.NotifyAll();
  if (run != nullptr) run->Cancel(std::move(why));
}

void BenchmarkCall::OnWriteDone(bool) {
  // After a write that failed the call is cancelled, and OnCancel does the rest.
  grpc::ByteBuffer written;
  {
    MutexLock lock(mutex_);
    outbox_.OnWritten(written);
  }
  room_.NotifyAll();
  Advance();
}

void BenchmarkCall::OnCancel() {
  std::deque<grpc::ByteBuffer> unsent;
  {
    MutexLock lock(mutex_);
    ++busy_;
    unsent = outbox_.TakeAll();
  }
  Stop(WhyCancelled(*call_));
  {
    MutexLock lock(mutex_);
    --busy_;
  }
  Advance();
}

void BenchmarkCall::OnDone() {
  RpcEnd end{.method = "Benchmark", .elapsed = absl::Now() - began_};
  {
    MutexLock lock(mutex_);
    end.code = outcome_->code();
  }
  service_.on_end(end);
  service_.live_calls.Remove(this);
}

void BenchmarkCall::BeginDrain() {
  Stop(absl::UnavailableError("the server is draining: it takes no new work"));
}

void BenchmarkCall::OnOutline(const BenchmarkOutline& outline) {
  v1::BenchmarkResponse response;
  v1::BenchmarkHeader& header = *response.mutable_header();
  Fill(outline, header);
  header.set_version(service_.version);
  header.set_commit(service_.commit);
  Send(response);
}

void BenchmarkCall::OnProgress(const gemm::bench::Progress& progress) {
  const absl::Time now = absl::Now();
  if (now - last_progress_ < kProgressTime) return;
  last_progress_ = now;
  v1::BenchmarkResponse response;
  Fill(progress, *response.mutable_progress());
  Send(response);
}

void BenchmarkCall::OnRows(size_t shape, absl::Span<const gemm::bench::Row> rows) {
  while (!rows.empty()) {
    const auto part = rows.subspan(0, std::min(rows.size(), kRowsOfMessage));
    rows.remove_prefix(part.size());
    v1::BenchmarkResponse response;
    v1::BenchmarkRows& out = *response.mutable_rows();
    out.set_shape_index(static_cast<int32_t>(shape));
    for (const gemm::bench::Row& row : part) Fill(row, *out.add_rows());
    out.set_complete(rows.empty());
    Send(response);
  }
}

void BenchmarkCall::OnEnd(absl::StatusOr<BenchmarkTotals> totals) {
  grpc::ByteBuffer end;
  if (totals.ok()) {
    v1::BenchmarkResponse response;
    Fill(*totals, *response.mutable_end());
    end = Serialize(response);
  }
  {
    MutexLock lock(mutex_);
    // Beside those that may wait: another benchmark may need this thread.
    if (totals.ok() && stopped_.ok()) outbox_.Push(end);
    // Where the last messages could not be sent it did not go well, either.
    outcome_ = totals.ok() ? stopped_ : totals.status();
    run_ = nullptr;
  }
  Advance();
}

void BenchmarkCall::Send(const v1::BenchmarkResponse& response) {
  grpc::ByteBuffer message = Serialize(response);
  const absl::Time latest = began_ + service_.benchmarks.limits().time + kPatience;
  bool in_time = true;
  {
    MutexLock lock(mutex_);
    while (stopped_.ok() && outbox_.waiting() >= kMostWaiting && in_time) {
      room_.WaitUntil(mutex_, latest);
      in_time = absl::Now() < latest;
    }
    if (stopped_.ok() && outbox_.waiting() < kMostWaiting) outbox_.Push(message);
  }
  if (!in_time) {
    Stop(absl::DeadlineExceededError(
        absl::StrCat("the client did not read all rows within the ",
                     absl::FormatDuration(service_.benchmarks.limits().time),
                     " that a benchmark may take (the server's flag --benchmark-limit) and the ",
                     absl::FormatDuration(kPatience), " after it")));
  }
  Advance();
}

void BenchmarkCall::Advance() {
  for (;;) {
    const grpc::ByteBuffer* write = nullptr;
    std::optional<grpc::Status> finish;
    {
      MutexLock lock(mutex_);
      if (finished_) return;
      if (outcome_.has_value() && busy_ == 0 && outbox_.idle()) {
        finished_ = true;
        finish = ToGrpc(*outcome_);
      } else {
        write = outbox_.Next();
        if (write == nullptr) return;
        ++busy_;
      }
    }
    if (finish.has_value()) {
      Finish(*std::move(finish));
      return;  // gRPC may be done with this object
    }
    StartWrite(write);
    MutexLock lock(mutex_);
    --busy_;
  }
}

}  // namespace gemmd
