#include "server/engine/job/small_payload.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "server/engine/bounds/options.h"
#include "server/engine/device/arena.h"
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

// A kernel loads its operands in tiles along k, and may have to wait for each before it asks for
// the next. A wait takes about two microseconds, and all copies of a small job about fifteen.
constexpr int64_t kMostWaits = 2;
constexpr int64_t kLibraryTileK = 32;

int64_t WaitsOf(const gemm::Kernel& kernel, int64_t k) {
  const int64_t tile_k = kernel.tile_k > 0 ? kernel.tile_k : kLibraryTileK;
  return (k + tile_k - 1) / tile_k;
}

// A library adds C and the bias to a D that it has written.
bool ReadsItsResult(const gemm::Kernel& kernel, const gemm::Problem& problem) {
  return kernel.tile_m == 0 && (problem.beta != 0 || problem.bias != gemm::BiasAxis::kNone ||
                                problem.activation != gemm::Activation::kNone);
}

}  // namespace

StagedLayout DenseLayout(const ByRole<const Shape*>& shapes) {
  StagedLayout layout;
  size_t at = 0;
  for (const Role role : kRoles) {
    if (shapes[role] == nullptr) continue;
    const uint64_t bytes = shapes[role]->dense_bytes();
    layout[role] = {.offset = at,
                    .lines = 1,
                    .line_bytes = static_cast<int64_t>(bytes),
                    .pitch_bytes = static_cast<int64_t>(bytes)};
    at += bytes;
  }
  return layout;
}

StagedLayout PitchedLayout(const ByRole<const Shape*>& shapes) {
  StagedLayout layout;
  size_t at = 0;
  for (const Role role : kRoles) {
    const Shape* const shape = shapes[role];
    if (shape == nullptr) continue;
    layout[role] = {.offset = at,
                    .lines = shape->lines(),
                    .line_bytes = shape->line_bytes(),
                    .pitch_bytes = shape->pitch_bytes()};
    at += Arena::RoundedUp(shape->pitched_bytes());
  }
  return layout;
}

SmallPayload::SmallPayload(const StagedLayout& layout) : layout_(layout) {
  for (const StagedOperand& operand : layout) missing_bytes_ += operand.dense_bytes();
}

absl::Status SmallPayload::Append(Role role, uint64_t offset, absl::Cord bytes) {
  absl::Status status =
      CheckNextBytes(Name(role), offset, bytes.size(), next_[role], layout_[role].dense_bytes());
  if (!status.ok()) return status;
  next_[role] += bytes.size();
  missing_bytes_ -= bytes.size();
  if (!complete()) CopyShortParts(bytes);
  bytes_[role].Append(std::move(bytes));
  return absl::OkStatus();
}

void SmallPayload::LetGoOfReadBuffers() {
  for (absl::Cord& bytes : bytes_) CopyShortParts(bytes);
}

void SmallPayload::CopyTo(Role role, int64_t line_bytes, int64_t pitch_bytes, std::byte* to) const {
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
  if (!staged()) {
    for (const absl::string_view chunk : bytes_[role].Chunks()) copy(chunk.data(), chunk.size());
    return;
  }
  const StagedOperand& from = layout_[role];
  const auto* const data = reinterpret_cast<const char*>(block_.data() + from.offset);
  for (int64_t line = 0; line < from.lines; ++line) {
    copy(data + line * from.pitch_bytes, static_cast<size_t>(from.line_bytes));
  }
}

void SmallPayload::Stage(StagingBlock block) {
  for (const Role role : kRoles) {
    const StagedOperand& to = layout_[role];
    CopyTo(role, to.line_bytes, to.pitch_bytes, block.data() + to.offset);
    bytes_[role].Clear();
  }
  block_ = std::move(block);
}

ZeroCopy ZeroCopy::Of(const AdmittedJob& job, JobHoldings& holdings, size_t bytes) {
  if (job.check.plan.has_value()) return {};
  uint64_t payload = 0;
  for (const Role role : kRoles) {
    const JobInput& input = holdings[role];
    if (input.payload) payload += input.memory->shape.pitched_bytes();
  }
  const gemm::Kernel& kernel = *job.pick.kernel;
  const gemm::Problem& problem = job.plan.problem;
  const Shape& result = job.plan.result;
  // Each tile of the result reads its rows and columns again. One product whose result is small,
  // too, has few.
  const bool few_tiles = result.pitched_bytes() <= bytes && RulesOf(job.plan.form).zero_copy;
  return {.payload = payload > 0 && payload <= bytes && few_tiles &&
                     WaitsOf(kernel, problem.k) <= kMostWaits,
          .result = job.spec.stream_result && !job.spec.keep_result.has_value() &&
                    result.pitched_bytes() <= bytes &&
                    result.pitched_bytes() == result.dense_bytes() &&
                    !ReadsItsResult(kernel, problem)};
}

}  // namespace gemmd
