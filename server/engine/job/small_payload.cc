#include "server/engine/job/small_payload.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "server/engine/bounds/options.h"
#include "server/engine/transfer/payload_upload.h"

namespace gemmd {
namespace {

// Bytes as they were received are parts of the transport's read buffers, of some
// tens of KiB each: a short part keeps a whole one in memory. Copies bytes that
// are to wait, unless all their parts are about as long as a buffer.
void CopyShortParts(absl::Cord& bytes) {
  constexpr size_t kShort = 32 * kKiB;
  const auto chunks = bytes.Chunks();
  if (std::none_of(chunks.begin(), chunks.end(),
                   [](absl::string_view chunk) { return chunk.size() < kShort; })) {
    return;
  }
  std::string copy;
  absl::CopyCordToString(bytes, &copy);
  bytes = absl::Cord(std::move(copy));
}

}  // namespace

SmallPayload::SmallPayload(const Sizes& sizes)
    : sizes_(sizes), missing_bytes_(std::accumulate(sizes.begin(), sizes.end(), uint64_t{0})) {}

absl::Status SmallPayload::Append(Role role, uint64_t offset, absl::Cord bytes) {
  const auto index = static_cast<size_t>(role);
  absl::Status status =
      CheckNextBytes(Name(role), offset, bytes.size(), next_[index], sizes_[index]);
  if (!status.ok()) return status;
  next_[index] += bytes.size();
  missing_bytes_ -= bytes.size();
  if (!complete()) CopyShortParts(bytes);
  bytes_[index].Append(std::move(bytes));
  return absl::OkStatus();
}

void SmallPayload::LetGoOfReadBuffers() {
  for (absl::Cord& bytes : bytes_) CopyShortParts(bytes);
}

void SmallPayload::CopyTo(Role role, int64_t line_bytes, int64_t pitch_bytes, std::byte* to) const {
  const auto index = static_cast<size_t>(role);
  int64_t at = 0;  // in the line
  const auto copy = [&](const char* from, size_t bytes) {
    while (bytes > 0) {
      const int64_t wanted = line_bytes == pitch_bytes ? static_cast<int64_t>(bytes)
                                                       : std::min<int64_t>(bytes, line_bytes - at);
      std::memcpy(to, from, static_cast<size_t>(wanted));
      from += wanted;
      bytes -= static_cast<size_t>(wanted);
      to += wanted;
      at += wanted;
      if (line_bytes != pitch_bytes && at == line_bytes) {
        to += pitch_bytes - line_bytes;
        at = 0;
      }
    }
  };
  if (staged()) {
    const uint64_t before = std::accumulate(
        sizes_.begin(), sizes_.begin() + static_cast<ptrdiff_t>(index), uint64_t{0});
    return copy(reinterpret_cast<const char*>(block_.data() + before), sizes_[index]);
  }
  for (const absl::string_view chunk : bytes_[index].Chunks()) copy(chunk.data(), chunk.size());
}

void SmallPayload::Stage(StagingBlock block) {
  std::byte* to = block.data();
  for (absl::Cord& bytes : bytes_) {
    CopyCord(bytes, to);
    to += bytes.size();
    bytes.Clear();
  }
  block_ = std::move(block);
}

}  // namespace gemmd
