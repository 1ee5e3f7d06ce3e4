#include "kernels/bench/contest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gemm/run.h"
#include "kernels/bench/statistics.h"
#include "kernels/bench/types_pattern.h"

namespace gemm::bench {
namespace {

// NaN in every floating type, so that an element that is not written shows.
constexpr std::byte kPoison{0xFF};
// A sample of a short kernel is a batch of launches as long as this.
constexpr double kSampleSeconds = 1e-3;
constexpr int kMostLaunches = 100;
// The first run may load code. One so long hides that, but for a kernel's first
// of all: a library takes a while to get ready.
constexpr double kLongSeconds = 0.1;
// Kernels known to be so many times slower than the fastest known are the first
// to be left out where time is short.
constexpr double kSlow = 4;
// On a shape so many times larger a kernel's speed on the one before says little.
constexpr double kMuchLarger = 8;
// Nobody waits for this kernel to tell how slow it is: it is on one core, and
// does at least so many operations a second.
constexpr absl::string_view kReference = "host_reference";
constexpr double kReferenceFlops = 1e9;
constexpr absl::string_view kBudgetEnded = "left out: the time budget ended";
// Rounds in which cuBLASLt's algorithms are compared.
constexpr int kTuningRounds = 3;

int LaunchesOfSample(double expected_seconds) {
  const double launches = std::ceil(kSampleSeconds / std::max(expected_seconds, 1e-9));
  return static_cast<int>(std::clamp(launches, 1.0, static_cast<double>(kMostLaunches)));
}

std::string KeyOf(const Candidate& candidate) {
  return absl::StrCat(candidate.kernel->name, " ", TypesName(candidate.types), " ",
                      LayoutName(candidate.layout), " ", ParamsText(candidate));
}

}  // namespace

Contest::Contest(Backend& backend, OperandSets& sets, SpeedRecord& record,
                 const ContestRules& rules, Hooks hooks)
    : backend_(backend), sets_(sets), record_(record), rules_(rules), hooks_(std::move(hooks)) {}

absl::StatusOr<std::vector<Row>> Contest::Run(const Shape& shape,
                                              const std::vector<Candidate>& candidates,
                                              const Deadlines& deadlines) {
  shape_ = shape;
  deadlines_ = deadlines;
  problem_ = {.m = shape.m,
              .n = shape.n,
              .k = shape.k,
              .types = candidates.front().types,
              .trans_a = candidates.front().layout.trans_a,
              .trans_b = candidates.front().layout.trans_b};
  entrants_.clear();
  vendor_.clear();
  launches_ = 0;
  for (const Candidate& candidate : candidates) entrants_.push_back(MakeEntrant(candidate));
  if (rules_.baselines) EnterBaseline();
  absl::Status status = hooks_.step("drawing operands");
  if (!status.ok()) return status;
  // Where nothing can be run on them none are drawn.
  if (hooks_.now() >= deadlines_.hard) return RowsWithout(kBudgetEnded);
  status = PrepareOperands();
  if (absl::IsResourceExhausted(status)) return RowsWithout(status.message());
  if (status.ok()) {
    status = oracle_.Prepare(backend_, problem_, sets_.At(0), rules_.checked_lines,
                             [&] { return hooks_.step("working out what is right"); });
  }
  ReserveWorkspace();
  if (status.ok() && rules_.baselines) status = EnterTunedVendor();
  // Backwards: the baselines, which others are compared with, stand last, and before
  // them the kernels that promise most.
  for (auto entrant = entrants_.rbegin(); entrant != entrants_.rend(); ++entrant) {
    if (status.ok() && !entrant->out) status = FirstRunInTime(*entrant);
  }
  if (status.ok()) {
    LimitTheHopeless();
    status = TakeSamples();
  }
  if (!status.ok()) return status;
  NoteMissingSamples();
  for (const Entrant& entrant : entrants_) {
    if (entrant.out || entrant.candidate.kernel == nullptr) continue;
    record_[KeyOf(entrant.candidate)] = {.tflops = TflopsOf(entrant), .flops = Flops(shape_)};
  }
  return MakeRows();
}

std::vector<Row> Contest::RowsWithout(absl::string_view why) {
  for (Entrant& entrant : entrants_) {
    entrant.out = true;
    entrant.note = std::string(why);
  }
  return MakeRows();
}

Contest::Entrant Contest::MakeEntrant(const Candidate& candidate) const {
  const Kernel& kernel = *candidate.kernel;
  return {
      .candidate = candidate,
      .name = std::string(kernel.name),
      .family = std::string(kernel.family),
      .launch = candidate.launch
                    ? candidate.launch
                    : [&kernel](const Launch& launch) { return RunProduct(kernel, launch); },
      .workspace_bytes = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(problem_),
      .most_samples = rules_.iterations};
}

void Contest::EnterBaseline() {
  const Kernel* const baseline = FindBaseline(problem_.types, backend_.caps());
  if (baseline == nullptr) return;
  vendor_ = std::string(baseline->name);
  for (const Entrant& entrant : entrants_) {
    if (entrant.name == vendor_) return;
  }
  entrants_.push_back(MakeEntrant({.kernel = baseline,
                                   .types = problem_.types,
                                   .layout = {problem_.trans_a, problem_.trans_b}}));
  entrants_.back().baseline = true;
}

absl::Status Contest::PrepareOperands() {
  const absl::Status status = sets_.Prepare(problem_);
  if (!absl::IsResourceExhausted(status) || workspace_bytes_ == 0) return status;
  // What kernels of an earlier shape asked for is in the way.
  workspace_.reset();
  workspace_bytes_ = 0;
  return sets_.Prepare(problem_);
}

void Contest::ReserveWorkspace() {
  size_t bytes = 0;
  for (const Entrant& entrant : entrants_) bytes = std::max(bytes, entrant.workspace_bytes);
  if (bytes > workspace_bytes_) {
    workspace_.reset();
    workspace_bytes_ = 0;
    absl::StatusOr<Buffer> data = backend_.Allocate(bytes);
    if (data.ok()) {
      workspace_ = *std::move(data);
      workspace_bytes_ = bytes;
    }
  }
  for (Entrant& entrant : entrants_) {
    if (entrant.workspace_bytes <= workspace_bytes_) continue;
    entrant.out = true;
    entrant.note = absl::StrCat("no room for its ", entrant.workspace_bytes, " bytes of scratch");
  }
}

absl::StatusOr<double> Contest::TimeLaunches(const Entrant& entrant, int count) {
  const Workspace workspace = {workspace_.get(), entrant.workspace_bytes};
  return backend_.Time(
      [&](int) {
        const Operands operands = sets_.At(launches_++);
        return entrant.launch(
            backend_.MakeLaunch(problem_, operands, workspace, entrant.candidate.params));
      },
      count, entrant.expected_seconds);
}

absl::Status Contest::TakeOut(Entrant& entrant, const absl::Status& status) {
  if (const absl::Status lost = backend_.Synchronize(); !lost.ok()) {
    return absl::Status(
        lost.code(), absl::StrCat(entrant.name, " on ", ShapeName(shape_), ": ", lost.message()));
  }
  entrant.out = true;
  entrant.note = std::string(status.message());
  return absl::OkStatus();
}

// Chooses the fastest of cuBLASLt's algorithms in a contest of their own.
absl::Status Contest::EnterTunedVendor() {
  if (rules_.vendor_algorithms == 0 || hooks_.now() >= deadlines_.hard) return absl::OkStatus();
  std::vector<Entrant> algorithms;
  for (LaunchFn& launch :
       backend_.VendorAlgorithms(problem_, sets_.At(0), rules_.vendor_algorithms)) {
    algorithms.push_back({.name = std::string(kTunedVendor),
                          .family = "cublaslt",
                          .baseline = true,
                          .launch = std::move(launch),
                          .most_samples = rules_.iterations});
  }
  if (algorithms.empty()) return absl::OkStatus();
  if (absl::Status status = TimeAlgorithms(algorithms); !status.ok()) return status;
  const auto speed = [](const Entrant& e) {
    if (e.out || e.expected_seconds == 0) return std::numeric_limits<double>::infinity();
    return e.samples.empty() ? e.expected_seconds : Median(e.samples);
  };
  const auto best =
      std::min_element(algorithms.begin(), algorithms.end(),
                       [&](const Entrant& x, const Entrant& y) { return speed(x) < speed(y); });
  if (!best->out) {
    best->note =
        absl::StrCat("algorithm ", best - algorithms.begin() + 1, " of ", algorithms.size());
  }
  best->samples.clear();
  best->expected_seconds = 0;
  entrants_.push_back(std::move(*best));
  return absl::OkStatus();
}

absl::Status Contest::TimeAlgorithms(std::vector<Entrant>& algorithms) {
  for (int round = 0; round <= kTuningRounds; ++round) {
    for (Entrant& algorithm : algorithms) {
      if (algorithm.out) continue;
      if (hooks_.now() >= (round == 0 ? deadlines_.hard : deadlines_.soft)) {
        return absl::OkStatus();
      }
      if (absl::Status status = hooks_.step("choosing cublaslt_best"); !status.ok()) return status;
      const int launches = round == 0 ? 1 : LaunchesOfSample(algorithm.expected_seconds);
      const absl::StatusOr<double> seconds = TimeLaunches(algorithm, launches);
      if (!seconds.ok()) {
        if (absl::Status lost = TakeOut(algorithm, seconds.status()); !lost.ok()) return lost;
        continue;
      }
      algorithm.expected_seconds = *seconds;
      if (round > 0) algorithm.samples.push_back(*seconds);
    }
  }
  return absl::OkStatus();
}

std::optional<double> Contest::ForeseenSeconds(const Entrant& entrant) const {
  const double flops = Flops(shape_);
  const auto known = record_.find(KeyOf(entrant.candidate));
  if (known != record_.end() && flops <= known->second.flops * kMuchLarger) {
    return flops / (known->second.tflops * 1e12);
  }
  if (entrant.name == kReference) return flops / kReferenceFlops;
  return std::nullopt;
}

std::string Contest::NoTimeFor(const Entrant& entrant) const {
  const absl::Time now = hooks_.now();
  if (now >= deadlines_.hard) return std::string(kBudgetEnded);
  if (entrant.candidate.kernel == nullptr || deadlines_.soft == absl::InfiniteFuture()) return "";
  const std::optional<double> needed = ForeseenSeconds(entrant);
  if (!needed || now + absl::Seconds(*needed) < deadlines_.soft) return "";
  double fastest = 0;
  for (const auto& [key, speed] : record_) fastest = std::max(fastest, speed.tflops);
  const double tflops = Flops(shape_) / *needed * 1e-12;
  if (entrant.name != kReference && tflops * kSlow > fastest) return "";
  return absl::StrFormat(
      "left out: a run takes about %.2g s, more than the time budget has left "
      "for this shape",
      *needed);
}

absl::Status Contest::FirstRunInTime(Entrant& entrant) {
  if (const absl::Status status = hooks_.step(entrant.name); !status.ok()) return status;
  if (std::string why = NoTimeFor(entrant); !why.empty()) {
    entrant.out = true;
    entrant.note = std::move(why);
    return absl::OkStatus();
  }
  return FirstRun(entrant);
}

// Runs it into a poisoned D, which is compared, and learns how long it takes.
absl::Status Contest::FirstRun(Entrant& entrant) {
  launches_ = 0;
  absl::Status status = backend_.Fill(sets_.At(0).d, kPoison, sets_.d_bytes());
  if (!status.ok()) return status;
  absl::StatusOr<double> seconds = TimeLaunches(entrant, 1);
  if (!seconds.ok()) return TakeOut(entrant, seconds.status());
  absl::StatusOr<SampledError> error = oracle_.Compare(backend_);
  if (!error.ok()) return TakeOut(entrant, error.status());
  entrant.error = *error;
  const bool again =
      *seconds < kLongSeconds || (!HasRun(entrant) && entrant.name != kReference &&
                                  hooks_.now() + absl::Seconds(*seconds) < deadlines_.soft);
  entrant.expected_seconds = *seconds;  // from here on it is timed as in a sample
  if (again) seconds = TimeLaunches(entrant, 1);
  if (!seconds.ok()) return TakeOut(entrant, seconds.status());
  entrant.expected_seconds = *seconds;
  return absl::OkStatus();
}

bool Contest::HasRun(const Entrant& entrant) const {
  return entrant.candidate.kernel == nullptr ||
         record_.find(KeyOf(entrant.candidate)) != record_.end();
}

void Contest::LimitTheHopeless() {
  double best = std::numeric_limits<double>::infinity();
  for (const Entrant& entrant : entrants_) {
    if (!entrant.out) best = std::min(best, entrant.expected_seconds);
  }
  for (Entrant& entrant : entrants_) {
    if (entrant.out || entrant.expected_seconds <= rules_.hopeless * best) continue;
    // Samples of short runs cost no more than the best's, and one alone says little.
    if (entrant.expected_seconds <= kSampleSeconds) continue;
    entrant.most_samples = 0;
    entrant.samples = {entrant.expected_seconds};
    entrant.note = absl::StrFormat("one run: %.0f times as long as the best's",
                                   entrant.expected_seconds / best);
  }
}

absl::Status Contest::TakeSamples() {
  const size_t count = entrants_.size();
  for (int round = 0; round < rules_.iterations; ++round) {
    // Another begins each round, so that no one always follows the same.
    for (size_t i = 0; i < count; ++i) {
      Entrant& entrant = entrants_[(i + static_cast<size_t>(round)) % count];
      if (entrant.out || round >= entrant.most_samples) continue;
      if (hooks_.now() >= deadlines_.soft) return absl::OkStatus();
      if (absl::Status status = hooks_.step(entrant.name); !status.ok()) return status;
      if (absl::Status status = TakeSample(entrant); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Contest::TakeSample(Entrant& entrant) {
  const int warmups = entrant.samples.empty() ? WarmupsOf(entrant) : 0;
  if (warmups > 0) {
    const absl::StatusOr<double> warm = TimeLaunches(entrant, warmups);
    if (!warm.ok()) return TakeOut(entrant, warm.status());
    entrant.expected_seconds = *warm;
  }
  const absl::StatusOr<double> seconds =
      TimeLaunches(entrant, LaunchesOfSample(entrant.expected_seconds));
  if (!seconds.ok()) return TakeOut(entrant, seconds.status());
  entrant.samples.push_back(*seconds);
  return absl::OkStatus();
}

int Contest::WarmupsOf(const Entrant& entrant) const {
  const double left = absl::ToDoubleSeconds(deadlines_.soft - hooks_.now());
  const double fitting = left / std::max(entrant.expected_seconds, 1e-9);
  return static_cast<int>(std::clamp(fitting, 0.0, static_cast<double>(rules_.warmup)));
}

void Contest::NoteMissingSamples() {
  for (Entrant& entrant : entrants_) {
    const auto taken = static_cast<int>(entrant.samples.size());
    if (entrant.out || taken >= entrant.most_samples) continue;
    if (taken == 0) entrant.samples = {entrant.expected_seconds};
    absl::StrAppend(&entrant.note, entrant.note.empty() ? "" : "; ", std::max(taken, 1), " of ",
                    rules_.iterations, " samples: the time budget ended");
  }
}

double Contest::TflopsOf(const Entrant& entrant) const {
  return Flops(shape_) / Median(entrant.samples) * 1e-12;
}

std::optional<double> Contest::TflopsOf(absl::string_view name) const {
  for (const Entrant& entrant : entrants_) {
    if (entrant.name == name && !entrant.out) return TflopsOf(entrant);
  }
  return std::nullopt;
}

Row Contest::MakeRow(const Entrant& entrant) const {
  Row row = {.shape = shape_,
             .types = problem_.types,
             .layout = {problem_.trans_a, problem_.trans_b},
             .kernel = entrant.name,
             .family = entrant.family,
             .baseline = entrant.baseline,
             .measured = !entrant.out,
             .note = entrant.note};
  if (entrant.candidate.kernel != nullptr) row.params = ParamsText(entrant.candidate);
  if (!row.measured) return row;
  row.seconds = Median(entrant.samples);
  const auto [fastest, slowest] =
      std::minmax_element(entrant.samples.begin(), entrant.samples.end());
  row.fastest_seconds = *fastest;
  row.slowest_seconds = *slowest;
  row.iterations = static_cast<int>(entrant.samples.size());
  row.tflops = TflopsOf(entrant);
  row.error = entrant.error;
  return row;
}

std::vector<Row> Contest::MakeRows() const {
  const std::optional<double> vendor = TflopsOf(vendor_);
  const std::optional<double> tuned = TflopsOf(kTunedVendor);
  double best = 0;
  std::vector<Row> rows;
  for (const Entrant& entrant : entrants_) {
    Row row = MakeRow(entrant);
    if (row.measured) {
      if (vendor) row.of_vendor = row.tflops / *vendor;
      if (tuned) row.of_tuned_vendor = row.tflops / *tuned;
      if (row.tflops > best) {
        row.gain = best == 0 ? 0 : row.tflops / best - 1;
        best = row.tflops;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gemm::bench
