#include "server/rpc/calls/benchmark_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/rpc/codec/benchmark_codec.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/context/status.h"

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
  spec->caller = caller().name;
  absl::StatusOr<std::shared_ptr<BenchmarkRun>> run =
      service_.benchmarks.Start(*std::move(spec), Self<BenchmarkCall>());
  if (!run.ok()) return run.status();
  absl::Status stopped;
  {
    MutexLock lock(mutex_);
    if (!outcome_.has_value()) run_ = *run;
    stopped = stopped_;
  }
  if (!stopped.ok()) (*run)->Cancel(std::move(stopped));
  return absl::OkStatus();
}

void BenchmarkCall::CancelWork(const absl::Status& why) {
  std::shared_ptr<BenchmarkRun> run;
  {
    MutexLock lock(mutex_);
    run = run_;
  }
  if (run != nullptr) run->Cancel(why);
}

void BenchmarkCall::BeginDrain() {
  CallLife::BeginDrain();
  Stop(absl::UnavailableError("the server is draining: it takes no new work"));
}

void BenchmarkCall::OnOutline(const BenchmarkOutline& outline) {
  v1::BenchmarkResponse response;
  v1::BenchmarkHeader& header = *response.mutable_header();
  Fill(outline, header);
  header.set_version(service_.version);
  header.set_commit(service_.commit);
  SendWithRoom(response);
}

void BenchmarkCall::OnProgress(const gemm::bench::Progress& progress) {
  const absl::Time now = SteadyNow();
  if (now - last_progress_ < kProgressTime) return;
  last_progress_ = now;
  v1::BenchmarkResponse response;
  Fill(progress, *response.mutable_progress());
  SendWithRoom(response);
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
    SendWithRoom(response);
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
    // Queued behind messages that may still wait: another benchmark may need this thread.
    if (totals.ok() && stopped_.ok()) outbox_.Push(end);
    // If the last messages could not be sent, the call has failed, too.
    outcome_ = totals.ok() ? stopped_ : totals.status();
    run_ = nullptr;
  }
  Advance();
}

void BenchmarkCall::SendWithRoom(const v1::BenchmarkResponse& response) {
  const absl::Time latest = began_ + service_.benchmarks.limits().time + kPatience;
  bool in_time = true;
  {
    MutexLock lock(mutex_);
    while (stopped_.ok() && outbox_.waiting() >= kMostWaiting && in_time) {
      changed_.WaitUntil(mutex_, latest);
      in_time = SteadyNow() < latest;
    }
  }
  if (!in_time) {
    return Stop(absl::DeadlineExceededError(
        absl::StrCat("the client did not read all rows within the ",
                     absl::FormatDuration(service_.benchmarks.limits().time),
                     " that a benchmark may take (the server's flag --benchmark-limit) and the ",
                     absl::FormatDuration(kPatience), " after it")));
  }
  Send(Serialize(response));
}

}  // namespace gemmd
