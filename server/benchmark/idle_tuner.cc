#include "server/benchmark/idle_tuner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "files/output_file.h"
#include "gemm/kernel.h"
#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/rules.h"
#include "kernels/bench/spec/selection.h"
#include "kernels/bench/spec/shape.h"
#include "server/base/clock.h"
#include "server/base/thread_name.h"
#include "server/engine/core/tuning.h"

namespace gemmd {
namespace {

namespace bench = gemm::bench;

constexpr absl::Duration kLookPeriod = absl::Milliseconds(250);

// The rows of a benchmark, and its end.
class IdleRows final : public BenchmarkListener {
 public:
  void OnOutline(const BenchmarkOutline& /*outline*/) override {}
  void OnProgress(const bench::Progress& /*progress*/) override {}
  void OnRows(size_t /*shape*/, absl::Span<const bench::Row> rows) override {
    MutexLock lock(mutex_);
    rows_.insert(rows_.end(), rows.begin(), rows.end());
  }
  void OnEnd(absl::StatusOr<BenchmarkTotals> totals) override {
    MutexLock lock(mutex_);
    end_ = totals.status();
    ended_.NotifyAll();
  }

  absl::StatusOr<std::vector<bench::Row>> Wait() {
    MutexLock lock(mutex_);
    while (!end_.has_value()) ended_.Wait(mutex_);
    if (!end_->ok()) return *end_;
    return rows_;
  }

 private:
  Mutex mutex_;
  CondVar ended_;
  std::vector<bench::Row> rows_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

// The deterministic ones, by their names.
std::map<std::string, const gemm::Kernel*> WorthMeasuring(const KernelRanking& ranking) {
  std::vector<bench::Estimate> estimates;
  std::map<std::string, const gemm::Kernel*> kernels;
  for (const RankedKernel& ranked : ranking.kernels) {
    if (!ranked.kernel->deterministic) continue;
    std::string name(ranked.kernel->name);
    estimates.push_back({name, std::string(ranked.kernel->family), ranked.estimated_seconds});
    kernels.emplace(std::move(name), ranked.kernel);
  }
  const std::set<std::string> worth = bench::WorthMeasuring(estimates, kIdleBestEstimates);
  std::erase_if(kernels, [&worth](const auto& kernel) { return worth.count(kernel.first) == 0; });
  return kernels;
}

BenchmarkSpec SpecOf(const gemm::TunedProduct& product, const KernelRanking& ranking) {
  BenchmarkSpec spec;
  spec.device = ranking.device;
  spec.shapes = {{product.m, product.n, product.k}};
  spec.selection.types = {
      {.a = product.a, .b = product.b, .d = product.d, .compute = product.compute}};
  spec.selection.layout = bench::Layout{product.trans_a, product.trans_b};
  spec.rules.baselines = false;
  spec.gives_way = true;
  return spec;
}

// Every kernel of `names`, with every value of its parameters that is tried.
void Select(const std::map<std::string, const gemm::Kernel*>& kernels,
            const std::set<std::string>& names, bench::Selection& selection) {
  selection.kernels.assign(names.begin(), names.end());
  selection.params.clear();
  for (const std::string& name : names) {
    for (const gemm::ParamSpec& param : kernels.at(name)->params) {
      bench::AddValuesToTry(std::string(param.name), param.min, param.max, selection.params);
    }
  }
}

// A row for the measurement under way.
std::optional<double> SecondsOfChoice(const gemm::TunedProduct& product,
                                      const KernelRanking& ranking,
                                      const bench::TuningRounds& rounds) {
  const RankedKernel& taken = ranking.kernels.front();
  std::map<std::string, int64_t> params = taken.params;
  std::erase_if(params, [](const auto& param) { return param.second == gemm::kOwnChoice; });
  return rounds.SecondsOf(product, std::string(taken.kernel->name), params);
}

}  // namespace

absl::string_view Name(IdleTuningOutcome outcome) {
  switch (outcome) {
    case IdleTuningOutcome::kTuned:
      return "tuned";
    case IdleTuningOutcome::kInterrupted:
      return "interrupted";
    case IdleTuningOutcome::kGivenUp:
      return "given_up";
    case IdleTuningOutcome::kFailed:
      return "failed";
  }
  return "unknown";
}

std::string TextOf(const gemm::TunedProduct& product) {
  return absl::StrCat(bench::ShapeName({product.m, product.n, product.k}), " ",
                      bench::TypesName(product.types()), " ",
                      bench::LayoutName({product.trans_a, product.trans_b}));
}

IdleTuner::IdleTuner(Engine& engine, StartBenchmark start, absl::Duration longest, std::string file,
                     IdleTuningListener& listener)
    : engine_(engine),
      start_(std::move(start)),
      round_time_(std::min(longest, kIdleRoundTime)),
      file_(std::move(file)),
      listener_(listener) {}

IdleTuner::~IdleTuner() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void IdleTuner::Start() {
  thread_ = std::thread([this] {
    SetThreadName("idle tuning");
    Loop();
  });
}

void IdleTuner::Stop() {
  MutexLock lock(mutex_);
  stop_ = true;
  wake_.NotifyAll();
}

void IdleTuner::Loop() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!stop_) wake_.WaitFor(mutex_, kLookPeriod);
      if (stop_) return;
    }
    Look();
  }
}

void IdleTuner::Look() {
  if (!IsIdle()) return;
  const std::optional<gemm::TunedProduct> product = Next();
  if (!product.has_value()) return;
  listener_.OnRunning(true);
  Tune(*product);
  listener_.OnRunning(false);
}

