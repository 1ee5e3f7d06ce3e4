#include "client/cpp/products/multiply_attempt.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/calls/clock.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/task.h"
#include "client/cpp/calls/to_proto.h"
#include "client/cpp/calls/wire.h"
#include "client/cpp/products/block_streams.h"
#include "client/cpp/products/plan_limits.h"
#include "client/cpp/products/product_messages.h"
#include "client/cpp/products/result_place.h"
#include "client/cpp/products/row_blocks.h"
#include "client/cpp/transfers/downloads.h"
#include "client/cpp/transfers/stripes.h"
#include "client/cpp/transfers/transfer_names.h"
#include "client/cpp/transfers/uploads.h"

namespace gemmd::client {
namespace {

using ::gemm::v1::GetServerInfoResponse;
using ::gemm::v1::MatrixInfo;
using ::gemm::v1::MatrixRef;
using ::gemm::v1::MultiplyResponse;
using ::gemm::v1::MultiplyResult;
using ::gemm::v1::MultiplyUnaryResponse;
using ::gemm::v1::ProductReport;

bool Releases(const std::optional<Operand>& operand) {
  const auto* resident = operand ? std::get_if<Resident>(&*operand) : nullptr;
  return resident != nullptr && resident->release;
}

constexpr char kMultiply[] = "/gemm.v1.GemmService/Multiply";

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
  using Uploads = std::vector<const SentOperand*>;
  Uploads UploadsWhere(bool (*wanted)(const SentOperand&)) const;

  // The steps of a striped product.
  void StartStriped();
  void MultiplyByReference();
  void FetchResult();
  // The steps of one in blocks of rows.
  void StartByRows();
  void UploadAndAsk(const std::string& device);
  void MultiplyInBlocks();
  void DeleteUploads();
  // Goes on as a striped product, with its first uploads under way or done.
  void GoStriped(const std::string& device, std::function<void()> then);

  // Calls `then` with a device for what is uploaded; empty: any.
  void WithDevice(std::function<void(const std::string& device)> then);
  void Upload(const Uploads& operands, const std::string& device, std::function<void()> then);
  void RunUnary();
  void RunStream();
  absl::Status TakeStreamMessage(const grpc::ByteBuffer& message);
  // The job has ended well; its result may still have to be fetched.
  void JobDone();
  void Finish(const absl::Status& status);
  void TryAgain(CallOptions rest, absl::Duration wait, const MultiplyDone& done);
  // The transport for a product that this one's has failed for with `status`.
  std::optional<Transport> PlainerTransport(const absl::Status& status) const;

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
  bool by_rows_ = false;   // as the server promised; written before the blocks begin
  TransferNames names_;
  std::mutex mutex_;  // guards the product of plan_ while operands are uploaded
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
      StartStriped();
      break;
    case Transport::kRowBlocks:
      StartByRows();
      break;
    default:
      RunStream();
  }
  task_->Drop();
}

MultiplyOp::Uploads MultiplyOp::UploadsWhere(bool (*wanted)(const SentOperand&)) const {
  Uploads uploads;
  for (const SentOperand& sent : plan_.sent) {
    if (sent.striped && wanted(sent)) uploads.push_back(&sent);
  }
  return uploads;
}

void MultiplyOp::StartStriped() {
  Uploads uploads = UploadsWhere([](const SentOperand&) { return true; });
  if (uploads.empty()) return MultiplyByReference();
  WithDevice([self = shared_from_this(), uploads = std::move(uploads)](const std::string& device) {
    self->Upload(uploads, device, [self] { self->MultiplyByReference(); });
  });
}

void MultiplyOp::WithDevice(std::function<void(const std::string& device)> then) {
  if (connection_.server().devices_size() < 2) {
    return then(connection_.PickDevice(connection_.server()));
  }
  // Which devices are healthy has to be known now, not when the client connected.
  CallUnary(task_, &AsyncStub::GetServerInfo, {},
            [self = shared_from_this(), then = std::move(then)](absl::Status status,
                                                                GetServerInfoResponse& server) {
              if (!status.ok()) return self->task_->Fail(std::move(status));
              then(self->connection_.PickDevice(server));
            });
}

