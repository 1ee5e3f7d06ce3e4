#include "client/ctl/load/session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/ctl/output/format.h"
#include "client/ctl/stop_on_signal.h"

namespace gemmd::ctl {
namespace {

constexpr size_t kMaxStatisticsShards = 8;

// Fewer bytes of operands are made at once.
constexpr double kBytesWorthSaying = 256 << 20;

// A live line of less time than this would have no meaningful rate.
constexpr absl::Duration kShortestInterval = absl::Milliseconds(500);

}  // namespace

absl::StatusOr<std::unique_ptr<LoadSession>> LoadSession::Prepare(const Context& context,
                                                                  const LoadOptions& options) {
  std::unique_ptr<LoadSession> session(new LoadSession(context, options));
  // One attempt each: the test shows what a request costs, and which requests fail.
  auto client = Connect(context, {.attempts = 1});
  if (!client.ok()) return client.status();
  session->client_ = *std::move(client);
  auto patient = Connect(context);
  if (!patient.ok()) return patient.status();
  session->patient_ = *std::move(patient);
  auto workload =
      Workload::Prepare(*session->client_, *session->patient_, options, [&](double bytes) {
        if (bytes < kBytesWorthSaying) return;
        context.err << "gemmctl: makes operands of " << BytesText(bytes) << " on this machine\n";
      });
  if (!workload.ok()) return workload.status();
  session->workload_ = *std::move(workload);
  auto callers = session->workload_->MakeCallers();
  if (!callers.ok()) return callers.status();
  session->callers_ = *std::move(callers);
  const absl::Status tried = session->workload_->Try(*session->callers_.front());
  if (!tried.ok()) return tried;
  return session;
}

LoadResult LoadSession::Measure(double rate, int concurrency) {
  // The ramp is not counted either.
  const absl::Duration uncounted = options_.ramp + options_.warmup;
  const RunPlan plan{.schedule = {.rate = rate,
                                  .arrivals = options_.arrivals,
                                  .ramp = options_.ramp,
                                  .seed = options_.seed,
                                  .warmup = uncounted,
                                  .duration = options_.duration,
                                  .requests = options_.requests},
                     .max_delay = options_.max_delay};
  SteadyClock clock;
  const absl::Span<const std::unique_ptr<Caller>> callers =
      absl::MakeConstSpan(callers_).first(static_cast<size_t>(concurrency));
  Statistics statistics(std::min(callers.size(), kMaxStatisticsShards), workload_->choices());
  absl::Duration last_line;
  const auto live = [&](absl::Duration elapsed) {
    std::string line = absl::StrCat(absl::ToInt64Seconds(elapsed), " s  warming up");
    if (elapsed >= uncounted + kShortestInterval) {
      line = LiveLine(elapsed, elapsed - std::max(last_line, uncounted), statistics.TakeInterval(),
                      statistics.failed());
      last_line = elapsed;
    }
    // On a terminal the line is rewritten; in a file each second has its own line.
    if (context_.err_is_terminal) {
      context_.err << "\r\x1b[K" << line << std::flush;
    } else {
      context_.err << line << std::endl;
    }
  };
  const StopOnSignal signals;
  LoadResult result;
  result.wall = RunLoad(plan, clock, callers, StopOnSignal::stopped(), statistics, live);
  if (context_.err_is_terminal) context_.err << "\r\x1b[K" << std::flush;
  const std::vector<Tally> tallies = statistics.SumByChoice();
  for (size_t choice = 0; choice < tallies.size(); ++choice) {
    result.tally.Merge(tallies[choice]);
    result.rows.push_back({.shape = options_.shapes[choice / options_.kernels.size()].text,
                           .kernel = options_.kernels[choice % options_.kernels.size()].value,
                           .tally = tallies[choice]});
  }
  result.series = statistics.series();
  result.interrupted = StopOnSignal::stopped();
  result.products = options_.products();
  return result;
}

}  // namespace gemmd::ctl
