#include "server/rpc/calls/multiply_call.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.pb.h"
#include "server/base/clock.h"
#include "server/engine/bounds/bound_error.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/requests.h"
#include "server/rpc/codec/vocabulary.h"
#include "server/rpc/context/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

namespace {

v1::JobError ErrorOf(uint64_t job_id, const absl::Status& status) {
  v1::JobError error;
  error.set_job_id(job_id);
  error.set_code(status.raw_code());
  error.set_message(MessageOf(status));
  const ErrorDetails details = DetailsOf(status);
  if (details.retry_info.has_value()) *error.mutable_retry_info() = *details.retry_info;
  if (details.quota_failure.has_value()) *error.mutable_quota_failure() = *details.quota_failure;
  return error;
}

}  // namespace

class MultiplyCall::JobRelay final : public JobListener {
 public:
  JobRelay(std::shared_ptr<MultiplyCall> stream, uint64_t job_id)
      : stream_(std::move(stream)), job_id_(job_id) {}

  void OnResult(ResultPiece piece) override { stream_->OnResult(job_id_, std::move(piece)); }
  void OnDone(absl::StatusOr<JobResult> result) override {
    stream_->OnJobDone(job_id_, std::move(result));
  }

 private:
  const std::shared_ptr<MultiplyCall> stream_;
  const uint64_t job_id_;
};

MultiplyCall* MultiplyCall::Begin(ServiceContext& service, grpc::CallbackServerContext* call) {
  auto stream = std::make_shared<MultiplyCall>(service, call);
  stream->GoLive();
  return stream.get();
}

void MultiplyCall::OnCancelled() {
  std::vector<std::shared_ptr<Job>> jobs;
  absl::Status why;
  {
    MutexLock lock(mutex_);
    why = WhyEnded();
    input_open_ = false;
    jobs = StartedJobs();
  }
  for (const std::shared_ptr<Job>& job : jobs) job->Cancel(why);
}

void MultiplyCall::BeginDrain() {
  TakeNoMoreJobs(
      absl::UnavailableError("the server is draining; open the stream again elsewhere or later"));
}

void MultiplyCall::GrowOld() {
  TakeNoMoreJobs(absl::UnavailableError(absl::StrCat(
      "the stream is older than ", absl::FormatDuration(service_.limits.max_connection_age),
      " (the server's flag --max-connection-age); open another one")));
}

void MultiplyCall::TakeNoMoreJobs(absl::Status why) {
  {
    MutexLock lock(mutex_);
    leaving_.Update(std::move(why));
  }
  Advance();
}

void MultiplyCall::CheckPayload(const Patience& patience) {
  std::vector<std::shared_ptr<Job>> quiet;
  Stall stall;
  {
    MutexLock lock(mutex_);
    quiet = QuietJobs(patience.payload);
    if (!quiet.empty()) stall = PayloadStall(patience);
  }
  for (const std::shared_ptr<Job>& job : quiet) {
    if (!job->AwaitsPayload()) continue;
    ++stall.jobs;
    job->Cancel(absl::DeadlineExceededError(
        absl::StrCat("no payload came for the job for ", absl::FormatDuration(patience.payload),
                     " (the server's flag --payload-timeout): send it right after the header")));
  }
  if (stall.jobs > 0) service_.on_stall(stall);
}

std::vector<std::shared_ptr<Job>> MultiplyCall::QuietJobs(absl::Duration payload_timeout) const {
  std::vector<std::shared_ptr<Job>> quiet;
  if (!input_open_) return quiet;
  const absl::Duration now = payload_clock_.Elapsed();
  for (const auto& [id, live] : jobs_) {
    if (live.job != nullptr && now - live.last_payload >= payload_timeout) {
      quiet.push_back(live.job);
    }
  }
  return quiet;
}

bool MultiplyCall::WantsRead() const {
  return input_open_ && unconsumed_bytes_ < service_.limits.read_window_bytes &&
         outbox_.waiting() < kMaxWaitingAnswers;
}

std::optional<absl::Status> MultiplyCall::Outcome() const {
  if (outcome_.has_value()) return outcome_;  // it did not begin
  if ((input_open_ && leaving_.ok()) || !jobs_.empty()) return std::nullopt;
  if (!stopped_.ok()) return WhyEnded();
  if (!input_error_.ok()) return input_error_;
  return input_open_ ? leaving_ : absl::OkStatus();
}

