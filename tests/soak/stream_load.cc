#include "tests/soak/stream_load.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gemmd::soak {
namespace {

namespace pb = ::gemm::v1;
using Stream = grpc::ClientReaderWriter<pb::MultiplyRequest, pb::MultiplyResponse>;

constexpr size_t kChunk = size_t{1} << 20;
// Of what a client that went away leaves behind.
constexpr absl::Duration kOrphanTtl = absl::Seconds(2);
// Of an operand that its job releases: it goes by itself where the job never
// takes hold of it. Longer than a job may wait to be sent.
constexpr absl::Duration kReleasedTtl = absl::Seconds(20);

void SetDuration(absl::Duration from, google::protobuf::Duration* to) {
  to->set_seconds(absl::ToInt64Seconds(from));
  to->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(from - absl::Seconds(absl::ToInt64Seconds(from)))));
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

// Whether a job's deadline passed, or was too near for the queue: a server refuses such jobs.
bool RanOutOfTime(int code, absl::string_view message) {
  return code == grpc::DEADLINE_EXCEEDED ||
         (code == grpc::RESOURCE_EXHAUSTED && absl::StrContains(message, "its deadline is in"));
}

// Whether a server may refuse the problem: a block of rows whose kernel's rows of D depend on m.
bool BlockRefused(const PoolProblem& problem, absl::StatusCode code) {
  return problem.form() == Form::kRowBlock && code == absl::StatusCode::kFailedPrecondition;
}

// One Multiply stream: a writer (the caller's thread) and a reader.
class Session {
 public:
  Session(pb::GemmService::Stub& stub, const std::vector<LoadedProblem>& pool,
          const StreamOptions& options, uint64_t seed, Counts& counts)
      : stub_(stub), pool_(pool), options_(options), counts_(counts), random_(seed) {}

  void Run() {
    ++counts_.streams;
    doomed_ = Chance(0.06);
    if (doomed_ && Chance(0.5)) {
      context_.set_deadline(std::chrono::system_clock::now() +
                            std::chrono::milliseconds(1 + random_() % 200));
    }
    stream_ = stub_.Multiply(&context_);
    std::thread reader([this] { Read(); });
    const int jobs = 20 + static_cast<int>(random_() % 40);
    const int last = doomed_ ? static_cast<int>(random_() % jobs) : jobs;
    bool alive = true;
    for (int i = 0; i < last && alive && absl::Now() < options_.until; ++i) {
      alive = SendJob(static_cast<uint64_t>(i) + 1);
    }
    if (doomed_) {
      ++counts_.streams_cancelled;
      context_.TryCancel();
    } else {
      stream_->WritesDone();
    }
    reader.join();
    const grpc::Status status = stream_->Finish();
    if (!doomed_ && !status.ok()) {
      Unexpected(absl::StrCat("a stream ended with ", FromGrpc(status).ToString()));
    }
    if (!doomed_ && !jobs_.empty()) Unexpected(absl::StrCat(jobs_.size(), " jobs got no answer"));
  }

 private:
  struct PendingJob {
    PoolProblem* problem = nullptr;
    std::string result;
    bool streamed = true;
    bool may_be_cancelled = false;
    bool may_time_out = false;
    bool leave_kept = false;  // its time to live is to end it
  };

  bool Chance(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }

  void Unexpected(const std::string& text) {
    ++counts_.unexpected;
    counts_.Complain(text);
  }

  // Chooses where operand `index` comes from. Returns what to send as chunks.
  const PoolOperand* Source(const LoadedProblem& loaded, int index, pb::Operand* message) {
    const PoolOperand& operand = *loaded.problem->operand(index);
    const double choice = std::uniform_real_distribution<double>(0, 1)(random_);
    if (choice < 0.35 && !loaded.ids[index].empty()) {
      ++counts_.resident;
      message->mutable_matrix()->set_id(loaded.ids[index]);
      return nullptr;
    }
    if (choice < 0.42) {
      const auto id = PutOperand(stub_, operand, loaded.device, kReleasedTtl);
      if (id.ok()) {
        ++counts_.released;
        message->mutable_matrix()->set_id(*id);
        message->mutable_matrix()->set_release(true);
        return nullptr;
      }
      Unexpected(absl::StrCat("PutMatrix: ", id.status().ToString()));
    }
    *message->mutable_shape() = operand.shape;
    if (choice < 0.65) {
      ++counts_.generated;
      *message->mutable_generator() = operand.generator;
      return nullptr;
    }
    ++counts_.payload;
    message->mutable_payload();
    return &operand;
  }

