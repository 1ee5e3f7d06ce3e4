#include "server/engine/transfer/result_download.h"

#include <algorithm>
#include <utility>

#include "server/base/clock.h"

namespace gemmd {

ResultDownload::ResultDownload(std::shared_ptr<MatrixMemory> source, uint64_t begin, uint64_t end,
                               ReceiverId receiver, Workers& answers,
                               absl::AnyInvocable<void(ResultPiece)> on_piece,
                               absl::AnyInvocable<void(absl::StatusOr<DownloadTimes>)> on_end)
    : begin_(begin),
      end_(end),
      receiver_(receiver),
      device_(*source->device),
      answers_(answers),
      source_(std::make_shared<Source>(Source{.matrix = std::move(source)})),
      next_(begin),
      delivered_(begin),
      on_piece_(std::move(on_piece)),
      on_end_(std::move(on_end)) {}

void ResultDownload::Start() {
  std::shared_ptr<Source> source;
  {
    MutexLock lock(mutex_);
    if (source_ == nullptr) return;
    source_->first_copy = device_.AcquireEvent();
    source_->last_copy = device_.AcquireEvent();
    source = source_;
  }
  absl::Status status = device_.download_stream().Record(*source->first_copy);
  source.reset();
  if (!status.ok()) return Fail(std::move(status));
  Pump();
}

void ResultDownload::StartStaged(StagingBlock block) {
  {
    MutexLock lock(mutex_);
    staged_ = true;
    next_ = end_;
    outstanding_ = 1;
    delivering_ = true;
    copied_.push_back({.offset = begin_, .bytes = end_ - begin_, .block = std::move(block)});
  }
  DeliverAll();
}

// Asks for the next block. One is asked for at a time, and its copy enqueued
// before the next is, so that the copies stay in order.
void ResultDownload::Pump() {
  StagingPool* staging = nullptr;
  {
    MutexLock lock(mutex_);
    // If it has ended, the device may be about to be destroyed.
    if (source_ == nullptr || acquiring_ || next_ == end_ || outstanding_ == kWindow) return;
    acquiring_ = true;
    staging = &device_.download_staging();
    place_ = staging->Queue(receiver_, [self = shared_from_this()](StagingBlock block) {
      self->Fetch(std::move(block));
    });
  }
  staging->Serve();
}

void ResultDownload::Fetch(StagingBlock block) {
  std::shared_ptr<Source> source;
  Copied copied{.block = std::move(block)};
  bool last = false;
  {
    MutexLock lock(mutex_);
    if (source_ == nullptr) return;
    source = source_;
    copied.offset = next_;
    copied.bytes = std::min<uint64_t>(end_ - next_, device_.download_staging().block_bytes());
    next_ += copied.bytes;
    last = next_ == end_;
    ++outstanding_;
  }
  EnqueueCopy(std::move(source), std::move(copied), last);
  {
    // Only now: a piece released on another thread must not enqueue the next copy before this one.
    MutexLock lock(mutex_);
    acquiring_ = false;
  }
  Pump();
}

void ResultDownload::EnqueueCopy(std::shared_ptr<Source> source, Copied copied, bool last) {
  Stream& stream = device_.download_stream();
  absl::Status status =
      stream.Download(source->matrix->pitched(), copied.offset, copied.bytes, copied.block.data());
  if (status.ok() && last) status = stream.Record(*source->last_copy);
  stream.Notify(
      [self = shared_from_this(), source = std::move(source), copied = std::move(copied),
       enqueued = std::move(status)](absl::Status status) mutable {
        status.Update(enqueued);
        source.reset();
        if (!status.ok()) return self->Fail(std::move(status));
        self->OnCopied(std::move(copied));
      },
      {.urgency = UrgencyOfPiece(last)});
}

void ResultDownload::OnCopied(Copied copied) {
  const bool small = copied.bytes <= kSmallBytes;
  const Urgency urgency = UrgencyOfPiece(copied.offset + copied.bytes == end_);
  bool here = false;
  {
    MutexLock lock(mutex_);
    // If it has ended, the device may be about to be destroyed.
    if (source_ == nullptr) return;
    here = small && !device_.CompletionThreadIsBusy();
    copied_.push_back(std::move(copied));
    if (std::exchange(delivering_, true)) return;
  }
  if (here) return DeliverAll();
  answers_.Schedule([self = shared_from_this()] { self->DeliverAll(); }, urgency);
}

void ResultDownload::DeliverAll() {
  while (true) {
    Copied copied;
    {
      MutexLock lock(mutex_);
      if (copied_.empty()) {
        delivering_ = false;
        break;
      }
      copied = std::move(copied_.front());
      copied_.pop_front();
    }
    Deliver(std::move(copied));
  }
  EndIfDone();
}

void ResultDownload::Deliver(Copied copied) {
  {
    MutexLock lock(mutex_);
    if (source_ == nullptr) return;
    delivered_ = copied.offset + copied.bytes;
    if (copied.offset == begin_) first_handed_over_ = SteadyNow();
    if (delivered_ == end_ && !staged_) {
      times_.device_to_host = device_.Elapsed(*source_->first_copy, *source_->last_copy);
    }
  }
  ResultPiece piece;
  piece.offset = copied.offset;
  piece.bytes = absl::MakeConstSpan(copied.block.data(), copied.bytes);
  piece.owner = std::shared_ptr<StagingBlock>(new StagingBlock(std::move(copied.block)),
                                              [self = shared_from_this()](StagingBlock* owned) {
                                                delete owned;
                                                self->OnPieceLetGo();
                                              });
  on_piece_(std::move(piece));
}

void ResultDownload::OnPieceLetGo() {
  {
    MutexLock lock(mutex_);
    --outstanding_;
  }
  EndIfDone();
  Pump();
}

void ResultDownload::EndIfDone() {
  absl::AnyInvocable<void(absl::StatusOr<DownloadTimes>)> end;
  DownloadTimes times;
  std::shared_ptr<Source> source;
  {
    MutexLock lock(mutex_);
    if (source_ == nullptr || delivering_ || delivered_ != end_ || outstanding_ != 0) return;
    source = std::exchange(source_, nullptr);
    end = std::exchange(on_end_, nullptr);
    times_.send = SteadyNow() - first_handed_over_;
    times = times_;
  }
  source.reset();
  end(times);
}

ResultDownload::End ResultDownload::Stop() {
  End end;  // outlives the lock, as the others do
  std::shared_ptr<Source> source;
  StagingPool::Place place;
  {
    MutexLock lock(mutex_);
    source = std::exchange(source_, nullptr);
    end = std::exchange(on_end_, nullptr);
    place = place_;
    if (source == nullptr || !acquiring_) return end;
  }
  device_.download_staging().Withdraw(place);
  return end;
}

void ResultDownload::Fail(absl::Status status) {
  if (End end = Stop()) end(std::move(status));
}

void ResultDownload::Abort() { Stop(); }

}  // namespace gemmd
