#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/bench/measure/comparison.h"
#include "kernels/bench/measure/energy_meter.h"
#include "kernels/bench/result/summary.h"

namespace gemm::bench {
namespace {

// The counter is read at the end of each batch of launches. A batch is short compared with the
// counter's period, and long compared with a reading, during which the next batch runs.
constexpr double kBatchSeconds = 5e-3;
constexpr double kMostLaunchesOfBatch = 1000;
// Batches in addition to the measured ones: before the first reading, while the counter has yet to
// change, and after the last.
constexpr int kBatchesBeside = 3;
constexpr absl::string_view kTimeEnded = "the time budget ended";

// Whole turns of the operand sets. If one takes longer than a batch, a part of it: such launches
// read so few bytes a second that it does not matter whether they are in the cache.
int LaunchesOfBatch(double seconds, int64_t sets) {
  const auto fitting =
      static_cast<int64_t>(std::min(kBatchSeconds / std::max(seconds, 1e-9), kMostLaunchesOfBatch));
  const int64_t launches =
      fitting >= sets ? fitting / sets * sets : std::max(fitting, std::min<int64_t>(2, sets));
  return static_cast<int>(launches);
}

}  // namespace

// Backwards, as the first runs, so that the baselines are measured even if time is short.
absl::Status Comparison::MeasureEnergies() {
  if (rules_.joules_time == absl::ZeroDuration()) return absl::OkStatus();
  for (auto candidate = candidates_.rbegin(); candidate != candidates_.rend(); ++candidate) {
    // Beyond the cutoff a kernel runs only once.
    if (candidate->out || candidate->most_samples == 0) continue;
    if (absl::Status status = MeasureEnergy(*candidate); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Comparison::MeasureEnergy(TimedCandidate& candidate) {
  const double seconds = Median(candidate.samples);
  const int batch = LaunchesOfBatch(seconds, sets_.count());
  const absl::Duration needed =
      rules_.joules_time + absl::Seconds(kBatchesBeside * batch * seconds);
  absl::Status stopped;
  absl::StatusOr<double> joules = absl::DeadlineExceededError(kTimeEnded);
  if (hooks_.now() + needed < deadlines_.soft) joules = RunForJoules(candidate, batch, stopped);
  if (!stopped.ok()) return stopped;
  if (joules.ok()) {
    candidate.joules = *joules;
    return absl::OkStatus();
  }
  AddNote(candidate, absl::StrCat("no joules: ", joules.status().message()));
  return CheckDevice(candidate);
}

absl::StatusOr<double> Comparison::RunForJoules(const TimedCandidate& candidate, int batch,
                                                absl::Status& stopped) {
  const absl::StatusOr<EnergyCounter*> counter = backend_.energy();
  if (!counter.ok()) return counter.status();
  const std::string step = absl::StrCat("joules of ", candidate.name);
  EnergyMeter meter(rules_.joules_time);
  EnergyMeter::Reading reading;
  absl::Status failed;
  const auto needs_another_batch = [&] {
    reading.launches += batch;
    reading.time = hooks_.now();
    stopped = hooks_.step(step);
    if (reading.time >= deadlines_.hard) failed = absl::DeadlineExceededError(kTimeEnded);
    const absl::StatusOr<double> joules = (*counter)->Joules();
    failed.Update(joules.status());
    if (!stopped.ok() || !failed.ok()) return false;
    reading.joules = *joules;
    return meter.Add(reading);
  };
  failed.Update(backend_.Repeat([&](int i) { return Enqueue(candidate, sets_.At(i)); }, batch,
                                needs_another_batch));
  if (!failed.ok()) return failed;
  return meter.joules_per_launch();
}

}  // namespace gemm::bench
