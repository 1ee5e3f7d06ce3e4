#include "client/cpp/products/block_streams.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/wire.h"
#include "client/cpp/products/product_messages.h"
#include "client/cpp/products/row_blocks.h"
#include "client/cpp/transfers/downloads.h"
#include "client/cpp/transfers/uploads.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;

// Jobs of a stream: one whose result comes back, one that is computed, one that is sent.
constexpr size_t kLiveJobs = 3;

uint64_t RowBytes(const Shape& shape) { return shape.bytes() / static_cast<uint64_t>(shape.rows); }

// One block, as a product to send.
ProductPlan BlockPlan(const ProductPlan& whole, const RowBlock& block) {
  ProductPlan plan;
  plan.product = whole.product;
  plan.product.mutable_row_block()->set_product_rows(whole.result_shape->rows);
  plan.product.mutable_result()->set_stream(true);
  for (const v1::OperandRole role : {v1::OPERAND_ROLE_B, v1::OPERAND_ROLE_BIAS}) {
    if (role == v1::OPERAND_ROLE_BIAS && !whole.product.has_bias()) continue;
    v1::Operand& operand = *MutableOperand(plan.product, role);
    // The other blocks need it, too.
    if (operand.has_matrix()) operand.mutable_matrix()->set_release(false);
  }
  for (const SentOperand& sent : whole.sent) {
    if (!GoesByRows(sent.role)) continue;
    SentOperand part = {.role = sent.role, .view = sent.view};
    part.view.data += static_cast<uint64_t>(block.first) * RowBytes(sent.view.shape);
    part.view.shape.rows = block.rows;
    MutableOperand(plan.product, sent.role)->mutable_shape()->set_rows(block.rows);
    plan.sent.push_back(std::move(part));
  }
  return plan;
}

// Deals the blocks to the streams, and collects what became of them. Thread-safe.
class Blocks {
 public:
  Blocks(std::shared_ptr<Task> task, BlockRun run, size_t streams)
      : task_(std::move(task)),
        run_(std::move(run)),
        begun_(count(), [this] { run_.all_begun(); }),
        streams_(streams, [this] { End(); }),
        reports_(count()) {}

  const std::shared_ptr<Task>& task() const { return task_; }
  const ProductPlan& plan() const { return run_.plan; }
  std::byte* to() const { return run_.to; }

  bool any_left() const { return next_ < count(); }
  std::optional<size_t> Take() {
    const size_t index = next_.fetch_add(1);
    if (index >= count()) return std::nullopt;
    return index;
  }
  // The block's result has begun to arrive.
  void Begun() { begun_.Done(); }
  void Ended(size_t index, v1::ProductReport report) {
    std::lock_guard<std::mutex> lock(mutex_);
    reports_[index] = std::move(report);
  }
  void StreamEnded() { streams_.Done(); }

 private:
  size_t count() const { return run_.plan.row_blocks.size(); }

  // After all streams: nobody else is here any more.
  void End() {
    if (task_->failed()) return;
    const absl::StatusOr<v1::ProductReport> report = MergeReports(reports_);
    if (!report.ok()) return task_->Fail(report.status());
    run_.then(*report);
  }

  const std::shared_ptr<Task> task_;
  const BlockRun run_;
  std::atomic<size_t> next_{0};
  Join begun_;
  Join streams_;
  std::mutex mutex_;
  std::vector<v1::ProductReport> reports_;  // under mutex_; by block
};

// One Multiply call, and the blocks that it has taken. gRPC calls Next from one thread at a time,
// and Take likewise, at the same time.
class BlockStream {
 public:
  BlockStream(std::shared_ptr<Blocks> blocks, size_t most_live)
      : blocks_(std::move(blocks)), most_live_(most_live) {}

  NextMessage Next(grpc::ByteBuffer* message) {
    if (!sending_) {
      if (live() >= most_live_ && blocks_->any_left()) return NextMessage::kLater;
      const std::optional<size_t> index = blocks_->Take();
      if (!index) return NextMessage::kNone;
      Open(*index);
    }
    sending_->Next(*blocks_->task(), message);
    if (sending_->done()) sending_.reset();
    return NextMessage::kMore;
  }

  absl::Status Take(const grpc::ByteBuffer& message) {
    v1::MultiplyResponse other;
    const absl::StatusOr<std::optional<Piece>> piece = ParseMultiplyResponse(message, &other);
    if (!piece.ok()) return piece.status();
    if (*piece) return TakePiece(message, **piece);
    if (other.has_error()) return FromJobError(other.error());
    if (other.has_result()) return Close(*other.mutable_result());
    return absl::OkStatus();
  }

