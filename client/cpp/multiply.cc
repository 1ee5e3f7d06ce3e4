#include "client/cpp/multiply.h"

#include <algorithm>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/product_messages.h"
#include "client/cpp/result_place.h"
#include "client/cpp/retries.h"
#include "client/cpp/run_task.h"
#include "client/cpp/stripes.h"
#include "client/cpp/task.h"
#include "client/cpp/transfer.h"
#include "client/cpp/wire.h"

namespace gemmd::client {
namespace {

using ::gemm::v1::GemmService;
using ::gemm::v1::GetServerInfoRequest;
using ::gemm::v1::GetServerInfoResponse;
using ::gemm::v1::MatrixInfo;
using ::gemm::v1::MultiplyRequest;
using ::gemm::v1::MultiplyResponse;
using ::gemm::v1::MultiplyResult;
using ::gemm::v1::MultiplyUnaryRequest;
using ::gemm::v1::MultiplyUnaryResponse;

void StartAttempt(Connection& connection, std::shared_ptr<const Product> product,
                  const CallOptions& options, std::shared_ptr<Retries> retries, MultiplyDone done);

bool Releases(const std::optional<Operand>& operand) {
  const auto* resident = operand ? std::get_if<Resident>(&*operand) : nullptr;
  return resident != nullptr && resident->release;
}

// What the library itself keeps has a name of its own for each attempt.
Repeated RepeatedRun(const Product& product) {
  const bool same = !product.result.keep && !Releases(product.a) && !Releases(product.b) &&
                    !Releases(product.c) && !Releases(product.bias);
  return same ? Repeated::kSame : Repeated::kDifferent;
}

std::shared_ptr<Retries> RetriesFor(Connection& connection, const Product& product) {
  return std::make_shared<Retries>(connection.options().retry, connection.retry_budget(),
                                   RepeatedRun(product));
}

constexpr char kMultiply[] = "/gemm.v1.GemmService/Multiply";

// An older server names no roles, and has none.
bool MayKeep(const ServerInfo& server) {
  const auto& roles = server.caller().roles();
  return roles.empty() || std::find(roles.begin(), roles.end(), "matrices") != roles.end();
}

PlanLimits LimitsOf(const Connection& connection) {
  const ClientOptions& options = connection.options();
  return {.chunk_bytes = connection.chunk_bytes(),
          .unary_threshold_bytes = options.unary_threshold_bytes,
          .stripe_threshold_bytes = options.stripe_threshold_bytes,
          .server_message_bytes = connection.server_message_bytes(),
          .client_message_bytes = options.max_message_bytes,
          .channels = connection.channels(),
          .may_keep = MayKeep(connection.server()),
          .max_batch_count = connection.server().limits().max_batch_count(),
          .devices = connection.server().devices_size()};
}

// One product under way. Its task holds it; the RPCs' callbacks share it.
class MultiplyOp : public std::enable_shared_from_this<MultiplyOp> {
 public:
  MultiplyOp(Connection& connection, ProductPlan plan, std::shared_ptr<const Product> product,
             const CallOptions& options, std::shared_ptr<Retries> retries, MultiplyDone done)
      : connection_(connection),
        plan_(std::move(plan)),
        product_(std::move(product)),
        options_(options),
        retries_(std::move(retries)),
        done_(std::move(done)),
        place_(plan_, &result_.matrix) {}

  void Start();

 private:
  // The steps of a striped product.
  void UploadOperands();
  void UploadTo(const GetServerInfoResponse& server);
  void MultiplyByReference();
  void FetchResult();

  void RunUnary();
  void RunStream();
  absl::Status TakeStreamMessage(const grpc::ByteBuffer& message);
  // The job has ended well; its result may still have to be fetched.
  void JobDone();
  void Finish(const absl::Status& status);
  void TryAgain(CallOptions rest, absl::Duration wait, const MultiplyDone& done);
  // What the library keeps for this product goes under a name of its own.
  ::gemm::v1::Keep KeepForTransfer();
  // Deletes what a failed product may have left on the server.
  void CleanUp();

