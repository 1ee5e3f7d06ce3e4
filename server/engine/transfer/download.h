// The specification of a download of a resident matrix, and the handle to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/engine/device/staging.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// A piece of a result in pinned memory. It keeps a staging block in use.
struct ResultPiece {
  uint64_t offset = 0;
  absl::Span<const std::byte> bytes;
  std::shared_ptr<StagingBlock> owner;
};

struct DownloadSpec {
  MatrixKey key;
  bool release = false;
  std::optional<ByteSpan> range;
  ReceiverId receiver = kPromptReceiver;  // whose share of staging the bytes wait in
  absl::Time deadline = absl::InfiniteFuture();
};

// Receives the bytes of a GetMatrix call. Same rules as JobListener.
class DownloadListener {
 public:
  virtual ~DownloadListener() = default;
  virtual void OnBytes(ResultPiece piece) = 0;
  virtual void OnDone(absl::Status status) = 0;
};

// One GetMatrix call. Thread-safe. Same rules as Job.
class Download {
 public:
  virtual ~Download() = default;
  virtual const MatrixRecord& matrix() const = 0;
  virtual ByteSpan range() const = 0;
  virtual void Start() = 0;
  virtual void Cancel(absl::Status why) = 0;
};

}  // namespace gemmd