  // False where the stream has ended.
  bool SendJob(uint64_t job_id) {
    const LoadedProblem& loaded = pool_[random_() % pool_.size()];
    PendingJob job;
    job.problem = loaded.problem;
    pb::MultiplyRequest request;
    request.mutable_header()->set_job_id(job_id);
    pb::Product& product = *request.mutable_header()->mutable_product();
    product = loaded.problem->product();
    const std::array<pb::Operand* (*)(pb::Product&), kOperands> operands = {
        [](pb::Product& p) { return p.mutable_a(); }, [](pb::Product& p) { return p.mutable_b(); },
        [](pb::Product& p) { return p.mutable_c(); },
        [](pb::Product& p) { return p.mutable_bias(); }};
    std::vector<std::pair<pb::OperandRole, const PoolOperand*>> to_send;
    for (int i = 0; i < kOperands; ++i) {
      if (!loaded.problem->operand(i)) continue;
      const PoolOperand* payload = Source(loaded, i, operands[i](product));
      if (payload != nullptr) {
        to_send.emplace_back(static_cast<pb::OperandRole>(pb::OPERAND_ROLE_A + i), payload);
      }
    }
    Dispose(job_id, product, job);
    if (Chance(0.05)) {
      job.may_time_out = true;
      SetDuration(absl::Microseconds(1 + random_() % 3000), product.mutable_timeout());
    }
    const bool cancel = Chance(0.08);
    job.may_be_cancelled = cancel;
    {
      MutexLock lock(mutex_);
      while (jobs_.size() >= static_cast<size_t>(options_.window) && !ended_) room_.Wait(mutex_);
      if (ended_) return false;
      jobs_.emplace(job_id, std::move(job));
    }
    if (!stream_->Write(request)) return false;
    return SendPayload(job_id, to_send, cancel);
  }

  // The result: streamed, kept, or both.
  void Dispose(uint64_t job_id, pb::Product& product, PendingJob& job) {
    if (!Chance(0.3)) return;
    ++counts_.kept;
    job.streamed = Chance(0.5);
    job.leave_kept = Chance(0.15);
    product.mutable_result()->set_stream(job.streamed);
    pb::Keep* keep = product.mutable_result()->mutable_keep();
    if (Chance(0.5)) {
      keep->set_name(absl::StrCat("soak/", options_.index, "/", random_(), "/", job_id));
    }
    // Nobody would delete what a stream that is cut off has kept.
    if (doomed_ || job.leave_kept) SetDuration(kOrphanTtl, keep->mutable_ttl());
  }

  bool SendCancel(uint64_t job_id) {
    pb::MultiplyRequest request;
    request.mutable_cancel()->set_job_id(job_id);
    return stream_->Write(request);
  }

  bool SendPayload(uint64_t job_id,
                   const std::vector<std::pair<pb::OperandRole, const PoolOperand*>>& operands,
                   bool cancel) {
    pb::MultiplyRequest request;
    pb::OperandChunk& chunk = *request.mutable_chunk();
    chunk.set_job_id(job_id);
    for (const auto& [role, operand] : operands) {
      const size_t size = operand->bytes.size();
      const size_t step = std::clamp<size_t>(Chance(0.2) ? size / 7 + 1 : kChunk, 1, kChunk);
      for (size_t at = 0; at < size; at += step) {
        if (cancel && Chance(0.5)) return SendCancel(job_id);
        const size_t count = std::min(step, size - at);
        chunk.set_operand(role);
        chunk.set_offset(at);
        chunk.set_data(operand->bytes.data() + at, count);
        if (!stream_->Write(request)) return false;
        counts_.bytes_sent += static_cast<int64_t>(count);
      }
    }
    return !cancel || SendCancel(job_id);
  }