bool IdleTuner::IsIdle() {
  const EngineActivity now = engine_.Activity();
  if (now.under_way > 0 || now.arrived != arrived_) {
    arrived_ = now.arrived;
    idle_since_ = absl::InfiniteFuture();
    return false;
  }
  if (idle_since_ == absl::InfiniteFuture()) idle_since_ = SteadyNow();
  return SteadyNow() - idle_since_ >= kIdleTime;
}

std::optional<gemm::TunedProduct> IdleTuner::Next() const {
  // As many entries as the file may get.
  if (tries_.size() >= gemm::kMaxTuningEntries) return std::nullopt;
  std::map<gemm::TunedProduct, double> seconds;
  for (const TrafficEntry& entry :
       engine_.ListTraffic(static_cast<size_t>(engine_.Stats().traffic.limit))) {
    // Products are measured without an epilogue.
    gemm::TunedProduct product = entry.product;
    product.epilogue = gemm::EpilogueClass::kPlain;
    const auto tried = tries_.find(product);
    if (tried != tries_.end() && tried->second >= kIdleTries) continue;
    seconds[product] += entry.seconds;
  }
  const auto most = std::max_element(seconds.begin(), seconds.end(),
                                     [](auto& x, auto& y) { return x.second < y.second; });
  if (most == seconds.end()) return std::nullopt;
  return most->first;
}

absl::StatusOr<KernelRanking> IdleTuner::Rank(const gemm::TunedProduct& product) const {
  RankingQuestion question{.m = product.m,
                           .n = product.n,
                           .k = product.k,
                           .a = product.a,
                           .b = product.b,
                           .output = product.d,
                           .compute = product.compute,
                           .trans_a = product.trans_a,
                           .trans_b = product.trans_b};
  for (const DeviceStats& device : engine_.Stats().devices) {
    if (!device.health.ok()) continue;
    question.device = device.name;
    break;
  }
  return engine_.RankKernels(question);
}

void IdleTuner::Tune(const gemm::TunedProduct& product) {
  const absl::StatusOr<KernelRanking> ranking = Rank(product);
  if (!ranking.ok()) return ReportUnmeasured(product, ranking.status());
  const bool has_entry =
      ranking->rule == ChoiceRule::kTableExact && !ranking->kernels.front().tuned->other_versions;
  if (has_entry) {  // its traffic has an epilogue
    tries_[product] = kIdleTries;
    return;
  }
  const absl::StatusOr<IdleTuningReport> report = Measure(product, *ranking);
  if (!report.ok()) return ReportUnmeasured(product, report.status());
  tries_[product] = kIdleTries;
  Keep(ranking->machine, *report);
  listener_.OnProduct(*report);
}

absl::StatusOr<IdleTuningReport> IdleTuner::Measure(const gemm::TunedProduct& product,
                                                    const KernelRanking& ranking) {
  const std::map<std::string, const gemm::Kernel*> kernels = WorthMeasuring(ranking);
  std::set<std::string> left;
  for (const auto& [name, kernel] : kernels) left.insert(name);
  BenchmarkSpec spec = SpecOf(product, ranking);
  spec.budget = round_time_;
  spec.stopped = [this] { return WhyStop(); };
  bench::TuningRounds rounds;
  for (int round = 0; round < kIdleRounds && !left.empty(); ++round) {
    Select(kernels, left, spec.selection);
    if (absl::Status status = MeasureRound(spec, rounds); !status.ok()) return status;
    rounds.EndRound();
    left = rounds.Finalists(bench::kFinalistFactor);
  }
  const bench::TuningRounds::Best best = rounds.Fastest();
  if (best.empty()) return absl::NotFoundError("no kernel was measured in every round");
  return IdleTuningReport{.outcome = IdleTuningOutcome::kTuned,
                          .product = product,
                          .choice = best.front().second,
                          .before_seconds = SecondsOfChoice(product, ranking, rounds)};
}

absl::Status IdleTuner::MeasureRound(const BenchmarkSpec& spec, bench::TuningRounds& rounds) {
  if (absl::Status why = WhyStop(); !why.ok()) return why;
  const auto listener = std::make_shared<IdleRows>();
  const auto run = start_(spec, listener);
  if (!run.ok()) return run.status();
  const absl::StatusOr<std::vector<bench::Row>> rows = listener->Wait();
  if (!rows.ok()) return rows.status();
  for (const bench::Row& row : *rows) rounds.Add(row);
  return absl::OkStatus();
}

absl::Status IdleTuner::WhyStop() const {
  {
    MutexLock lock(mutex_);
    if (stop_) return absl::CancelledError("the server stops");
  }
  if (engine_.Activity().arrived != arrived_) return absl::AbortedError("callers came");
  return absl::OkStatus();
}

void IdleTuner::ReportUnmeasured(const gemm::TunedProduct& product, absl::Status why) {
  idle_since_ = absl::InfiniteFuture();
  if (absl::IsCancelled(why) || absl::IsResourceExhausted(why)) return;
  int& tries = tries_[product];
  IdleTuningReport report{.product = product, .why = std::move(why)};
  if (!absl::IsAborted(report.why)) {
    tries = kIdleTries;
  } else {
    report.outcome =
        ++tries < kIdleTries ? IdleTuningOutcome::kInterrupted : IdleTuningOutcome::kGivenUp;
  }
  listener_.OnProduct(report);
}

void IdleTuner::Keep(const gemm::Machine& machine, const IdleTuningReport& report) {
  absl::Status status = found_.Put(machine, report.product, report.choice);
  absl::StatusOr<gemm::TuningTable> all = ReadIdleTuning(file_);
  if (status.ok()) status = all.status();
  if (status.ok()) status = all->Merge(found_);
  if (status.ok()) status = files::WriteFile(file_, gemm::FormatTuningTable(*all));
  if (!status.ok()) listener_.OnUnwritten(status);
}

}  // namespace gemmd
