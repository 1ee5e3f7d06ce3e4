// The sink of log lines: a reader that stops reading stops nobody.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spdlog/sinks/base_sink.h"

namespace gemmd {

// Writes to a file, a terminal, a pipe or a socket. If that takes nothing for `patience`, lines are
// left out until it does again. Then a line of `note` says how many were. It is not waited for
// again within a minute. Thread-safe.
class PatientSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // `fd` outlives this. `note`: a whole line that says so of so many.
  PatientSink(int fd, absl::Duration patience, std::function<std::string(int64_t)> note);

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  // False where not all of it was taken before `limit`.
  bool Write(absl::string_view text, absl::Time limit) const;

  const int fd_;
  const absl::Duration patience_;
  const std::function<std::string(int64_t)> note_;
  int64_t left_out_ = 0;  // since the last line that was written
  absl::Time patient_from_ = absl::InfinitePast();
};

}  // namespace gemmd