std::vector<std::shared_ptr<Job>> MultiplyCall::StartedJobs() const {
  std::vector<std::shared_ptr<Job>> jobs;
  for (const auto& [id, live] : jobs_) {
    if (live.job != nullptr) jobs.push_back(live.job);
  }
  return jobs;
}

void MultiplyCall::EndInput(absl::Status why) {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    MutexLock lock(mutex_);
    input_open_ = false;
    input_error_ = std::move(why);
    jobs = StartedJobs();
  }
  // If the client is gone, OnCancel tells the jobs.
  if (context_->IsCancelled()) return;
  for (const std::shared_ptr<Job>& job : jobs) job->EndOfPayload();
}

void MultiplyCall::OnMessage(grpc::ByteBuffer& incoming) {
  const uint64_t index = messages_++;
  const size_t bytes = incoming.Length();
  absl::StatusOr<MultiplyMessage> message = DecodeMultiply(incoming);
  incoming.Clear();
  if (!message.ok()) {
    EndInput(absl::InvalidArgumentError(
        absl::StrCat("message ", index,
                     " of the stream is not a MultiplyRequest: ", message.status().message())));
  } else if (auto* header = std::get_if<v1::MultiplyHeader>(&*message)) {
    HandleHeader(std::move(*header), bytes);
  } else if (auto* chunk = std::get_if<OperandBytes>(&*message)) {
    HandleChunk(std::move(*chunk), bytes);
  } else {
    HandleCancel(std::get<v1::CancelJob>(*message));
  }
}

void MultiplyCall::HandleHeader(v1::MultiplyHeader header, size_t message_bytes) {
  const uint64_t job_id = header.job_id();
  absl::Status status = Reserve(job_id);
  if (!status.ok()) return SendError(job_id, status);
  status = CheckMessageBytes("header", message_bytes, service_.limits);
  if (status.ok()) status = Open(header);
  if (status.ok()) return;
  {
    MutexLock lock(mutex_);
    jobs_.erase(job_id);
    ended_.Add(job_id);  // its chunks may be on their way
  }
  SendError(job_id, status);
}

absl::Status MultiplyCall::Reserve(uint64_t job_id) {
  MutexLock lock(mutex_);
  if (jobs_.count(job_id) > 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("header.job_id: a job ", job_id,
                     " is alive on this stream; it goes on, and this header was dropped"));
  }
  const size_t limit = static_cast<size_t>(service_.limits.max_jobs_per_stream);
  if (jobs_.size() >= limit) {
    return BoundError(
        {.bound = "max-jobs-per-stream", .retry_after = kRetrySoon},
        absl::StrCat("header.job_id: job ", job_id, " would be the stream's ", jobs_.size() + 1,
                     "th alive; this server takes up to ", limit,
                     " (its flag --max-jobs-per-stream): wait for results or use another stream"));
  }
  jobs_.emplace(job_id, LiveJob{.last_payload = payload_clock_.Elapsed()});
  return absl::OkStatus();
}

