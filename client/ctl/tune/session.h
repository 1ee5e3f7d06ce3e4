// Measures kernels on a server, shape by shape, for a tuning table.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ctl/context.h"
#include "client/ctl/tune/targets.h"
#include "client/ctl/tune/tune_options.h"
#include "gemm/machine.h"
#include "gemm/tuning.h"
#include "kernels/bench/report/live_report.h"
#include "kernels/bench/result/tuning_rounds.h"

namespace gemmd::ctl {

class TuningSession {
 public:
  // The references outlive the session. The selection of `options` has the types of all targets.
  TuningSession(const Context& context, client::Client& client, const TuneOptions& options,
                std::vector<TuneTarget> targets);

  // Measures every target. After an error, and after Ctrl-C (CANCELLED), table() has the
  // complete ones.
  absl::Status Run();

  const gemm::TuningTable& table() const { return table_; }
  const std::set<std::string>& wrong() const { return wrong_; }
  // Shapes without an entry, as text, since no kernel was measured in every round.
  const std::vector<std::string>& unmeasured() const { return unmeasured_; }
  int64_t concurrent_jobs() const { return concurrent_jobs_; }

 private:
  // Whether the server has the device that is asked for.
  absl::Status CheckDevice() const;
  // Which kernels may be chosen, and which values of their parameters are tried.
  absl::Status SelectKernels();
  // The kernels of the selection that take the target's types and are worth measuring for it.
  absl::StatusOr<std::set<std::string>> WorthMeasuring(const TuneTarget& target);
  absl::Status Tune(const TuneTarget& target);
  absl::Status MeasureRound(const TuneTarget& target, const std::set<std::string>& kernels,
                            gemm::bench::TuningRounds& rounds);
  absl::Status Take(const client::BenchmarkResponse& response, gemm::bench::TuningRounds& rounds);
  void Show(const gemm::bench::Shape& shape, const std::string& step);

  const Context& context_;
  client::Client& client_;
  const TuneOptions& options_;
  const std::vector<TuneTarget> targets_;
  gemm::bench::ProgressReport progress_;
  const absl::Time began_;
  std::map<std::string, client::KernelInfo> kernels_;
  // Combinations that they take and the selection asks for.
  std::vector<::gemm::v1::KernelTypes> types_;
  ::gemm::v1::BenchmarkHeader header_;
  std::optional<gemm::Machine> machine_;
  size_t done_ = 0;  // targets
  int round_ = 0;
  gemm::TuningTable table_;
  std::set<std::string> wrong_;
  std::vector<std::string> unmeasured_;
  int64_t concurrent_jobs_ = 0;
};

}  // namespace gemmd::ctl
