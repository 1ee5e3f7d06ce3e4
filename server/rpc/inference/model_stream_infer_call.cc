#include "server/rpc/inference/model_stream_infer_call.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/rpc/calls/unary_product_call.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

// Clients that know models with many answers to a request look for it in each.
constexpr char kIsFinal[] = "triton_final_response";

}  // namespace

class ModelStreamInferCall::Answer final : public JobListener,
                                           public std::enable_shared_from_this<Answer> {
 public:
  explicit Answer(std::shared_ptr<ModelStreamInferCall> stream) : stream_(std::move(stream)) {}

  // Of the engine, one call at a time, after Open has written what they read.
  void OnResult(ResultPiece piece) override {
    if (product.result != nullptr) return product.result->Write(std::move(piece));
    data().append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
  }
  void OnDone(absl::StatusOr<JobResult> result) override {
    if (product.result == nullptr) return Finish(std::move(result));
    product.result->End(
        [self = shared_from_this(), result = std::move(result)](absl::Status written) mutable {
          if (result.ok() && !written.ok()) result = std::move(written);
          self->Finish(std::move(result));
        });
  }

  void Finish(absl::StatusOr<JobResult> result) {
    if (result.ok()) {
      inference::ModelInferResponse& out = *response_.mutable_infer_response();
      data();  // empty where the result is in a region: clients look for it
      FillAnswer(request, *model, product, result->report, out);
      (*out.mutable_parameters())[kIsFinal].set_bool_param(true);
      stream_->counters_.OnSuccess(caller->name, *model, result->report);
      End();
    } else {
      Fail(result.status());
    }
  }

  void Fail(const absl::Status& why) {
    if (model.has_value()) {
      stream_->counters_.OnFailure(caller->name, *model, SteadyNow() - began);
    }
    response_.mutable_infer_response()->Clear();
    response_.set_error_message(MessageOf(why));
    End();
  }

  std::string& data() {
    inference::ModelInferResponse& out = *response_.mutable_infer_response();
    return out.raw_output_contents_size() == 0 ? *out.add_raw_output_contents()
                                               : *out.mutable_raw_output_contents(0);
  }

  // Written by OnMessage and Open.
  inference::ModelInferRequest request;
  const absl::Time began = SteadyNow();
  CallerPtr caller;
  std::optional<Model> model;
  InferProduct product;

  grpc::ByteBuffer message;  // complete once `done`
  bool done = false;         // under the stream's lock, as is `job`
  std::shared_ptr<Job> job;  // from its start to its end
  size_t bytes = 0;          // under it, too: of the result, and then of the message

 private:
  void End() {
    if (request.id().size() <= kMaxIdBytes) {
      response_.mutable_infer_response()->set_id(request.id());
    }
    message = Serialize(response_);
    response_.Clear();
    std::shared_ptr<Job> ended;  // destroyed unlocked
    {
      MutexLock lock(stream_->mutex_);
      stream_->SetBytes(*this, message.Length());
      done = true;
      ended = std::move(job);
    }
    stream_->SendAnswers();
  }

  const std::shared_ptr<ModelStreamInferCall> stream_;
  inference::ModelStreamInferResponse response_;
};

ModelStreamInferCall* ModelStreamInferCall::Begin(ServiceContext& service, ModelCounters& counters,
                                                  SharedMemory& memory,
                                                  grpc::CallbackServerContext* call) {
  auto stream = std::make_shared<ModelStreamInferCall>(service, counters, memory, call);
  stream->GoLive();
  return stream.get();
}

bool ModelStreamInferCall::WantsRead() const {
  return input_open_ && leaving_.ok() && answers_.size() + unread_.size() < kMostUnderWay &&
         answer_bytes_ <= service_.limits.max_message_bytes / kPartOfMessage;
}

std::optional<absl::Status> ModelStreamInferCall::Outcome() const {
  if (outcome_.has_value()) return outcome_;  // it did not begin
  if ((input_open_ && leaving_.ok()) || !answers_.empty()) return std::nullopt;
  if (!stopped_.ok()) return WhyEnded();
  if (!input_error_.ok()) return input_error_;
  return input_open_ ? leaving_ : absl::OkStatus();
}

void ModelStreamInferCall::BeginDrain() {
  TakeNoMore(
      absl::UnavailableError("the server is draining; open the stream again elsewhere or "
                             "later"));
}

void ModelStreamInferCall::GrowOld() {
  TakeNoMore(absl::UnavailableError(absl::StrCat(
      "the stream is older than ", absl::FormatDuration(service_.limits.max_connection_age),
      " (the server's flag --max-connection-age); open another one")));
}