  Connection& connection_;
  ProductPlan plan_;
  const std::shared_ptr<const Product> product_;
  const CallOptions options_;
  const std::shared_ptr<Retries> retries_;  // of all attempts at this product
  MultiplyDone done_;
  std::shared_ptr<Task> task_;

  ProductResult result_;
  ResultPlace place_;
  bool job_done_ = false;  // reactions of the product's RPC alone
  bool ran_ = false;       // written before the download begins, read at the task's end
  // Names of what the library keeps on the server for this product. Names, as an
  // id may never come to be known: a call can end well on the server just as its
  // caller gives up.
  const std::string folder_ = NewTransferId();
  std::mutex mutex_;
  std::vector<std::string> kept_names_;  // under mutex_
};

void MultiplyOp::Start() {
  result_.transport = plan_.transport;
  task_ = Task::Begin(
      connection_, options_, "Multiply",
      [self = shared_from_this()](const absl::Status& status) { self->Finish(status); });
  switch (plan_.transport) {
    case Transport::kUnary:
      RunUnary();
      break;
    case Transport::kStriped:
      UploadOperands();
      break;
    default:
      RunStream();
  }
  task_->Drop();
}

void MultiplyOp::UploadOperands() {
  const bool any = std::any_of(plan_.sent.begin(), plan_.sent.end(),
                               [](const SentOperand& sent) { return sent.striped; });
  if (!any) return MultiplyByReference();
  if (connection_.server().devices_size() < 2) return UploadTo(connection_.server());
  // Which devices are healthy has to be known now, not when the client connected.
  const auto request = std::make_shared<GetServerInfoRequest>();
  task_->Unary<GetServerInfoResponse>(
      [&](grpc::ClientContext* context, GetServerInfoResponse* response, auto completion) {
        connection_.stub(connection_.NextChannel())
            .async()
            ->GetServerInfo(context, request.get(), response,
                            [request, completion](grpc::Status status) { completion(status); });
      },
      [self = shared_from_this()](absl::Status status, GetServerInfoResponse& server) {
        if (!status.ok()) return self->task_->Fail(std::move(status));
        self->UploadTo(server);
      });
}

void MultiplyOp::UploadTo(const GetServerInfoResponse& server) {
  std::vector<SentOperand*> striped;
  for (SentOperand& sent : plan_.sent) {
    if (sent.striped) striped.push_back(&sent);
  }
  ::gemm::v1::PutMatrixHeader header;
  header.set_device(connection_.PickDevice(server));
  const auto join = std::make_shared<Join>(
      striped.size(), [self = shared_from_this()] { self->MultiplyByReference(); });
  for (SentOperand* sent : striped) {
    *header.mutable_shape() = ToProto(sent->view.shape);
    *header.mutable_keep() = KeepForTransfer();
    const std::vector<Stripe> stripes =
        PlanStripes(sent->view.shape.bytes(), connection_.channels(), connection_.chunk_bytes(),
                    connection_.NextChannel());
    Upload(task_, header, sent->view, stripes,
           [self = shared_from_this(), join, role = sent->role](const MatrixInfo& info) {
             {
               std::lock_guard<std::mutex> lock(self->mutex_);
               auto& reference = *MutableOperand(self->plan_.product, role)->mutable_matrix();
               reference.set_id(info.id());
               reference.set_release(true);
             }
             join->Done();
           });
  }
}

void MultiplyOp::MultiplyByReference() {
  if (plan_.striped_result) {
    plan_.product.mutable_result()->set_stream(false);
    *plan_.product.mutable_result()->mutable_keep() = KeepForTransfer();
  }
  bool payload_left = false;
  for (const SentOperand& sent : plan_.sent) payload_left = payload_left || !sent.striped;
  if (payload_left || plan_.product.result().stream()) {
    RunStream();
  } else {
    RunUnary();
  }
}

void MultiplyOp::RunUnary() {
  auto request = std::make_shared<MultiplyUnaryRequest>(UnaryRequest(plan_));
  task_->Unary<MultiplyUnaryResponse>(
      [&](grpc::ClientContext* context, MultiplyUnaryResponse* response, auto completion) {
        connection_.stub(connection_.NextChannel())
            .async()
            ->MultiplyUnary(context, request.get(), response,
                            [request, completion](grpc::Status status) { completion(status); });
      },
      [self = shared_from_this()](absl::Status status, MultiplyUnaryResponse& response) {
        if (status.ok()) status = TakeUnaryResponse(response, self->place_, self->result_);
        if (!status.ok()) return self->task_->Fail(std::move(status));
        self->JobDone();
      });
}

void MultiplyOp::RunStream() {
  if (place_.wanted() && plan_.result_shape) task_->AddTotal(plan_.result_shape->bytes());
  RawCallSpec call{.method = kMultiply};
  call.next = [source = std::make_shared<StreamSource>(plan_, *task_),
               task = task_](grpc::ByteBuffer* message) { return source->Next(*task, message); };
  call.on_message = [self = shared_from_this()](const grpc::ByteBuffer& message) {
    return self->TakeStreamMessage(message);
  };
  call.on_done = [self = shared_from_this()](const absl::Status& status) {
    if (!status.ok()) return;
    if (!self->job_done_) {
      return self->task_->Fail(absl::InternalError("the server ended the stream without a result"));
    }
    self->JobDone();
  };
  task_->Stream(connection_.NextChannel(), std::move(call));
}

absl::Status MultiplyOp::TakeStreamMessage(const grpc::ByteBuffer& message) {
  MultiplyResponse other;
  const absl::StatusOr<std::optional<Piece>> piece = ParseMultiplyResponse(message, &other);
  if (!piece.ok()) return piece.status();
  if (*piece) {
    task_->AddDone((*piece)->bytes);
    return place_.Put(message, **piece);
  }
  if (other.has_error()) return FromJobError(other.error());
  if (!other.has_result()) return absl::OkStatus();
  MultiplyResult& result = *other.mutable_result();
  result_.report = std::move(*result.mutable_report());
  if (result.has_kept()) result_.kept = std::move(*result.mutable_kept());
  job_done_ = true;
  return place_.Complete(FromProto(result_.report.result_shape()));
}

void MultiplyOp::JobDone() {
  ran_ = true;
  {
    // The job has released its operands; of its result the name is the last one.
    std::lock_guard<std::mutex> lock(mutex_);
    kept_names_.erase(kept_names_.begin(), kept_names_.end() - (plan_.striped_result ? 1 : 0));
  }
  if (plan_.striped_result) FetchResult();
}

void MultiplyOp::FetchResult() {
  if (!result_.kept) {
    return task_->Fail(absl::InternalError("the server did not say where it kept the result"));
  }
  absl::StatusOr<std::byte*> to = place_.Prepare(*plan_.result_shape);
  if (!to.ok()) return task_->Fail(to.status());
  DownloadSpec spec{.shape = *plan_.result_shape, .to = *to, .remove = true};
  spec.matrix.set_id(result_.kept->id());
  spec.stripes = PlanStripes(spec.shape.bytes(), connection_.channels(), connection_.chunk_bytes(),
                             connection_.NextChannel());
  // The library kept it, the user did not ask for that.
  result_.kept.reset();
  Download(task_, spec, [](const MatrixInfo&) {});
}

void MultiplyOp::Finish(const absl::Status& status) {
  const MultiplyDone done = std::move(done_);
  if (status.ok()) {
    result_.bytes_sent = plan_.payload_bytes;
    result_.bytes_received = plan_.fetch ? place_.bytes() : 0;
    result_.elapsed = absl::Now() - retries_->begun();
    return done(std::move(result_));
  }
  CleanUp();
  // What the job has released or kept is not there, or there already, for another attempt.
  if (ran_ && RepeatedRun(*product_) == Repeated::kDifferent) return done(status);
  // The store may be full, or the caller's open calls too many, where the job itself would fit: it
  // goes as one stream then.
  CallOptions again = options_;
  if (absl::IsResourceExhausted(status) && plan_.transport == Transport::kStriped &&
      options_.transport == Transport::kAuto) {
    again.transport = Transport::kStream;
    if (!RetryDelay(status).has_value()) {
      again.timeout = task_->deadline() - absl::Now();
      return StartAttempt(connection_, product_, again, retries_, done);
    }
  }
  if (const auto wait = retries_->Next(status, task_->deadline())) {
    return TryAgain(again, *wait, done);
  }
  done(status);
}

// Everything that this attempt kept on the server has a name of its own, and is deleted.
void MultiplyOp::TryAgain(CallOptions rest, absl::Duration wait, const MultiplyDone& done) {
  const absl::Time deadline = task_->deadline();
  rest.timeout = deadline - absl::Now();
  const auto waiting =
      Task::Begin(connection_, rest, "Multiply",
                  [self = shared_from_this(), rest, deadline, done](const absl::Status& status) {
                    if (!status.ok()) return done(status);
                    CallOptions again = rest;
                    again.timeout = deadline - absl::Now();
                    StartAttempt(self->connection_, self->product_, again, self->retries_, done);
                  });
  waiting->Wait(wait);
  waiting->Drop();
}

::gemm::v1::Keep MultiplyOp::KeepForTransfer() {
  ::gemm::v1::Keep keep;
  *keep.mutable_ttl() = ToProto(connection_.options().transfer_ttl);
  std::lock_guard<std::mutex> lock(mutex_);
  // One folder of names a product: the server keeps those on one device.
  keep.set_name(absl::StrCat("transfer/", folder_, "/", kept_names_.size()));
  kept_names_.push_back(keep.name());
  return keep;
}

void MultiplyOp::CleanUp() {
  std::vector<std::string> left;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    left.swap(kept_names_);
  }
  for (const std::string& name : left) {
    ::gemm::v1::MatrixRef matrix;
    matrix.set_name(name);
    connection_.DeleteInBackground(std::move(matrix));
  }
}

void StartAttempt(Connection& connection, std::shared_ptr<const Product> product,
                  const CallOptions& options, std::shared_ptr<Retries> retries, MultiplyDone done) {
  absl::StatusOr<ProductPlan> plan = PlanProduct(*product, options.transport, LimitsOf(connection));
  if (!plan.ok()) return done(plan.status());
  std::make_shared<MultiplyOp>(connection, *std::move(plan), std::move(product), options,
                               std::move(retries), std::move(done))
      ->Start();
}

// A small product, on the caller's own thread.
absl::StatusOr<ProductResult> OneMessage(Connection& connection, const ProductPlan& plan,
                                         const CallOptions& options) {
  ProductResult result;
  MultiplyUnaryResponse response;
  absl::Status status = connection.Call(&GemmService::Stub::MultiplyUnary, "Multiply", options,
                                        UnaryRequest(plan), &response);
  if (!status.ok()) return status;
  ResultPlace place(plan, &result.matrix);
  status = TakeUnaryResponse(response, place, result);
  if (!status.ok()) return status;
  result.bytes_sent = plan.payload_bytes;
  result.bytes_received = place.bytes();
  return result;
}

}  // namespace