void MultiplyOp::Upload(const Uploads& operands, const std::string& device,
                        std::function<void()> then) {
  if (operands.empty()) return then();
  ::gemm::v1::PutMatrixHeader header;
  header.set_device(device);
  const auto join = std::make_shared<Join>(operands.size(), std::move(then));
  for (const SentOperand* sent : operands) {
    *header.mutable_shape() = ToProto(sent->view.shape);
    *header.mutable_keep() = names_.Next(connection_.options().transfer_ttl);
    const std::vector<Stripe> stripes =
        PlanStripes(sent->view.shape.bytes(), connection_.channels(), connection_.chunk_bytes(),
                    connection_.NextChannel());
    client::Upload(task_, header, sent->view, stripes,
                   [self = shared_from_this(), join, role = sent->role](const MatrixInfo& info) {
                     {
                       std::lock_guard<std::mutex> lock(self->mutex_);
                       auto& reference =
                           *MutableOperand(self->plan_.product, role)->mutable_matrix();
                       reference.set_id(info.id());
                       reference.set_release(true);
                     }
                     join->Done();
                   });
  }
}

void MultiplyOp::StartByRows() {
  if (UploadsWhere([](const SentOperand& sent) { return !GoesByRows(sent.role); }).empty()) {
    return UploadAndAsk("");
  }
  WithDevice(
      [self = shared_from_this()](const std::string& device) { self->UploadAndAsk(device); });
}

// The answer is there long before B is.
void MultiplyOp::UploadAndAsk(const std::string& device) {
  const auto join = std::make_shared<Join>(2, [self = shared_from_this()] {
    self->by_rows_ ? self->MultiplyInBlocks() : self->MultiplyByReference();
  });
  AskForRowBlocks(task_, plan_, device, [self = shared_from_this(), join, device](bool promised) {
    self->by_rows_ = promised;
    if (promised) return join->Done();
    self->GoStriped(device, [join] { join->Done(); });
  });
  Upload(UploadsWhere([](const SentOperand& sent) { return !GoesByRows(sent.role); }), device,
         [join] { join->Done(); });
}

void MultiplyOp::GoStriped(const std::string& device, std::function<void()> then) {
  if (task_->failed()) return;
  const bool any = !UploadsWhere([](const SentOperand&) { return true; }).empty();
  plan_.transport = any || plan_.striped_result ? Transport::kStriped : Transport::kStream;
  result_.transport = plan_.transport;
  Upload(UploadsWhere([](const SentOperand& sent) { return GoesByRows(sent.role); }), device,
         std::move(then));
}

void MultiplyOp::MultiplyInBlocks() {
  absl::StatusOr<std::byte*> to = place_.Prepare(*plan_.result_shape);
  if (!to.ok()) return task_->Fail(to.status());
  MultiplyByRows(task_,
                 {.plan = plan_,
                  .to = *to,
                  .all_begun = [self = shared_from_this()] { self->DeleteUploads(); },
                  .then = [self = shared_from_this()](
                              const ProductReport& report) { self->result_.report = report; }});
}

// While results are still on their way. The names are kept, for where the task fails.
void MultiplyOp::DeleteUploads() {
  for (const MatrixRef& matrix : names_.All()) Delete(task_, matrix);
}

