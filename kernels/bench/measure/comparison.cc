#include "kernels/bench/measure/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gemm/run.h"
#include "kernels/bench/result/summary.h"
#include "kernels/bench/spec/selection.h"

namespace gemm::bench {
namespace {

// NaN in every floating type: an element that is not written shows.
constexpr std::byte kPoison{0xFF};
// Runs shorter than this are cheap whatever the rules say.
constexpr double kShortSeconds = 1e-3;
constexpr int kMostLaunches = 100;
// The first run may load code. A run of this many seconds hides that, except a kernel's very first
// one: a library may take long to get ready.
constexpr double kLongSeconds = 0.1;
// If time is short, kernels that are known to be this many times slower than the fastest are left
// out first.
constexpr double kSlow = 4;
// A kernel's speed on one shape says little about a shape that is this many times larger.
constexpr double kMuchLarger = 8;
// This kernel's time is estimated and not measured first: it runs on one core, and does at least
// this many operations a second.
constexpr absl::string_view kReference = "host_reference";
constexpr double kReferenceFlops = 1e9;
constexpr absl::string_view kBudgetEnded = "left out: the time budget ended";

// A sample of a short kernel is a batch of launches that takes `sample_seconds`.
int LaunchesOfSample(double sample_seconds, double expected_seconds) {
  const double launches = std::ceil(sample_seconds / std::max(expected_seconds, 1e-9));
  return static_cast<int>(std::clamp(launches, 1.0, static_cast<double>(kMostLaunches)));
}

std::string KeyOf(const Candidate& candidate) {
  return absl::StrCat(candidate.kernel->name, " ", TypesName(candidate.types), " ",
                      LayoutName(candidate.layout), " ", ParamsText(candidate));
}

}  // namespace

Comparison::Comparison(Backend& backend, OperandSets& sets, SpeedRecord& record,
                       const ComparisonRules& rules, Hooks hooks)
    : backend_(backend), sets_(sets), record_(record), rules_(rules), hooks_(std::move(hooks)) {}

absl::StatusOr<std::vector<Row>> Comparison::Run(const Shape& shape,
                                                 const std::vector<Candidate>& candidates,
                                                 const Deadlines& deadlines) {
  shape_ = shape;
  deadlines_ = deadlines;
  problem_ = {.m = shape.m,
              .n = shape.n,
              .k = shape.k,
              .types = candidates.front().types,
              .trans_a = candidates.front().layout.trans_a,
              .trans_b = candidates.front().layout.trans_b,
              .scales_a = rules_.scales.a,
              .scales_b = rules_.scales.b};
  candidates_.clear();
  vendor_.clear();
  launches_ = 0;
  for (const Candidate& spec : candidates) candidates_.push_back(MakeTimedCandidate(spec));
  if (rules_.baselines) AddBaseline();
  absl::Status status = hooks_.step("drawing operands");
  if (!status.ok()) return status;
  // Operands that nothing would run on are not drawn.
  if (hooks_.now() >= deadlines_.hard) return RowsWithout(kBudgetEnded);
  status = PrepareOperands();
  if (absl::IsResourceExhausted(status)) return RowsWithout(status.message());
  ReserveWorkspace();
  if (status.ok() && rules_.baselines) status = AddAlgorithms();
  if (status.ok()) status = PrepareChecks();
  // Backwards: the baselines stand last, and before them the kernels that are likely
  // the fastest.
  for (auto candidate = candidates_.rbegin(); candidate != candidates_.rend(); ++candidate) {
    if (status.ok() && !candidate->out) status = FirstRunInTime(*candidate);
  }
  if (status.ok()) {
    ApplyCutoff();
    status = TakeSamples();
  }
  if (!status.ok()) return status;
  NoteMissingSamples();
  KeepFastestOfLibrary();
  if (status = MeasureEnergies(); !status.ok()) return status;
  for (const TimedCandidate& candidate : candidates_) {
    if (candidate.out || candidate.spec.kernel == nullptr) continue;
    record_[KeyOf(candidate.spec)] = {.tflops = TflopsOf(candidate), .flops = Flops(shape_)};
  }
  return MakeRows();
}

std::vector<Row> Comparison::RowsWithout(absl::string_view why) {
  for (TimedCandidate& candidate : candidates_) {
    candidate.out = true;
    candidate.note = std::string(why);
  }
  return MakeRows();
}

bool Comparison::IsScaled(const Kernel& kernel) const {
  return HasBlockScales(problem_) && kernel.block_scales;
}

LaunchFn Comparison::LaunchOf(const Candidate& spec) const {
  const Kernel& kernel = *spec.kernel;
  const bool scales = IsScaled(kernel);
  if (spec.types == problem_.types && scales == HasBlockScales(problem_)) {
    return [&kernel](const Launch& launch) { return RunProduct(kernel, launch); };
  }
  // A baseline in another mode, or without scales.
  return [&kernel, scales, types = spec.types](const Launch& launch) {
    Problem problem = launch.problem;
    problem.types = types;
    if (!scales) problem.scales_a = problem.scales_b = ScaleBlocks::kNone;
    return RunProduct(kernel, {.problem = problem,
                               .operands = launch.operands,
                               .workspace = launch.workspace,
                               .params = launch.params,
                               .stream = launch.stream,
                               .libraries = launch.libraries,
                               .transposed = launch.transposed,
                               .stop = launch.stop});
  };
}

Comparison::TimedCandidate Comparison::MakeTimedCandidate(const Candidate& spec) const {
  const Kernel& kernel = *spec.kernel;
  return {.spec = spec,
          .name = std::string(kernel.name),
          .family = std::string(kernel.family),
          .launch = spec.launch ? spec.launch : LaunchOf(spec),
          .scaled = IsScaled(kernel),
          .workspace_bytes = WorkspaceBytes(kernel, problem_),
          .most_samples = rules_.iterations};
}

void Comparison::AddBaseline() {
  const Kernel* const baseline = FindBaseline(problem_.types, backend_.caps());
  if (baseline == nullptr) return;
  vendor_ = std::string(baseline->name);
  for (const TimedCandidate& candidate : candidates_) {
    if (candidate.name == vendor_) return;
  }
  candidates_.push_back(MakeTimedCandidate({.kernel = baseline,
                                            .types = problem_.types,
                                            .layout = {problem_.trans_a, problem_.trans_b}}));
  candidates_.back().baseline = true;
}

absl::Status Comparison::PrepareChecks() {
  checks_.clear();
  for (const TimedCandidate& candidate : candidates_) {
    if (candidate.out || checks_.count(candidate.scaled) > 0) continue;
    Checks& checks = checks_[candidate.scaled];
    Problem problem = problem_;
    if (!candidate.scaled) problem.scales_a = problem.scales_b = ScaleBlocks::kNone;
    absl::Status status =
        checks.oracle.Prepare(backend_, problem, sets_.At(0), sets_.Known(), rules_.checked_lines,
                              [&] { return hooks_.step("working out what is right"); });
    if (status.ok()) {
      status = checks.exact.Prepare(backend_, sets_, problem, rules_.checked_lines,
                                    [&] { return hooks_.step("working out what is exact"); });
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Comparison::PrepareOperands() {
  const absl::Status status = sets_.Prepare(problem_);
  if (!absl::IsResourceExhausted(status) || workspace_bytes_ == 0) return status;
  // Scratch memory for kernels of an earlier shape is in the way.
  workspace_.reset();
  workspace_bytes_ = 0;
  return sets_.Prepare(problem_);
}

void Comparison::ReserveWorkspace() {
  size_t bytes = 0;
  for (const TimedCandidate& candidate : candidates_)
    bytes = std::max(bytes, candidate.workspace_bytes);
  if (bytes > workspace_bytes_) {
    workspace_.reset();
    workspace_bytes_ = 0;
    absl::StatusOr<Buffer> data = backend_.Allocate(bytes);
    if (data.ok()) {
      workspace_ = *std::move(data);
      workspace_bytes_ = bytes;
    }
  }
  for (TimedCandidate& candidate : candidates_) {
    if (candidate.workspace_bytes <= workspace_bytes_) continue;
    candidate.out = true;
    candidate.note =
        absl::StrCat("no room for its ", candidate.workspace_bytes, " bytes of scratch");
  }
}

absl::StatusOr<double> Comparison::TimeLaunches(const TimedCandidate& candidate, int count) {
  return backend_.Time([&](int) { return Enqueue(candidate, sets_.At(launches_++)); }, count,
                       candidate.expected_seconds);
}

absl::Status Comparison::Enqueue(const TimedCandidate& candidate, const Operands& operands) {
  const Workspace workspace = {workspace_.get(), candidate.workspace_bytes};
  return candidate.launch(
      backend_.MakeLaunch(problem_, operands, workspace, candidate.spec.params));
}

absl::Status Comparison::CheckDevice(const TimedCandidate& candidate) {
  const absl::Status lost = backend_.Synchronize();
  if (lost.ok()) return lost;
  return absl::Status(
      lost.code(), absl::StrCat(candidate.name, " on ", ShapeName(shape_), ": ", lost.message()));
}

absl::Status Comparison::TakeOut(TimedCandidate& candidate, const absl::Status& status) {
  if (absl::Status lost = CheckDevice(candidate); !lost.ok()) return lost;
  candidate.out = true;
  candidate.note = std::string(status.message());
  return absl::OkStatus();
}

int Comparison::LaunchesOf(const TimedCandidate& candidate) const {
  return LaunchesOfSample(absl::ToDoubleSeconds(rules_.sample_time), candidate.expected_seconds);
}

std::optional<double> Comparison::ForeseenSeconds(const TimedCandidate& candidate) const {
  const double flops = Flops(shape_);
  const auto known = record_.find(KeyOf(candidate.spec));
  if (known != record_.end() && flops <= known->second.flops * kMuchLarger) {
    return flops / (known->second.tflops * 1e12);
  }
  if (candidate.name == kReference) return flops / kReferenceFlops;
  return std::nullopt;
}

std::string Comparison::NoTimeFor(const TimedCandidate& candidate) const {
  const absl::Time now = hooks_.now();
  if (now >= deadlines_.hard) return std::string(kBudgetEnded);
  if (candidate.spec.kernel == nullptr || deadlines_.soft == absl::InfiniteFuture()) return "";
  const std::optional<double> needed = ForeseenSeconds(candidate);
  if (!needed || now + absl::Seconds(*needed) < deadlines_.soft) return "";
  double fastest = 0;
  for (const auto& [key, speed] : record_) fastest = std::max(fastest, speed.tflops);
  const double tflops = Flops(shape_) / *needed * 1e-12;
  if (candidate.name != kReference && tflops * kSlow > fastest) return "";
  return absl::StrFormat(
      "left out: a run takes about %.2g s, more than the time budget has left "
      "for this shape",
      *needed);
}

absl::Status Comparison::FirstRunInTime(TimedCandidate& candidate) {
  if (const absl::Status status = hooks_.step(candidate.name); !status.ok()) return status;
  if (std::string why = NoTimeFor(candidate); !why.empty()) {
    candidate.out = true;
    candidate.note = std::move(why);
    return absl::OkStatus();
  }
  return FirstRun(candidate);
}

// Runs it into a poisoned D, checks that against the oracle, and measures how long it
// takes.
absl::Status Comparison::FirstRun(TimedCandidate& candidate) {
  launches_ = 0;
  absl::Status status = backend_.Fill(sets_.At(0).d, kPoison, sets_.d_bytes());
  if (!status.ok()) return status;
  absl::StatusOr<double> seconds = TimeLaunches(candidate, 1);
  if (!seconds.ok()) return TakeOut(candidate, seconds.status());
  absl::StatusOr<SampledError> error = checks_.at(candidate.scaled).oracle.Compare(backend_);
  if (!error.ok()) return TakeOut(candidate, error.status());
  candidate.error = *error;
  if (status = CompareExactly(candidate, *seconds); !status.ok() || candidate.out) return status;
  const bool again =
      *seconds < kLongSeconds || (!HasRun(candidate) && candidate.name != kReference &&
                                  hooks_.now() + absl::Seconds(*seconds) < deadlines_.soft);
  candidate.expected_seconds = *seconds;  // from here on it is timed as in a sample
  if (again) seconds = TimeLaunches(candidate, 1);
  if (!seconds.ok()) return TakeOut(candidate, seconds.status());
  candidate.expected_seconds = *seconds;
  return absl::OkStatus();
}

// Computes a product of signs into a poisoned D. An inexact result counts as infinitely far beyond
// its bound.
absl::Status Comparison::CompareExactly(TimedCandidate& candidate, double seconds) {
  const ExactCheck& exact = checks_.at(candidate.scaled).exact;
  std::string missing = exact.missing();
  if (missing.empty() && hooks_.now() + absl::Seconds(seconds) >= deadlines_.soft) {
    missing = "not compared exactly: the time budget ended";
  }
  if (!missing.empty()) {
    AddNote(candidate, missing);
    return absl::OkStatus();
  }
  absl::Status status = backend_.Fill(exact.operands().d, kPoison, sets_.d_bytes());
  if (!status.ok()) return status;
  if (status = Enqueue(candidate, exact.operands()); !status.ok()) {
    return TakeOut(candidate, status);
  }
  const absl::StatusOr<SampledError> error = exact.Compare(backend_);
  if (!error.ok()) return TakeOut(candidate, error.status());
  candidate.error.TakeExact(*error);
  if (error->of_bound == 0) return absl::OkStatus();
  AddNote(candidate, absl::StrFormat("a product of -1, 0 and 1 is off by %.3g", error->absolute));
  return absl::OkStatus();
}

bool Comparison::HasRun(const TimedCandidate& candidate) const {
  return candidate.spec.kernel != nullptr && record_.find(KeyOf(candidate.spec)) != record_.end();
}

void Comparison::ApplyCutoff() {
  double best = std::numeric_limits<double>::infinity();
  for (const TimedCandidate& candidate : candidates_) {
    if (!candidate.out) best = std::min(best, candidate.expected_seconds);
  }
  for (TimedCandidate& candidate : candidates_) {
    if (candidate.out || candidate.expected_seconds <= rules_.cutoff * best) continue;
    // Samples of short runs cost no more than the best's, and one alone says little.
    if (candidate.expected_seconds <= kShortSeconds) continue;
    candidate.most_samples = 0;
    candidate.samples = {candidate.expected_seconds};
    AddNote(candidate, absl::StrFormat("one run: %.0f times as long as the best's",
                                       candidate.expected_seconds / best));
  }
}

absl::Status Comparison::TakeSamples() {
  const size_t count = candidates_.size();
  for (int round = 0; round < rules_.iterations; ++round) {
    // Another begins each round, so that no one always follows the same.
    for (size_t i = 0; i < count; ++i) {
      TimedCandidate& candidate = candidates_[(i + static_cast<size_t>(round)) % count];
      if (candidate.out || round >= candidate.most_samples) continue;
      if (hooks_.now() >= deadlines_.soft) return absl::OkStatus();
      if (absl::Status status = hooks_.step(candidate.name); !status.ok()) return status;
      if (absl::Status status = TakeSample(candidate); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Comparison::TakeSample(TimedCandidate& candidate) {
  const int warmups = candidate.samples.empty() ? WarmupsOf(candidate) : 0;
  if (warmups > 0) {
    const absl::StatusOr<double> warm = TimeLaunches(candidate, warmups);
    if (!warm.ok()) return TakeOut(candidate, warm.status());
    candidate.expected_seconds = *warm;
  }
  const absl::StatusOr<double> seconds = TimeLaunches(candidate, LaunchesOf(candidate));
  if (!seconds.ok()) return TakeOut(candidate, seconds.status());
  candidate.samples.push_back(*seconds);
  return absl::OkStatus();
}

int Comparison::WarmupsOf(const TimedCandidate& candidate) const {
  const double left = absl::ToDoubleSeconds(deadlines_.soft - hooks_.now());
  const double fitting = left / std::max(candidate.expected_seconds, 1e-9);
  return static_cast<int>(std::clamp(fitting, 0.0, static_cast<double>(rules_.warmup)));
}

}  // namespace gemm::bench
