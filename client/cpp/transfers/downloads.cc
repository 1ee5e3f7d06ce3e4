#include "client/cpp/transfers/downloads.h"

#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls/connection.h"

namespace gemmd::client {
namespace {

using ::gemm::v1::DeleteMatrixRequest;
using ::gemm::v1::DeleteMatrixResponse;
using ::gemm::v1::GetMatrixRequest;
using ::gemm::v1::GetMatrixResponse;
using ::gemm::v1::MatrixInfo;
using ::gemm::v1::MatrixRef;

constexpr char kGetMatrix[] = "/gemm.v1.GemmService/GetMatrix";

using ThenInfo = std::function<void(const MatrixInfo&)>;
// Told the id of a matrix by the first stripe that the server has found it for.
using OnFound = std::function<void(const std::string& id)>;

// The answers to the stripes of one download. Shared by their RPCs.
class DownloadState {
 public:
  DownloadState(std::shared_ptr<Task> task, const DownloadSpec& spec, ThenInfo then)
      : task_(std::move(task)),
        spec_(spec),
        then_(std::move(then)),
        held_(spec.stripes.size(), [this] { Remove(); }),
        join_(spec.stripes.size(), [this] { End(); }) {}

  // A stripe's first message: the server holds the matrix for it now.
  absl::Status Held(const MatrixInfo& info, const OnFound& on_found) {
    const Shape shape = FromProto(info.shape());
    if (!(shape == spec_.shape)) {
      return absl::InvalidArgumentError(absl::StrCat("the shape given is ", ToString(spec_.shape),
                                                     "; the matrix is ", ToString(shape)));
    }
    bool first = false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      first = !std::exchange(found_, true);
      if (!first && info.id() != info_.id()) {
        return absl::InternalError(absl::StrCat("the server sent parts of two matrices, id '",
                                                info_.id(), "' and id '", info.id(), "'"));
      }
      info_ = info;
    }
    if (first && spec_.found != nullptr) *spec_.found = true;
    if (first && on_found) on_found(info.id());
    if (spec_.remove && spec_.stripes.size() > 1) held_.Done();
    return absl::OkStatus();
  }
  void Done() { join_.Done(); }

 private:
  // Runs while the stripes are still on their way.
  void Remove() {
    MatrixRef matrix;
    matrix.set_id(info_.id());
    Delete(task_, matrix);
  }
  void End() {
    if (!task_->failed()) then_(info_);
  }

  const std::shared_ptr<Task> task_;
  const DownloadSpec spec_;
  const ThenInfo then_;
  std::mutex mutex_;
  bool found_ = false;
  MatrixInfo info_;
  Join held_;
  Join join_;
};

// The memory that one GetMatrix call reads into.
struct GetCall {
  RangeSink sink;
  bool held = false;
};

// One GetMatrix call for one stripe.
void GetStripe(const std::shared_ptr<Task>& task, const DownloadSpec& spec, const MatrixRef& matrix,
               const Stripe& stripe, const std::shared_ptr<DownloadState>& state,
               const OnFound& on_found) {
  GetMatrixRequest request;
  *request.mutable_matrix() = matrix;
  request.mutable_matrix()->set_release(spec.remove && spec.stripes.size() == 1);
  if (spec.stripes.size() > 1) {
    request.mutable_range()->set_offset(stripe.offset);
    request.mutable_range()->set_length(stripe.length);
  }
  const auto get =
      std::make_shared<GetCall>(GetCall{.sink = RangeSink(spec.to, stripe.offset, stripe.length)});
  RawCallSpec call{.method = kGetMatrix, .next = OnlyMessage(Serialize(request))};
  call.on_message = [task, state, get, on_found](const grpc::ByteBuffer& message) {
    GetMatrixResponse fields;
    const absl::StatusOr<Piece> piece = ParseGetMatrixResponse(message, &fields);
    if (!piece.ok()) return piece.status();
    if (!std::exchange(get->held, true)) {
      absl::Status status = state->Held(fields.matrix(), on_found);
      if (!status.ok()) return status;
    }
    if (piece->bytes == 0) return absl::OkStatus();
    absl::Status status = get->sink.Take(message, *piece);
    if (status.ok()) task->AddDone(piece->bytes);
    return status;
  };
  call.on_done = [task, state, get](const absl::Status& status) {
    if (status.ok()) task->Fail(get->sink.CheckComplete());
    state->Done();
  };
  task->Stream(stripe.channel, std::move(call));
}

}  // namespace

