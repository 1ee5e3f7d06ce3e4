#include "client/ctl/tune/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/bench_messages.h"
#include "client/ctl/catalogue.h"
#include "client/ctl/output/render.h"
#include "client/ctl/run_benchmark.h"
#include "client/ctl/tune/candidates.h"
#include "gemm/quote.h"
#include "kernels/bench/spec/rules.h"

namespace gemmd::ctl {
namespace {

namespace bench = gemm::bench;
namespace v1 = ::gemm::v1;

// A request names so many kernels at most.
constexpr size_t kMostNames = 256;

bool IsSelected(const client::KernelInfo& kernel, const TuneOptions& options) {
  const auto& families = options.selection.families;
  if (!families.empty() &&
      std::find(families.begin(), families.end(), kernel.family()) == families.end()) {
    return false;
  }
  const auto& devices = kernel.devices();
  if (options.device.empty()
          ? devices.empty()
          : std::find(devices.begin(), devices.end(), options.device) == devices.end()) {
    return false;
  }
  return kernel.deterministic();
}

bool Matches(const std::vector<bench::TypesPattern>& patterns, const gemm::Types& types) {
  return std::any_of(
      patterns.begin(), patterns.end(),
      [&types](const bench::TypesPattern& pattern) { return pattern.Matches(types); });
}

// The combinations of these types that the kernel takes.
std::map<std::string, v1::KernelTypes> TypesTaken(
    const client::KernelInfo& kernel, const std::vector<bench::TypesPattern>& patterns) {
  std::map<std::string, v1::KernelTypes> taken;
  for (const v1::KernelTypes& row : kernel.types()) {
    const auto types = FromProto(row);
    if (!types.ok()) continue;  // newer than this program
    if (Matches(patterns, *types)) taken[bench::TypesName(*types)] = row;
  }
  return taken;
}

std::map<std::string, std::vector<int64_t>> ValuesToTry(
    const std::map<std::string, client::KernelInfo>& kernels, const std::set<std::string>& names) {
  std::map<std::string, std::vector<int64_t>> values;
  for (const std::string& name : names) {
    for (const v1::KernelParam& param : kernels.at(name).params()) {
      bench::AddValuesToTry(param.name(), param.min(), param.max(), values);
    }
  }
  return values;
}

}  // namespace

TuningSession::TuningSession(const Context& context, client::Client& client,
                             const TuneOptions& options, std::vector<TuneTarget> targets)
    : context_(context),
      client_(client),
      options_(options),
      targets_(std::move(targets)),
      progress_(context.err, context.err_is_terminal),
      began_(absl::Now()) {}

absl::Status TuningSession::CheckDevice() const {
  std::string names;
  for (const auto& device : client_.server().devices()) {
    if (options_.device.empty() || device.name() == options_.device) return absl::OkStatus();
    absl::StrAppend(&names, names.empty() ? "" : ", ", device.name());
  }
  if (names.empty()) return absl::OkStatus();  // the server says none
  return absl::InvalidArgumentError(
      absl::StrCat("device is ", gemm::Quoted(options_.device), ", but this server has ", names));
}

absl::Status TuningSession::SelectKernels() {
  if (absl::Status status = CheckDevice(); !status.ok()) return status;
  const auto listed = client_.ListKernels("", Call(context_));
  if (!listed.ok()) return listed.status();
  Kernels named;
  if (options_.selection.kernels.empty()) named = *listed;
  for (const std::string& pattern : options_.selection.kernels) {
    const Kernels fitting = KernelsNamed(*listed, pattern);
    named.insert(named.end(), fitting.begin(), fitting.end());
  }
  std::map<std::string, v1::KernelTypes> all_types;
  for (client::KernelInfo& kernel : named) {
    if (!IsSelected(kernel, options_)) continue;
    const auto types = TypesTaken(kernel, options_.selection.types);
    if (types.empty()) continue;
    all_types.insert(types.begin(), types.end());
    std::string name = kernel.name();
    kernels_.insert_or_assign(std::move(name), std::move(kernel));
  }
  for (const auto& [name, types] : all_types) types_.push_back(types);
  if (!kernels_.empty()) return absl::OkStatus();
  return absl::NotFoundError(
      "no deterministic kernel of the selection takes the types on a device of the server; see "
      "gemmctl kernels --available");
}

absl::Status TuningSession::Run() {
  if (absl::Status status = SelectKernels(); !status.ok()) return status;
  for (const TuneTarget& target : targets_) {
    if (absl::Status status = Tune(target); !status.ok()) {
      progress_.Erase();
      return status;
    }
    ++done_;
  }
  progress_.Erase();
  return absl::OkStatus();
}

absl::StatusOr<std::set<std::string>> TuningSession::WorthMeasuring(const TuneTarget& target) {
  Candidates candidates(static_cast<size_t>(options_.best_estimates));
  for (const v1::KernelTypes& types : types_) {
    if (options_.best_estimates == 0) break;
    if (const auto own = FromProto(types); !own.ok() || !Matches(target.types, *own)) continue;
    v1::RankKernelsRequest request;
    request.set_device(options_.device);
    request.mutable_size()->set_m(target.shape.m);
    request.mutable_size()->set_n(target.shape.n);
    request.mutable_size()->set_k(target.shape.k);
    *request.mutable_types() = types;
    request.mutable_layout()->set_transpose_a(target.layout.trans_a);
    request.mutable_layout()->set_transpose_b(target.layout.trans_b);
    const auto ranking = client_.RankKernels(request, Call(context_));
    if (!ranking.ok()) return ranking.status();
    candidates.Add(*ranking);
  }
  std::set<std::string> worth;
  for (const auto& [name, kernel] : kernels_) {
    if (candidates.LeavesOut(name) || TypesTaken(kernel, target.types).empty()) continue;
    worth.insert(name);
  }
  return worth;
}

absl::Status TuningSession::Tune(const TuneTarget& target) {
  bench::TuningRounds rounds;
  auto worth = WorthMeasuring(target);
  if (!worth.ok()) return worth.status();
  std::set<std::string> left = *std::move(worth);
  for (round_ = 1; round_ <= options_.rounds && !left.empty(); ++round_) {
    if (absl::Status status = MeasureRound(target, left, rounds); !status.ok()) {
      return status;
    }
    rounds.EndRound();
    left = rounds.Finalists(bench::kFinalistFactor);
  }
  wrong_.insert(rounds.wrong().begin(), rounds.wrong().end());
  const bench::TuningRounds::Best best = rounds.Fastest();
  if (best.empty()) {
    unmeasured_.push_back(
        absl::StrCat(bench::ShapeName(target.shape), " ", bench::LayoutName(target.layout)));
  }
  for (const auto& [product, choice] : best) {
    if (absl::Status status = table_.Put(*machine_, product, choice); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status TuningSession::MeasureRound(const TuneTarget& target,
                                         const std::set<std::string>& kernels,
                                         bench::TuningRounds& rounds) {
  Show(target.shape, "starts");
  bench::BenchmarkOptions measured;
  measured.shapes = {target.shape};
  measured.selection = options_.selection;
  measured.selection.types = target.types;
  if (kernels.size() < kernels_.size() && kernels.size() <= kMostNames) {
    measured.selection.families.clear();
    measured.selection.kernels.assign(kernels.begin(), kernels.end());
  }
  measured.selection.layout = target.layout;
  measured.selection.params = ValuesToTry(kernels_, kernels);
  measured.rules.iterations = options_.iterations;
  measured.rules.baselines = false;
  measured.budget = options_.budget;
  const auto end = RunBenchmark(
      context_, client_, measured, options_.device,
      [&](const client::BenchmarkResponse& response) { return Take(response, rounds); });
  if (!end.ok()) return end.status();
  concurrent_jobs_ += end->concurrent_jobs();
  return absl::OkStatus();
}

absl::Status TuningSession::Take(const client::BenchmarkResponse& response,
                                 bench::TuningRounds& rounds) {
  if (response.has_header()) {
    header_ = response.header();
    const v1::MachineInfo& from = header_.machine();
    if (from.device().empty()) {
      return absl::FailedPreconditionError(
          "the server does not say what its times depend on: it is older than gemmctl tune");
    }
    machine_ = {.device = from.device(),
                .driver = from.driver(),
                .cuda = from.cuda(),
                .library = from.library()};
  } else if (response.has_progress()) {
    const auto progress = FromProto(response.progress(), header_);
    if (!progress.ok()) return progress.status();
    Show(progress->at, progress->step);
  } else if (response.has_rows()) {
    const auto rows = FromProto(response.rows(), header_);
    if (!rows.ok()) return rows.status();
    for (const bench::Row& row : *rows) {
      if (kernels_.count(row.kernel) > 0) rounds.Add(row);
    }
  }
  return absl::OkStatus();
}

void TuningSession::Show(const bench::Shape& shape, const std::string& step) {
  if (options_.quiet) return;
  const size_t shapes = targets_.size();
  const absl::Duration elapsed = absl::Now() - began_;
  const auto done = static_cast<double>(done_);
  progress_.Update({.shape = done_,
                    .shapes = shapes,
                    .at = shape,
                    .step = absl::StrCat("round ", round_, "/", options_.rounds, " ", step),
                    .elapsed = elapsed,
                    .left = done_ == 0 ? absl::InfiniteDuration()
                                       : elapsed * ((static_cast<double>(shapes) - done) / done)});
}

}  // namespace gemmd::ctl