  void Read() {
    pb::MultiplyResponse response;
    while (stream_->Read(&response)) {
      if (response.has_chunk()) {
        OnChunk(response.chunk());
      } else if (response.has_result()) {
        OnResult(response.result());
      } else if (response.has_error()) {
        OnError(response.error());
      }
    }
    MutexLock lock(mutex_);
    ended_ = true;
    room_.NotifyAll();
  }

  void OnChunk(const pb::ResultChunk& chunk) {
    counts_.bytes_received += static_cast<int64_t>(chunk.data().size());
    MutexLock lock(mutex_);
    const auto at = jobs_.find(chunk.job_id());
    if (at == jobs_.end() || chunk.offset() != at->second.result.size()) {
      Unexpected(absl::StrCat("job ", chunk.job_id(), ": a chunk at ", chunk.offset(),
                              " is out of place"));
      return;
    }
    at->second.result += chunk.data();
  }

  // Takes the job out of the ones in flight.
  std::optional<PendingJob> End(uint64_t job_id) {
    MutexLock lock(mutex_);
    const auto node = jobs_.extract(job_id);
    room_.NotifyAll();
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }

  void OnResult(const pb::MultiplyResult& result) {
    const auto job = End(result.job_id());
    if (!job) return Unexpected(absl::StrCat("a result for job ", result.job_id()));
    if (job->streamed) counts_.Judge(*job->problem, job->result);
    if (!result.has_kept() || job->leave_kept) return;
    const auto kept = TakeMatrix(stub_, result.kept().id());
    if (kept.ok()) {
      counts_.bytes_received += static_cast<int64_t>(kept->size());
      counts_.Judge(*job->problem, *kept);
    } else if (!(doomed_ && absl::IsNotFound(kept.status()))) {
      // On a doomed stream its short life may be over before the reader comes.
      Unexpected(absl::StrCat("GetMatrix: ", kept.status().ToString()));
    }
  }

  void OnError(const pb::JobError& error) {
    const auto job = End(error.job_id());
    if (!job) return Unexpected(absl::StrCat("an error for job ", error.job_id()));
    const auto code = static_cast<absl::StatusCode>(error.code());
    if (code == absl::StatusCode::kCancelled && (job->may_be_cancelled || doomed_)) {
      ++counts_.cancelled;
    } else if (RanOutOfTime(error.code(), error.message()) && (job->may_time_out || doomed_)) {
      ++counts_.deadline_exceeded;
    } else if (BlockRefused(*job->problem, code)) {
      ++counts_.blocks_refused;
    } else {
      Unexpected(
          absl::StrCat(job->problem->ToString(), ": code ", error.code(), ", ", error.message()));
    }
  }

  pb::GemmService::Stub& stub_;
  const std::vector<LoadedProblem>& pool_;
  const StreamOptions& options_;
  Counts& counts_;
  std::mt19937_64 random_;  // the writer's
  bool doomed_ = false;     // to be cut off; set before the reader starts
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;

  Mutex mutex_;
  CondVar room_;
  std::map<uint64_t, PendingJob> jobs_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// A MultiplyUnary with its operands in the message, sometimes with no time to do it.
void RunUnary(pb::GemmService::Stub& stub, const LoadedProblem& loaded, bool hurried,
              Counts& counts) {
  ++counts.unary;
  pb::MultiplyUnaryRequest request;
  pb::Product& product = *request.mutable_product();
  product = loaded.problem->product();
  pb::Operand* const operands[] = {product.mutable_a(), product.mutable_b(),
                                   loaded.problem->operand(2) ? product.mutable_c() : nullptr,
                                   loaded.problem->operand(3) ? product.mutable_bias() : nullptr};
  for (int i = 0; i < kOperands; ++i) {
    if (operands[i] == nullptr) continue;
    const PoolOperand& operand = *loaded.problem->operand(i);
    *operands[i]->mutable_shape() = operand.shape;
    operands[i]->set_data(operand.bytes.data(), operand.bytes.size());
  }
  grpc::ClientContext context;
  if (hurried) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::microseconds(500));
  }
  pb::MultiplyUnaryResponse response;
  const grpc::Status status = stub.MultiplyUnary(&context, request, &response);
  if (hurried && RanOutOfTime(status.error_code(), status.error_message())) {
    ++counts.deadline_exceeded;
    return;
  }
  if (BlockRefused(*loaded.problem, static_cast<absl::StatusCode>(status.error_code()))) {
    ++counts.blocks_refused;
    return;
  }
  if (!status.ok()) {
    ++counts.unexpected;
    counts.Complain(absl::StrCat("MultiplyUnary: ", FromGrpc(status).ToString()));
    return;
  }
  counts.Judge(*loaded.problem, response.data());
}

