// The result download: copies a matrix's bytes from the device into staging blocks, and
// passes those to the sender without another copy.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/base/workers.h"
#include "server/engine/device/device.h"
#include "server/engine/store/matrix_memory.h"
#include "server/engine/transfer/download.h"

namespace gemmd {

struct DownloadTimes {
  absl::Duration device_to_host;  // from the start of the first copy to the end of the last
  absl::Duration send;            // from the first piece handed over to the last one released
};

// Streams bytes [begin, end) of a matrix's dense form, at most kWindow blocks ahead of the
// receiver. The receiver of a piece writes it to a socket, which takes longer than the device needs
// for the next one. So `answers` hand the pieces over. The device's thread hands over small ones,
// and only while it has nothing else to do. Thread-safe. Always held by a shared_ptr.
class ResultDownload : public std::enable_shared_from_this<ResultDownload> {
 public:
  static constexpr int kWindow = 8;

  // The staging blocks count as held by `receiver`. `on_piece` gets the pieces in order, one call
  // at a time. `on_end` is called once: with OK when the last piece was released, or with the first
  // error. Neither is called after Abort, except for a call under way.
  ResultDownload(std::shared_ptr<MatrixMemory> source, uint64_t begin, uint64_t end,
                 ReceiverId receiver, Workers& answers,
                 absl::AnyInvocable<void(ResultPiece)> on_piece,
                 absl::AnyInvocable<void(absl::StatusOr<DownloadTimes>)> on_end);

  // Starts the download. The matrix must be complete on the device. Call once.
  void Start();
  // Instead of Start: passes on a range that the caller has already copied to staging
  // memory, all of [begin, end) in one block, on the caller's thread.
  void StartStaged(StagingBlock block);

  // Drops the pieces of copies under way when they finish, and then releases the source. Waits for
  // no block any more.
  void Abort();

 private:
  // The objects that belong to the device. Held by the copies under way, and released
  // before on_end is called: after that the device may be destroyed while a receiver still
  // holds a piece.
  struct Source {
    std::shared_ptr<MatrixMemory> matrix;
    EventPtr first_copy;  // both null for a staged range
    EventPtr last_copy;
  };

  // Bytes from `offset` on that the device has copied.
  struct Copied {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    StagingBlock block;
  };

  void Pump();
  void Fetch(StagingBlock block);
  void EnqueueCopy(std::shared_ptr<Source> source, Copied copied, bool last);
  // On the device's thread: has the piece handed over, after those before it.
  void OnCopied(Copied copied);
  // Hands over all pieces that wait. On one thread at a time: see delivering_.
  void DeliverAll();
  void Deliver(Copied copied);
  void OnPieceLetGo();
  using End = absl::AnyInvocable<void(absl::StatusOr<DownloadTimes>)>;
  // Ends it, and waits for nothing more. The end is null if it had ended already.
  End Stop();
  void Fail(absl::Status status);
  void EndIfDone();

  const uint64_t begin_;
  const uint64_t end_;
  const ReceiverId receiver_;
  Device& device_;
  Workers& answers_;

  Mutex mutex_;
  std::shared_ptr<Source> source_ ABSL_GUARDED_BY(mutex_);  // null once ended
  uint64_t next_ ABSL_GUARDED_BY(mutex_);                   // first byte not yet asked for
  uint64_t delivered_ ABSL_GUARDED_BY(mutex_);              // first byte not yet handed over
  int outstanding_ ABSL_GUARDED_BY(mutex_) = 0;             // pieces copied or held by the receiver
  bool acquiring_ ABSL_GUARDED_BY(mutex_) = false;
  StagingPool::Place place_ ABSL_GUARDED_BY(mutex_);   // of the last block that was asked for
  std::deque<Copied> copied_ ABSL_GUARDED_BY(mutex_);  // at most kWindow, not yet handed over
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;    // a thread hands pieces over, or soon will
  bool staged_ ABSL_GUARDED_BY(mutex_) = false;        // the device has nothing to copy
  DownloadTimes times_ ABSL_GUARDED_BY(mutex_);
  absl::Time first_handed_over_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::AnyInvocable<void(ResultPiece)> on_piece_;
  End on_end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
