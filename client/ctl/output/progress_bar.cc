#include "client/ctl/output/progress_bar.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/ctl/output/format.h"

namespace gemmd::ctl {
namespace {

constexpr absl::Duration kQuietTime = absl::Seconds(1);
constexpr absl::Duration kRedrawTime = absl::Milliseconds(100);
// A line fits 80 columns.
constexpr size_t kBarWidth = 16;
// Returns to the first column and erases the line (ECMA-48, EL).
constexpr const char* kEraseLine = "\r\x1b[K";

}  // namespace

std::string ProgressLine(const std::string& label, uint64_t done_bytes, uint64_t total_bytes,
                         absl::Duration elapsed) {
  const double done = static_cast<double>(done_bytes);
  const double total = static_cast<double>(std::max<uint64_t>(total_bytes, 1));
  const double fraction = std::min(done / total, 1.0);
  const double rate = done / std::max(absl::ToDoubleSeconds(elapsed), 1e-9);
  const size_t filled = static_cast<size_t>(fraction * kBarWidth);
  std::string bar(filled, '=');
  if (filled < kBarWidth) bar += '>';
  bar.resize(kBarWidth, ' ');
  std::string line =
      absl::StrCat(label, " [", bar, "] ", std::floor(fraction * 100), "%  ", BytesText(done),
                   " / ", BytesText(total), "  ", BytesText(rate), "/s");
  if (rate > 0 && fraction < 1) {
    absl::StrAppend(&line, "  ", std::ceil((total - done) / rate), " s left");
  }
  return line;
}

ProgressBar::ProgressBar(std::ostream& out, bool enabled, std::string label,
                         std::function<absl::Duration()> now)
    : out_(out),
      enabled_(enabled),
      label_(std::move(label)),
      now_(std::move(now)),
      start_(now_()) {}

ProgressBar::~ProgressBar() {
  if (last_drawn_ > absl::ZeroDuration()) out_ << kEraseLine << std::flush;
}

void ProgressBar::Update(uint64_t done_bytes, uint64_t total_bytes) {
  if (!enabled_) return;
  const absl::Duration elapsed = now_() - start_;
  const std::lock_guard lock(mutex_);
  if (elapsed < kQuietTime || elapsed - last_drawn_ < kRedrawTime) return;
  last_drawn_ = elapsed;
  out_ << kEraseLine << ProgressLine(label_, done_bytes, total_bytes, elapsed) << std::flush;
}

}  // namespace gemmd::ctl
