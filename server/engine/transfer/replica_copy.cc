#include "server/engine/transfer/replica_copy.h"

#include <algorithm>
#include <utility>

#include "server/base/clock.h"

namespace gemmd {
namespace {

// The bytes of one peer copy: a few milliseconds over PCIe. After each, an abort takes effect, and
// the uploads that share the stream have their turn.
constexpr size_t kPeerPieceBytes = 64 * kMiB;

}  // namespace

absl::StatusOr<ReplicaPin> PinReplica(EngineCore& core, const MatrixPin& pin, size_t device_index) {
  if (ReplicaPin there = core.store->PinReplica(pin, device_index)) return there;
  const std::shared_ptr<MatrixMemory>& from = pin.memory();
  absl::StatusOr<AdmissionTicket> ticket = core.admission->AdmitTransfer();
  if (!ticket.ok()) return ticket.status();
  absl::StatusOr<StoreReservation> room =
      core.store->ReserveReplica(device_index, from->shape.pitched_bytes());
  if (!room.ok()) return room.status();
  absl::StatusOr<std::shared_ptr<MatrixMemory>> to =
      core.AllocateMatrix(device_index, from->shape, Lifetime::kMatrix);
  if (!to.ok()) return to.status();
  auto replica = std::make_shared<ReplicaCopy>(from, *std::move(to), core, *std::move(ticket));
  return core.store->AddReplica(pin, *std::move(room), std::move(replica));
}

ReplicaCopy::ReplicaCopy(std::shared_ptr<MatrixMemory> from, std::shared_ptr<MatrixMemory> to,
                         EngineCore& core, AdmissionTicket ticket)
    : to_(std::move(to)),
      core_(core),
      route_(to_->device->CanCopyFrom(*from->device) ? CopyRoute::kPeer : CopyRoute::kHost) {
  MutexLock lock(mutex_);
  from_ = std::move(from);
  ticket_ = std::make_shared<AdmissionTicket>(std::move(ticket));
}

void ReplicaCopy::Await(absl::AnyInvocable<void(absl::Status)> done) {
  absl::Status ended;
  bool begins = false;
  {
    MutexLock lock(mutex_);
    begins = state_ == State::kIdle;
    if (begins) {
      state_ = State::kCopying;
      begun_ = SteadyNow();
    }
    ended = failure_;
    if (state_ == State::kCopying) waiting_.push_back(std::exchange(done, nullptr));
  }
  if (begins) Begin();
  if (done) done(std::move(ended));
}

void ReplicaCopy::Begin() {
  if (route_ == CopyRoute::kPeer) return CopyPieceFromPeer();
  CopyThroughHost();
}

// The way of a download, but that the pieces go up to the other device instead of out to a caller.
// The last piece is released when its copy there has ended.
void ReplicaCopy::CopyThroughHost() {
  std::shared_ptr<ResultDownload> download;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kCopying) return;
    download = std::make_shared<ResultDownload>(
        from_, 0, from_->shape.dense_bytes(), kPromptReceiver, *core_.answers,
        [ticket = ticket_, self = shared_from_this()](ResultPiece piece) {
          self->OnPiece(std::move(piece), ticket);
        },
        [self = shared_from_this()](absl::StatusOr<DownloadTimes> times) {
          self->End(times.status());
        });
    download_ = download;
  }
  download->Start();
}

void ReplicaCopy::OnPiece(ResultPiece piece, std::shared_ptr<AdmissionTicket> ticket) {
  Stream& stream = to_->device->upload_stream();
  absl::Status status =
      stream.Upload(piece.bytes.data(), to_->pitched(), piece.offset, piece.bytes.size());
  const bool last = piece.offset + piece.bytes.size() == to_->shape.dense_bytes();
  stream.Notify(
      [ticket = std::move(ticket), self = shared_from_this(), piece = std::move(piece),
       enqueued = std::move(status)](absl::Status status) mutable {
        status.Update(enqueued);
        if (!status.ok()) self->End(status);
        self->AddArrived(piece.bytes.size());
        piece = ResultPiece();  // before the ticket: it is of the other device
        self.reset();
      },
      {.urgency = UrgencyOfPiece(last)});
}

void ReplicaCopy::CopyPieceFromPeer() {
  std::shared_ptr<AdmissionTicket> ticket;
  std::shared_ptr<MatrixMemory> from;
  size_t offset = 0, bytes = 0;
  bool last = false;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kCopying) return;
    ticket = ticket_;
    from = from_;
    // With the gaps between lines: the pitch is the same on both sides.
    const size_t all = from->shape.pitched_bytes();
    offset = next_;
    bytes = std::min(kPeerPieceBytes, all - offset);
    next_ += bytes;
    last = next_ == all;
  }
  Stream& stream = to_->device->upload_stream();
  absl::Status status = stream.CopyFrom(*from->device, from->buffer.data() + offset,
                                        to_->buffer.data() + offset, bytes);
  stream.Notify(
      [ticket = std::move(ticket), self = shared_from_this(), from = std::move(from), bytes, last,
       enqueued = std::move(status)](absl::Status status) mutable {
        status.Update(enqueued);
        from.reset();
        self->AddArrived(bytes);
        if (!status.ok() || last) {
          self->End(status);
        } else {
          self->CopyPieceFromPeer();
        }
        self.reset();  // before the ticket
      },
      {.urgency = UrgencyOfPiece(last)});
}

void ReplicaCopy::AddArrived(uint64_t bytes) {
  MutexLock lock(mutex_);
  arrived_ += bytes;
}

void ReplicaCopy::Abort() {
  if (!complete()) End(absl::CancelledError("no job waits for the matrix's copy any more"));
}

void ReplicaCopy::End(const absl::Status& status) {
  std::shared_ptr<MatrixMemory> from;
  std::shared_ptr<AdmissionTicket> ticket;
  std::shared_ptr<ResultDownload> download;
  std::vector<absl::AnyInvocable<void(absl::Status)>> waiting;
  absl::Status outcome;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kComplete || state_ == State::kFailed) return;
    // Bytes from a device that is lost by now are not trusted.
    outcome = status.ok() ? from_->device->Health() : status;
    if (outcome.ok()) {
      core_.copy_times.Observe(route_, from_->shape.pitched_bytes(), SteadyNow() - begun_);
    }
    state_ = outcome.ok() ? State::kComplete : State::kFailed;
    failure_ = outcome;
    from = std::move(from_);
    ticket = std::move(ticket_);
    download = std::move(download_);
    waiting.swap(waiting_);
  }
  if (download != nullptr) download->Abort();
  download.reset();
  from.reset();
  for (absl::AnyInvocable<void(absl::Status)>& done : waiting) done(outcome);
}

uint64_t ReplicaCopy::missing_bytes() const {
  MutexLock lock(mutex_);
  if (state_ == State::kComplete) return 0;
  // At least one: it must not be read yet. Without the gaps between lines the bytes are fewer.
  const uint64_t all = to_->shape.pitched_bytes();
  return all - std::min(arrived_, all - 1);
}

bool ReplicaCopy::complete() const {
  MutexLock lock(mutex_);
  return state_ == State::kComplete;
}

bool ReplicaCopy::failed() const {
  MutexLock lock(mutex_);
  return state_ == State::kFailed;
}

}  // namespace gemmd