absl::Status MultiplyCall::Open(v1::MultiplyHeader& header) {
  {
    MutexLock lock(mutex_);
    if (!leaving_.ok()) return leaving_;
  }
  if (!header.has_product()) return FieldError("header.product", "not set");
  const absl::StatusOr<CallerPtr> caller = CallerNow();
  if (!caller.ok()) return caller.status();
  absl::StatusOr<ProductRequest> request =
      ParseProduct(*header.mutable_product(), **caller, PayloadRule::kAllowed, SteadyNow(),
                   CallDeadline(*context_));
  if (!request.ok()) return request.status();
  request->spec.receiver = receiver_;
  request->spec.quota = QuotaNow(**caller);
  request->spec.flow = FlowOf(**caller);
  absl::StatusOr<std::shared_ptr<Job>> job = service_.engine.Admit(
      std::move(request->spec), std::make_shared<JobRelay>(Self<MultiplyCall>(), header.job_id()));
  if (!job.ok()) return job.status();
  (*job)->Start();
  absl::Status cancelled;
  {
    MutexLock lock(mutex_);
    const auto entry = jobs_.find(header.job_id());
    if (entry == jobs_.end()) return absl::OkStatus();  // it has ended already
    entry->second.job = *job;
    if (!stopped_.ok()) cancelled = WhyEnded();
  }
  if (!cancelled.ok()) (*job)->Cancel(std::move(cancelled));
  for (auto& [role, data] : request->inline_data) {
    const size_t bytes = data.size();
    Append(header.job_id(), **job, role, 0, std::move(data), bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Job>> MultiplyCall::FindJob(uint64_t job_id,
                                                           absl::string_view field) {
  MutexLock lock(mutex_);
  const auto entry = jobs_.find(job_id);
  if (entry != jobs_.end()) return entry->second.job;
  if (ended_.Contains(job_id)) return nullptr;
  ended_.Add(job_id);  // one error for each id
  return absl::NotFoundError(
      absl::StrCat(field, ": no job ", job_id, " on this stream; send its header first"));
}

void MultiplyCall::HandleChunk(OperandBytes chunk, size_t message_bytes) {
  const absl::StatusOr<std::shared_ptr<Job>> job = FindJob(chunk.job_id, "chunk.job_id");
  if (!job.ok()) return SendError(chunk.job_id, job.status());
  if (*job == nullptr) return;
  absl::Status status = CheckMessageBytes("chunk", message_bytes, service_.limits);
  const absl::StatusOr<Role> role = ParseRole(chunk.operand, "chunk.operand");
  if (status.ok()) status = role.status();
  if (status.ok() && chunk.data.empty()) status = FieldError("chunk.data", "empty");
  if (!status.ok()) return (*job)->Cancel(std::move(status));
  Append(chunk.job_id, **job, *role, chunk.offset, std::move(chunk.data), message_bytes);
}

void MultiplyCall::Append(uint64_t job_id, Job& job, Role role, uint64_t offset, absl::Cord data,
                          size_t held_bytes) {
  {
    MutexLock lock(mutex_);
    const auto entry = jobs_.find(job_id);
    if (entry != jobs_.end()) entry->second.last_payload = payload_clock_.Elapsed();
    unconsumed_bytes_ += held_bytes;
  }
  job.Append(role, offset, std::move(data),
             [self = Self<MultiplyCall>(), held_bytes]() { self->Consumed(held_bytes); });
}

void MultiplyCall::HandleCancel(const v1::CancelJob& cancel) {
  const absl::StatusOr<std::shared_ptr<Job>> job = FindJob(cancel.job_id(), "cancel.job_id");
  if (!job.ok()) return SendError(cancel.job_id(), job.status());
  if (*job != nullptr) (*job)->Cancel(absl::CancelledError("cancelled by the caller"));
}

void MultiplyCall::Consumed(size_t bytes) {
  {
    MutexLock lock(mutex_);
    unconsumed_bytes_ -= bytes;
  }
  Advance();
}

void MultiplyCall::OnResult(uint64_t job_id, ResultPiece piece) {
  Send(EncodeResultChunk(job_id, std::move(piece)));
}

void MultiplyCall::OnJobDone(uint64_t job_id, absl::StatusOr<JobResult> result) {
  v1::MultiplyResponse response;
  if (result.ok()) {
    v1::MultiplyResult& out = *response.mutable_result();
    out.set_job_id(job_id);
    Fill(result->report, *out.mutable_report());
    if (result->kept.has_value()) Fill(*result->kept, *out.mutable_kept());
  } else {
    *response.mutable_error() = ErrorOf(job_id, result.status());
  }
  grpc::ByteBuffer message = Serialize(response);
  std::shared_ptr<Job> job;  // destroyed unlocked
  {
    MutexLock lock(mutex_);
    const auto entry = jobs_.find(job_id);
    job = std::move(entry->second.job);
    jobs_.erase(entry);
    ended_.Add(job_id);
    if (stopped_.ok()) outbox_.Push(message);
  }
  Advance();
}

void MultiplyCall::SendError(uint64_t job_id, const absl::Status& status) {
  v1::MultiplyResponse response;
  *response.mutable_error() = ErrorOf(job_id, status);
  Send(Serialize(response));
}

}  // namespace gemmd