void MultiplyOp::MultiplyByReference() {
  if (plan_.striped_result) {
    plan_.product.mutable_result()->set_stream(false);
    *plan_.product.mutable_result()->mutable_keep() =
        names_.Next(connection_.options().transfer_ttl);
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
  CallUnary(task_, &AsyncStub::MultiplyUnary, UnaryRequest(plan_),
            [self = shared_from_this()](absl::Status status, MultiplyUnaryResponse& response) {
              if (status.ok()) status = TakeUnaryResponse(response, self->place_, self->result_);
              if (!status.ok()) return self->task_->Fail(std::move(status));
              self->JobDone();
            });
}

void MultiplyOp::RunStream() {
  if (place_.wanted() && plan_.result_shape) task_->AddTotal(plan_.result_shape->bytes());
  RawCallSpec call{.method = kMultiply};
  for (const SentOperand& sent : plan_.sent) {
    if (!sent.striped) task_->AddTotal(sent.view.shape.bytes());
  }
  call.next = [source = std::make_shared<JobSource>(kJobId, plan_, *task_),
               task = task_](grpc::ByteBuffer* message) {
    source->Next(*task, message);
    return source->done() ? NextMessage::kLast : NextMessage::kMore;
  };
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
  // The job has released its operands; of its result the name is the last one.
  names_.Forget(plan_.striped_result ? 1 : 0);
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
    place_.HandOver();
    result_.bytes_sent = plan_.payload_bytes;
    result_.bytes_received = plan_.fetch ? place_.bytes() : 0;
    result_.elapsed = SteadyNow() - retries_->begun();
    return done(std::move(result_));
  }
  names_.DeleteAll(connection_);
  // What the job has released or kept is not there, or there already, for another attempt.
  if (ran_ && RepeatedRun(*product_) == Repeated::kDifferent) return done(retries_->Told(status));
  CallOptions again = options_;
  if (const std::optional<Transport> plainer = PlainerTransport(status)) {
    again.transport = *plainer;
    if (!RetryDelay(status).has_value()) {
      again.timeout = task_->deadline() - SteadyNow();
      return StartAttempt(connection_, product_, again, retries_, done);
    }
  }
  if (const auto wait = retries_->Next(status, task_->deadline())) {
    return TryAgain(again, *wait, done);
  }
  done(retries_->Told(status));
}

// Everything that this attempt kept on the server has a name of its own, and is deleted.
void MultiplyOp::TryAgain(CallOptions rest, absl::Duration wait, const MultiplyDone& done) {
  const absl::Time deadline = task_->deadline();
  rest.timeout = deadline - SteadyNow();
  const auto waiting =
      Task::Begin(connection_, rest, "Multiply",
                  [self = shared_from_this(), rest, deadline, done](const absl::Status& status) {
                    if (!status.ok()) return done(status);
                    CallOptions again = rest;
                    again.timeout = deadline - SteadyNow();
                    StartAttempt(self->connection_, self->product_, again, self->retries_, done);
                  });
  waiting->Wait(wait);
  waiting->Drop();
}

std::optional<Transport> MultiplyOp::PlainerTransport(const absl::Status& status) const {
  const bool by_rows = plan_.transport == Transport::kRowBlocks;
  // The server's choice of a kernel has changed in between.
  if (by_rows && absl::IsFailedPrecondition(status)) return Transport::kStriped;
  // The store may be full, or the caller's open calls or jobs too many, where the job itself would
  // fit: it goes as one stream then.
  if (absl::IsResourceExhausted(status) && (by_rows || plan_.transport == Transport::kStriped) &&
      options_.transport == Transport::kAuto) {
    return Transport::kStream;
  }
  return std::nullopt;
}

}  // namespace

Repeated RepeatedRun(const Product& product) {
  const bool releases = Releases(product.a) || Releases(product.b) || Releases(product.c) ||
                        Releases(product.bias) || Releases(product.scales_a) ||
                        Releases(product.scales_b);
  return product.result.keep || releases ? Repeated::kDifferent : Repeated::kSame;
}

void StartPlanned(Connection& connection, ProductPlan plan, std::shared_ptr<const Product> product,
                  const CallOptions& options, std::shared_ptr<Retries> retries, MultiplyDone done) {
  std::make_shared<MultiplyOp>(connection, std::move(plan), std::move(product), options,
                               std::move(retries), std::move(done))
      ->Start();
}

void StartAttempt(Connection& connection, std::shared_ptr<const Product> product,
                  const CallOptions& options, std::shared_ptr<Retries> retries, MultiplyDone done) {
  absl::StatusOr<ProductPlan> plan = PlanProduct(*product, options.transport, LimitsOf(connection));
  if (!plan.ok()) return done(plan.status());
  StartPlanned(connection, *std::move(plan), std::move(product), options, std::move(retries),
               std::move(done));
}

}  // namespace gemmd::client