void StartMultiply(Connection& connection, std::shared_ptr<const Product> product,
                   const CallOptions& options, MultiplyDone done) {
  std::shared_ptr<Retries> retries = RetriesFor(connection, *product);
  StartAttempt(connection, std::move(product), options, std::move(retries), std::move(done));
}

absl::StatusOr<ProductResult> BlockingMultiply(Connection& connection, const Product& product,
                                               const CallOptions& options) {
  absl::StatusOr<ProductPlan> plan = PlanProduct(product, options.transport, LimitsOf(connection));
  if (!plan.ok()) return plan.status();
  if (plan->transport == Transport::kUnary) {
    const absl::Time begun = absl::Now();
    absl::StatusOr<ProductResult> result =
        Tried(connection, options, "Multiply", RepeatedRun(product),
              [&](const CallOptions& rest) { return OneMessage(connection, *plan, rest); });
    if (result.ok()) result->elapsed = absl::Now() - begun;
    return result;
  }
  // Shared: the task may still be inside it when this function has returned.
  const auto promise = std::make_shared<std::promise<absl::StatusOr<ProductResult>>>();
  std::make_shared<MultiplyOp>(
      connection, *std::move(plan), std::make_shared<const Product>(product), options,
      RetriesFor(connection, product),
      [promise](absl::StatusOr<ProductResult> result) { promise->set_value(std::move(result)); })
      ->Start();
  return promise->get_future().get();
}

}  // namespace gemmd::client