// Operands and result of at most 1 MiB together: what goes in one message.
bool FitsUnary(const PoolProblem& problem) {
  uint64_t bytes = problem.result_bytes();
  for (int i = 0; i < kOperands; ++i) {
    if (problem.operand(i)) bytes += problem.operand(i)->bytes.size();
  }
  return bytes <= kChunk;
}

}  // namespace

void Counts::Judge(PoolProblem& problem, absl::string_view answer) {
  const absl::Status verdict = problem.Judge(answer);
  if (!verdict.ok()) {
    ++wrong;
    return Complain(verdict.ToString());
  }
  ++right;
  ++right_of_form[static_cast<int>(problem.form())];
}

void Counts::Complain(const std::string& text) {
  MutexLock lock(mutex_);
  if (complaints_.size() < 20) complaints_.push_back(text);
}

std::vector<std::string> Counts::complaints() const {
  MutexLock lock(mutex_);
  return complaints_;
}

void RunAlikeLoad(pb::GemmService::Stub& stub, const std::vector<LoadedProblem>& pool,
                  const StreamOptions& options, Counts& counts) {
  const auto bytes = [](const LoadedProblem& loaded) {
    return loaded.problem->form() == Form::kProduct && FitsUnary(*loaded.problem)
               ? loaded.problem->result_bytes()
               : std::numeric_limits<uint64_t>::max();
  };
  const LoadedProblem& smallest =
      *std::min_element(pool.begin(), pool.end(),
                        [&](const LoadedProblem& x, const auto& y) { return bytes(x) < bytes(y); });
  std::mt19937_64 random(options.seed);
  while (absl::Now() < options.until) RunUnary(stub, smallest, random() % 8 == 0, counts);
}

void RunStreamLoad(pb::GemmService::Stub& stub, const std::vector<LoadedProblem>& pool,
                   const StreamOptions& options, Counts& counts) {
  std::mt19937_64 random(options.seed);
  while (absl::Now() < options.until) {
    Session(stub, pool, options, random(), counts).Run();
    for (int i = 0; i < 4; ++i) {
      const LoadedProblem& loaded = pool[random() % pool.size()];
      if (FitsUnary(*loaded.problem)) RunUnary(stub, loaded, random() % 8 == 0, counts);
    }
  }
}

absl::StatusOr<std::string> PutOperand(pb::GemmService::Stub& stub, const PoolOperand& operand,
                                       const std::string& device, absl::Duration ttl) {
  grpc::ClientContext context;
  pb::PutMatrixResponse response;
  const auto writer = stub.PutMatrix(&context, &response);
  pb::PutMatrixRequest request;
  *request.mutable_header()->mutable_shape() = operand.shape;
  request.mutable_header()->set_device(device);
  if (ttl != absl::InfiniteDuration()) {
    SetDuration(ttl, request.mutable_header()->mutable_keep()->mutable_ttl());
  }
  bool ok = writer->Write(request);
  for (size_t at = 0; ok && at < operand.bytes.size(); at += kChunk) {
    request.mutable_chunk()->set_offset(at);
    request.mutable_chunk()->set_data(operand.bytes.data() + at,
                                      std::min(kChunk, operand.bytes.size() - at));
    ok = writer->Write(request);
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) return FromGrpc(status);
  return response.matrix().id();
}

absl::StatusOr<std::string> TakeMatrix(pb::GemmService::Stub& stub, const std::string& id) {
  grpc::ClientContext context;
  pb::GetMatrixRequest request;
  request.mutable_matrix()->set_id(id);
  request.mutable_matrix()->set_release(true);
  const auto reader = stub.GetMatrix(&context, request);
  pb::GetMatrixResponse piece;
  std::string bytes;
  while (reader->Read(&piece)) bytes += piece.data();
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return FromGrpc(status);
  return bytes;
}

}  // namespace gemmd::soak
