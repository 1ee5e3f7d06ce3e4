// Splits a dense byte range of a pitched matrix into rectangles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "server/engine/device/device.h"

namespace gemmd {

// `height` lines of `width` bytes. They start `dense_pitch` apart in the dense bytes, and
// `matrix_pitch` apart in the matrix. A rectangle of one line is a linear copy; its
// pitches are `width`.
struct CopyRect {
  size_t dense_offset = 0;  // from the start of the range
  size_t matrix_offset = 0;
  size_t width = 0;
  size_t height = 0;
  size_t dense_pitch = 0;
  size_t matrix_pitch = 0;
};

// At most three rectangles, in the order of the dense bytes: the end of a first line,
// whole lines, the start of a last line.
class CopyPlan {
 public:
  void Add(const CopyRect& rect) { rects_[count_++] = rect; }
  size_t size() const { return count_; }
  const CopyRect& operator[](size_t i) const { return rects_[i]; }
  const CopyRect* begin() const { return rects_.data(); }
  const CopyRect* end() const { return rects_.data() + count_; }

 private:
  std::array<CopyRect, 3> rects_;
  size_t count_ = 0;
};

// The plan for dense bytes [offset, offset + bytes) of `matrix`, which CheckRange must
// accept. One linear copy if the matrix has no gaps.
CopyPlan PlanCopy(const Pitched& matrix, size_t offset, size_t bytes);

// OK, or INVALID_ARGUMENT if [offset, offset + bytes) is not within the dense bytes of
// `matrix`, or if its lines overlap.
absl::Status CheckRange(const Pitched& matrix, size_t offset, size_t bytes);

}  // namespace gemmd
