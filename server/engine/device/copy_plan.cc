// Splits a dense byte range at line boundaries.
#include "server/engine/device/copy_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

CopyRect Linear(size_t dense_offset, size_t matrix_offset, size_t width) {
  return {.dense_offset = dense_offset,
          .matrix_offset = matrix_offset,
          .width = width,
          .height = 1,
          .dense_pitch = width,
          .matrix_pitch = width};
}

}  // namespace

CopyPlan PlanCopy(const Pitched& matrix, size_t offset, size_t bytes) {
  CopyPlan plan;
  if (bytes == 0) return plan;
  const size_t line = static_cast<size_t>(matrix.line_bytes);
  const size_t pitch = static_cast<size_t>(matrix.pitch_bytes);
  if (pitch == line) {
    plan.Add(Linear(0, offset, bytes));
    return plan;
  }

  size_t done = 0;
  const auto matrix_offset = [&] {
    const size_t at = offset + done;
    return at / line * pitch + at % line;
  };
  if (const size_t column = offset % line; column != 0) {
    const size_t width = std::min(bytes, line - column);
    plan.Add(Linear(0, matrix_offset(), width));
    done = width;
  }
  if (const size_t lines = (bytes - done) / line; lines == 1) {
    plan.Add(Linear(done, matrix_offset(), line));
    done += line;
  } else if (lines > 1) {
    plan.Add({.dense_offset = done,
              .matrix_offset = matrix_offset(),
              .width = line,
              .height = lines,
              .dense_pitch = line,
              .matrix_pitch = pitch});
    done += lines * line;
  }
  if (done < bytes) plan.Add(Linear(done, matrix_offset(), bytes - done));
  return plan;
}

absl::Status CheckRange(const Pitched& matrix, size_t offset, size_t bytes) {
  if (matrix.lines < 0 || matrix.line_bytes < 0 || matrix.pitch_bytes < matrix.line_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "matrix of ", matrix.lines, " lines of ", matrix.line_bytes, " bytes at a pitch of ",
        matrix.pitch_bytes, " bytes: want no negative size and a pitch of at least a line"));
  }
  const size_t size = matrix.dense_bytes();
  if (offset <= size && bytes <= size - offset) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("byte range of ", bytes, " bytes at ", offset,
                                                 " is not within the matrix's ", size, " bytes"));
}

}  // namespace gemmd