absl::Status RangeSink::Take(const grpc::ByteBuffer& message, const Piece& piece) {
  if (piece.offset != next_ || piece.bytes > end_ - next_) {
    return absl::InternalError(absl::StrCat("the server sent bytes ", piece.offset, " to ",
                                            piece.offset + piece.bytes, "; bytes ", next_,
                                            " to at most ", end_, " were to follow"));
  }
  next_ += piece.bytes;
  return CopyPiece(message, piece, data_ + piece.offset);
}

absl::Status RangeSink::CheckComplete() const {
  if (next_ == end_) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the server ended before byte ", end_, ": bytes from ", next_, " are missing"));
}

void Download(const std::shared_ptr<Task>& task, const DownloadSpec& spec, ThenInfo then) {
  task->AddTotal(spec.shape.bytes());
  const auto state = std::make_shared<DownloadState>(task, spec, std::move(then));
  const auto get = [task, spec, state](const MatrixRef& matrix, size_t begin, size_t end,
                                       const OnFound& on_found) {
    for (size_t i = begin; i < end; ++i) {
      GetStripe(task, spec, matrix, spec.stripes[i], state, on_found);
    }
  };
  const size_t stripes = spec.stripes.size();
  if (spec.matrix.has_id()) return get(spec.matrix, 0, stripes, nullptr);
  get(spec.matrix, 0, 1, [get, stripes](const std::string& id) {
    MatrixRef matrix;
    matrix.set_id(id);
    get(matrix, 1, stripes, nullptr);
  });
}

void DownloadWhole(const std::shared_ptr<Task>& task, const MatrixRef& matrix, Place place,
                   ThenInfo then) {
  struct Whole {
    MatrixInfo info;
    std::optional<RangeSink> sink;
  };
  const auto whole = std::make_shared<Whole>();
  GetMatrixRequest request;
  *request.mutable_matrix() = matrix;
  RawCallSpec call{.method = kGetMatrix, .next = OnlyMessage(Serialize(request))};
  call.on_message = [task, whole, place = std::move(place)](const grpc::ByteBuffer& message) {
    GetMatrixResponse fields;
    const absl::StatusOr<Piece> piece = ParseGetMatrixResponse(message, &fields);
    if (!piece.ok()) return piece.status();
    if (!whole->sink) {
      whole->info = fields.matrix();
      const absl::StatusOr<std::byte*> to = place(whole->info);
      if (!to.ok()) return to.status();
      const uint64_t bytes = FromProto(whole->info.shape()).bytes();
      whole->sink.emplace(*to, 0, bytes);
      task->AddTotal(bytes);
    }
    if (piece->bytes == 0) return absl::OkStatus();
    task->AddDone(piece->bytes);
    return whole->sink->Take(message, *piece);
  };
  call.on_done = [task, whole, then = std::move(then)](const absl::Status& status) {
    if (!status.ok()) return;
    if (!whole->sink) return task->Fail(absl::InternalError("the server sent no matrix"));
    absl::Status complete = whole->sink->CheckComplete();
    if (!complete.ok()) return task->Fail(std::move(complete));
    then(whole->info);
  };
  task->Stream(task->connection().NextChannel(), std::move(call));
}

void Delete(const std::shared_ptr<Task>& task, const MatrixRef& matrix) {
  DeleteMatrixRequest request;
  *request.mutable_matrix() = matrix;
  CallUnary(task, &AsyncStub::DeleteMatrix, std::move(request),
            [task](absl::Status status, DeleteMatrixResponse&) {
              if (!absl::IsNotFound(status)) task->Fail(std::move(status));
            });
}

void Stat(const std::shared_ptr<Task>& task, const ::gemm::v1::MatrixRef& matrix, ThenInfo then) {
  GetMatrixRequest request;
  *request.mutable_matrix() = matrix;
  request.mutable_matrix()->set_release(false);
  request.mutable_range()->set_length(1);
  const auto info = std::make_shared<std::optional<MatrixInfo>>();
  RawCallSpec call{.method = kGetMatrix, .next = OnlyMessage(Serialize(request))};
  call.on_message = [info](const grpc::ByteBuffer& message) {
    GetMatrixResponse fields;
    const absl::StatusOr<Piece> piece = ParseGetMatrixResponse(message, &fields);
    if (piece.ok() && !*info) *info = fields.matrix();
    return piece.status();
  };
  call.on_done = [task, info, then = std::move(then)](const absl::Status& status) {
    if (!status.ok()) return;
    if (!*info) return task->Fail(absl::InternalError("the server said nothing of the matrix"));
    then(**info);
  };
  task->Stream(task->connection().NextChannel(), std::move(call));
}

}  // namespace gemmd::client
