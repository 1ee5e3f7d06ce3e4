#include "server/engine/transfer/payload_upload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

// Up to here a piece is copied where it arrives: cheaper than waking a thread.
constexpr size_t kInlineCopyBytes = 32 * kKiB;

}  // namespace

absl::Status CheckNextBytes(absl::string_view what, uint64_t offset, uint64_t bytes, uint64_t next,
                            uint64_t end) {
  if (bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the chunk at offset ", offset, " is empty"));
  }
  if (offset != next) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the chunk's offset is ", offset, ", but byte ", next,
                     offset < next ? " is next: chunks must not overlap"
                                   : " is next: chunks come in order, without gaps"));
  }
  if (bytes > end - next) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": a chunk of ", bytes,
                                                   " bytes at offset ", offset, " ends past byte ",
                                                   end, ", where it must end"));
  }
  return absl::OkStatus();
}

void CopyCord(const absl::Cord& from, std::byte* to) {
  for (const absl::string_view chunk : from.Chunks()) {
    std::memcpy(to, chunk.data(), chunk.size());
    to += chunk.size();
  }
}

PayloadUpload::PayloadUpload(std::string what, std::shared_ptr<MatrixMemory> target, uint64_t begin,
                             uint64_t end, Workers& workers,
                             absl::AnyInvocable<void(absl::Status)> on_enqueued)
    : what_(std::move(what)),
      begin_(begin),
      end_(end),
      workers_(workers),
      device_(*target->device),
      first_copy_(device_.AcquireEvent()),
      last_copy_(device_.AcquireEvent()),
      target_(std::move(target)),
      next_(begin),
      on_enqueued_(std::move(on_enqueued)) {}

absl::Status PayloadUpload::Append(uint64_t offset, absl::Cord bytes,
                                   absl::AnyInvocable<void()> consumed) {
  // Shared by the pieces; the last to be copied or dropped calls it.
  std::shared_ptr<void> when_consumed(
      nullptr, [call = std::make_shared<absl::AnyInvocable<void()>>(std::move(consumed))](void*) {
        if (*call) (*call)();
      });
  {
    MutexLock lock(mutex_);
    if (target_ == nullptr) return absl::OkStatus();
    absl::Status status = CheckNextBytes(what_, offset, bytes.size(), next_, end_);
    if (!status.ok()) return status;
    next_ += bytes.size();
  }
  StagingPool& staging = device_.upload_staging();
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), staging.block_bytes());
    absl::Cord piece = bytes.Subcord(0, size);
    bytes.RemovePrefix(size);
    staging.Acquire([self = shared_from_this(), offset, piece = std::move(piece),
                     when_consumed](StagingBlock block) mutable {
      self->Stage(offset, std::move(piece), std::move(when_consumed), std::move(block));
    });
    offset += size;
  }
  return absl::OkStatus();
}

void PayloadUpload::Stage(uint64_t offset, absl::Cord piece, std::shared_ptr<void> consumed,
                          StagingBlock block) {
  {
    MutexLock lock(mutex_);
    if (target_ == nullptr) return;
  }
  const size_t size = piece.size();
  auto copy = [self = shared_from_this(), offset, piece = std::move(piece),
               consumed = std::move(consumed), block = std::move(block)]() mutable {
    std::shared_ptr<MatrixMemory> target;
    {
      MutexLock lock(self->mutex_);
      target = self->target_;
    }
    if (target == nullptr) return;
    const uint64_t bytes = piece.size();
    CopyCord(piece, block.data());
    piece.Clear();  // the slices go back before `consumed` asks for more
    consumed.reset();

    absl::Status status = self->Enqueue(*target, offset, bytes, block.data());
    absl::AnyInvocable<void(absl::Status)> done;
    {
      MutexLock lock(self->mutex_);
      self->enqueued_bytes_ += bytes;
      const bool last = self->enqueued_bytes_ == self->end_ - self->begin_;
      // Before the notice, which wakes a host stream: after it the event might wait for the kernel.
      if (status.ok() && last) status = self->device_.upload_stream().Record(*self->last_copy_);
      if (!status.ok() || last) done = std::exchange(self->on_enqueued_, nullptr);
    }
    // The block and the matrix stay until the copy is done, even if the job has ended: the device
    // reads the block and writes the matrix.
    self->device_.upload_stream().Notify(
        [block = std::move(block), target = std::move(target)](absl::Status) {},
        {.urgency = Urgency::kCanWait});
    if (done) done(std::move(status));
  };
  if (size <= kInlineCopyBytes) {
    copy();
  } else {
    workers_.Schedule(std::move(copy));
  }
}

absl::Status PayloadUpload::Enqueue(const MatrixMemory& target, uint64_t offset, uint64_t bytes,
                                    const std::byte* staging) {
  Stream& stream = device_.upload_stream();
  {
    MutexLock lock(mutex_);
    if (!std::exchange(started_, true)) {
      absl::Status status = stream.Record(*first_copy_);
      if (!status.ok()) return status;
    }
  }
  return stream.Upload(staging, target.pitched(), offset, bytes);
}

absl::Status PayloadUpload::CheckComplete() const {
  MutexLock lock(mutex_);
  if (next_ == end_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what_, ": the payload ended at byte ", next_, ", but must go to byte ", end_));
}

void PayloadUpload::Abort() {
  std::shared_ptr<MatrixMemory> target;
  absl::AnyInvocable<void(absl::Status)> done;
  MutexLock lock(mutex_);
  target = std::move(target_);
  target_ = nullptr;
  done = std::exchange(on_enqueued_, nullptr);
}

}  // namespace gemmd