void ModelStreamInferCall::TakeNoMore(absl::Status why) {
  {
    MutexLock lock(mutex_);
    leaving_.Update(std::move(why));
  }
  Advance();
}

void ModelStreamInferCall::EndInput(absl::Status why) {
  MutexLock lock(mutex_);
  input_open_ = false;
  input_error_ = std::move(why);
}

void ModelStreamInferCall::OnWritten() {
  MutexLock lock(mutex_);
  answer_bytes_ -= unread_.front();
  unread_.pop_front();
}

void ModelStreamInferCall::SetBytes(Answer& answer, size_t bytes) {
  answer_bytes_ += bytes - answer.bytes;
  answer.bytes = bytes;
}

void ModelStreamInferCall::OnCancelled() {
  std::vector<std::shared_ptr<Job>> jobs;
  absl::Status why;
  {
    MutexLock lock(mutex_);
    why = WhyEnded();
    input_open_ = false;
    for (const std::shared_ptr<Answer>& answer : answers_) {
      if (answer->job != nullptr) jobs.push_back(answer->job);
    }
  }
  for (const std::shared_ptr<Job>& job : jobs) job->Cancel(why);
}

void ModelStreamInferCall::OnMessage(grpc::ByteBuffer& incoming) {
  auto answer = std::make_shared<Answer>(Self<ModelStreamInferCall>());
  absl::Status status = CheckMessageBytes("request", incoming.Length(), service_.limits);
  if (status.ok()) {
    status = DecodeInfer(incoming, answer->request);
    if (!status.ok()) return EndInput(std::move(status));
  }
  incoming.Clear();
  {
    MutexLock lock(mutex_);
    answers_.push_back(answer);
    status.Update(leaving_);
  }
  if (status.ok()) status = Open(answer);
  if (!status.ok()) answer->Fail(status);
}

absl::Status ModelStreamInferCall::Open(const std::shared_ptr<Answer>& answer) {
  absl::StatusOr<CallerPtr> caller = CallerNow();
  if (!caller.ok()) return caller.status();
  answer->caller = *std::move(caller);
  absl::StatusOr<Model> model =
      FindModel(answer->request.model_name(), answer->request.model_version(), *answer->caller);
  if (!model.ok()) return model.status();
  answer->model = *std::move(model);
  absl::StatusOr<InferProduct> product =
      ParseInfer(answer->request, *answer->model, memory_,
                 {*answer->caller, context_->peer(), answer->began, CallDeadline(*context_)});
  if (!product.ok()) return product.status();
  answer->product = *std::move(product);
  Charge(answer->product.RegionBytes());
  JobSpec& spec = answer->product.product.spec;
  spec.quota = QuotaNow(*answer->caller);
  spec.flow = FlowOf(*answer->caller);
  spec.check_result = [this, raw = answer.get()](const Shape& result) {
    if (raw->product.result != nullptr) {
      return CheckRegionBytes(result.dense_bytes(), *raw->product.result);
    }
    const absl::Status fits =
        CheckResultBytes(kOutputsField, result.dense_bytes(), service_.limits);
    if (!fits.ok()) return fits;
    {
      MutexLock lock(mutex_);
      SetBytes(*raw, result.dense_bytes());
    }
    raw->data().reserve(result.dense_bytes());
    return absl::OkStatus();
  };
  answer->product.version = VersionNow(service_, *answer->model);
  absl::StatusOr<std::shared_ptr<Job>> job = service_.engine.Admit(std::move(spec), answer);
  if (!job.ok()) return job.status();
  // As of ModelInferCall::OnAdmitted.
  if (answer->product.version != VersionNow(service_, *answer->model)) {
    answer->product.version.clear();
  }
  (*job)->Start();
  absl::Status cancelled;
  {
    MutexLock lock(mutex_);
    if (!answer->done) answer->job = *job;
    if (!stopped_.ok()) cancelled = WhyEnded();
  }
  if (!cancelled.ok()) (*job)->Cancel(std::move(cancelled));
  for (auto& [role, data] : answer->product.product.inline_data) {
    (*job)->Append(role, 0, std::move(data), []() {});
  }
  SendRegions(memory_, *job, answer->product);
  return absl::OkStatus();
}

void ModelStreamInferCall::SendAnswers() {
  std::vector<std::shared_ptr<Answer>> sent;  // destroyed unlocked
  {
    MutexLock lock(mutex_);
    while (!answers_.empty() && answers_.front()->done) {
      if (stopped_.ok()) {
        unread_.push_back(answers_.front()->bytes);
        outbox_.Push(answers_.front()->message);
      }
      sent.push_back(std::move(answers_.front()));
      answers_.pop_front();
    }
  }
  Advance();
}

}  // namespace gemmd
