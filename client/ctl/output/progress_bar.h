// A bar on a terminal for transfers that take over a second.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>

#include "absl/time/time.h"

namespace gemmd::ctl {

// "upload [=====>     ] 45%  1.20 GiB / 2.67 GiB  850 MiB/s  2 s left", without a
// newline.
std::string ProgressLine(const std::string& label, uint64_t done_bytes, uint64_t total_bytes,
                         absl::Duration elapsed);

// Draws nothing in the first second, and nothing where it is not enabled. Erases
// itself when destroyed. Update may be called from any thread.
class ProgressBar {
 public:
  // `now` returns the time since any fixed point.
  ProgressBar(std::ostream& out, bool enabled, std::string label,
              std::function<absl::Duration()> now);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(uint64_t done_bytes, uint64_t total_bytes);

 private:
  std::ostream& out_;
  const bool enabled_;
  const std::string label_;
  const std::function<absl::Duration()> now_;
  const absl::Duration start_;
  std::mutex mutex_;
  absl::Duration last_drawn_;  // since start_; zero: never
};

}  // namespace gemmd::ctl