  void End(const absl::Status& status) {
    if (status.ok() && live() > 0) {
      blocks_->task()->Fail(absl::InternalError("the server ended the stream without a result"));
    }
    blocks_->StreamEnded();
  }

 private:
  struct Live {
    size_t index = 0;
    RangeSink sink;
    bool begun = false;
  };

  static uint64_t JobId(size_t index) { return index + 1; }

  size_t live() {
    std::lock_guard<std::mutex> lock(mutex_);
    return live_.size();
  }

  void Open(size_t index) {
    const ProductPlan& plan = blocks_->plan();
    const RowBlock& block = plan.row_blocks[index];
    const uint64_t row_bytes = RowBytes(*plan.result_shape);
    RangeSink sink(blocks_->to() + static_cast<uint64_t>(block.first) * row_bytes, 0,
                   static_cast<uint64_t>(block.rows) * row_bytes);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      live_.emplace(JobId(index), Live{.index = index, .sink = sink});
    }
    sending_.emplace(JobId(index), BlockPlan(plan, block), *blocks_->task());
  }

  // The live job with this id, whose place Take alone changes; null: there is none.
  Live* Find(uint64_t job_id) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = live_.find(job_id);
    return it == live_.end() ? nullptr : &it->second;
  }

  absl::Status TakePiece(const grpc::ByteBuffer& message, const Piece& piece) {
    Live* const live = Find(piece.job_id);
    if (live == nullptr) return Unknown(piece.job_id);
    if (!std::exchange(live->begun, true)) blocks_->Begun();
    absl::Status status = live->sink.Take(message, piece);
    if (status.ok()) blocks_->task()->AddDone(piece.bytes);
    return status;
  }

  absl::Status Close(v1::MultiplyResult& result) {
    Live* const live = Find(result.job_id());
    if (live == nullptr) return Unknown(result.job_id());
    if (absl::Status status = live->sink.CheckComplete(); !status.ok()) return status;
    blocks_->Ended(live->index, std::move(*result.mutable_report()));
    std::lock_guard<std::mutex> lock(mutex_);
    live_.erase(result.job_id());
    return absl::OkStatus();
  }

  static absl::Status Unknown(uint64_t job_id) {
    return absl::InternalError(
        absl::StrCat("the server answered job ", job_id, ", which the stream does not have"));
  }

  const std::shared_ptr<Blocks> blocks_;
  const size_t most_live_;
  std::optional<JobSource> sending_;  // Next alone
  std::mutex mutex_;
  std::map<uint64_t, Live> live_;  // under mutex_; by job id, whose result is not complete
};

void StartStream(const std::shared_ptr<Blocks>& blocks, int channel, size_t most_live) {
  const auto stream = std::make_shared<BlockStream>(blocks, most_live);
  RawCallSpec call{.method = "/gemm.v1.GemmService/Multiply"};
  call.next = [stream](grpc::ByteBuffer* message) { return stream->Next(message); };
  call.on_message = [stream](const grpc::ByteBuffer& message) { return stream->Take(message); };
  call.on_done = [stream](const absl::Status& status) { stream->End(status); };
  blocks->task()->Stream(channel, std::move(call));
}

// Live jobs of each of `streams`, within what the server takes; 0: it does not say.
size_t MostLive(const v1::Limits& limits, size_t streams) {
  size_t most = kLiveJobs;
  if (limits.max_jobs_per_stream() > 0) {
    most = std::min<size_t>(most, limits.max_jobs_per_stream());
  }
  if (limits.max_jobs() > 0) most = std::min<size_t>(most, limits.max_jobs() / streams);
  return std::max<size_t>(most, 1);
}

}  // namespace

void MultiplyByRows(const std::shared_ptr<Task>& task, BlockRun run) {
  Connection& connection = task->connection();
  const size_t streams =
      std::min(static_cast<size_t>(connection.channels()), run.plan.row_blocks.size());
  for (const SentOperand& sent : run.plan.sent) {
    if (GoesByRows(sent.role)) task->AddTotal(sent.view.shape.bytes());
  }
  task->AddTotal(run.plan.result_shape->bytes());
  const auto blocks = std::make_shared<Blocks>(task, std::move(run), streams);
  const size_t most_live = MostLive(connection.server().limits(), streams);
  const int first = connection.NextChannel();
  for (size_t i = 0; i < streams; ++i) {
    StartStream(blocks, (first + static_cast<int>(i)) % connection.channels(), most_live);
  }
}

}  // namespace gemmd::client
