#include "kernels/bench/report/progress_report.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/bench/report/text_layout.h"

namespace gemm::bench {
namespace {

constexpr absl::Duration kRedrawTime = absl::Milliseconds(200);
// Where the terminal does not say how wide it is.
constexpr size_t kUsualTerminal = 80;
constexpr absl::Duration kLineTime = absl::Seconds(10);
// Returns to the first column and erases the line (ECMA-48, EL).
constexpr const char* kEraseLine = "\r\x1b[K";

std::string WaitText(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  return seconds < 100 ? absl::StrFormat("%.0f s", seconds)
                       : absl::StrFormat("%.0f min", seconds / 60);
}

}  // namespace

std::string ProgressText(const Progress& progress) {
  std::string text = absl::StrCat("shape ", progress.shape + 1, "/", progress.shapes, " ",
                                  ShapeName(progress.at), "  ", WaitText(progress.elapsed));
  if (progress.left != absl::InfiniteDuration()) {
    absl::StrAppend(&text, ", about ", WaitText(progress.left), " left");
  }
  return absl::StrCat(text, "  ", progress.step);
}

void ProgressReport::Update(const Progress& progress) {
  if (progress.elapsed - last_ < (terminal_ ? kRedrawTime : kLineTime)) return;
  last_ = progress.elapsed;
  if (terminal_) {
    // A line that the terminal broke could not be erased.
    const size_t width = TerminalWidth(STDERR_FILENO);
    const size_t room = width == 0 ? kUsualTerminal : width;
    out_ << kEraseLine << ProgressText(progress).substr(0, room - 1) << std::flush;
    drawn_ = true;
  } else {
    out_ << ProgressText(progress) << std::endl;
  }
}

void ProgressReport::Erase() {
  if (drawn_) out_ << kEraseLine << std::flush;
  drawn_ = false;
}

}  // namespace gemm::bench
