#include "client/ctl/load/statistics.h"

#include "absl/strings/str_cat.h"
#include "client/ctl/output/format.h"
#include "gemm/quote.h"

namespace gemmd::ctl {
namespace {

void AddError(Tally& tally, const std::string& code, const std::string& message) {
  ++tally.failed;
  Tally::Errors& errors = tally.errors[code];
  if (errors.count++ == 0) errors.first = message;
}

}  // namespace

void Tally::Merge(const Tally& other) {
  succeeded += other.succeeded;
  failed += other.failed;
  for (const auto& [code, theirs] : other.errors) {
    Errors& ours = errors[code];
    if (ours.count == 0) ours.first = theirs.first;
    ours.count += theirs.count;
  }
  flops += other.flops;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  verified += other.verified;
  wrong += other.wrong;
  if (first_wrong.empty()) first_wrong = other.first_wrong;
  latency.Merge(other.latency);
  for (size_t i = 0; i < kPhaseCount; ++i) phases[i].Merge(other.phases[i]);
}

Statistics::Statistics(size_t shards, size_t choices) : choices_(choices) {
  for (size_t i = 0; i < shards; ++i) {
    shards_.push_back(std::make_unique<Shard>());
    shards_.back()->tallies.resize(choices);
  }
}

void Statistics::AddOutcome(size_t worker, size_t choice, const Outcome& outcome,
                            absl::Duration latency, absl::Duration at) {
  {
    const std::lock_guard lock(series_mutex_);
    outcome.status.ok() ? series_.AddSuccess(at, latency) : series_.AddFailure(at);
  }
  Shard& shard = ShardOf(worker);
  const std::lock_guard lock(shard.mutex);
  Tally& tally = shard.tallies[choice];
  ++shard.interval.done;
  if (!outcome.status.ok()) {
    AddError(tally, absl::StatusCodeToString(outcome.status.code()),
             gemm::EscapeControls(outcome.status.message()));
    return;
  }
  ++tally.succeeded;
  tally.flops += outcome.flops;
  tally.bytes_sent += outcome.bytes_sent;
  tally.bytes_received += outcome.bytes_received;
  tally.latency.Record(latency);
  shard.interval.latency.Record(latency);
  if (outcome.phases.has_value()) {
    for (size_t i = 0; i < kPhaseCount; ++i) tally.phases[i].Record((*outcome.phases)[i]);
  }
}

void Statistics::AddNotSent(size_t worker, size_t choice, absl::Duration late, absl::Duration at) {
  {
    const std::lock_guard lock(series_mutex_);
    series_.AddFailure(at, late);
  }
  Shard& shard = ShardOf(worker);
  const std::lock_guard lock(shard.mutex);
  ++shard.interval.done;
  shard.interval.latency.Record(late);
  shard.tallies[choice].latency.Record(late);
  AddError(
      shard.tallies[choice], kNotSentInTime,
      absl::StrCat("every worker was busy until ", DurationText(late), " after the planned time"));
}

void Statistics::AddVerdict(size_t worker, size_t choice, const Verdict& verdict) {
  if (!verdict.checked && verdict.fetched.ok()) return;
  Shard& shard = ShardOf(worker);
  const std::lock_guard lock(shard.mutex);
  Tally& tally = shard.tallies[choice];
  if (!verdict.fetched.ok()) {
    --tally.succeeded;
    return AddError(tally, absl::StatusCodeToString(verdict.fetched.code()),
                    gemm::EscapeControls(verdict.fetched.message()));
  }
  ++tally.verified;
  if (verdict.right) return;
  if (tally.wrong++ == 0) tally.first_wrong = verdict.explanation;
}

std::vector<Tally> Statistics::SumByChoice() const {
  std::vector<Tally> sums(choices_);
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    for (size_t i = 0; i < choices_; ++i) sums[i].Merge(shard->tallies[i]);
  }
  return sums;
}

Tally Statistics::Sum() const {
  Tally sum;
  for (const Tally& tally : SumByChoice()) sum.Merge(tally);
  return sum;
}

Series Statistics::series() const {
  const std::lock_guard lock(series_mutex_);
  return series_;
}

uint64_t Statistics::failed() const {
  uint64_t failed = 0;
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    for (const Tally& tally : shard->tallies) failed += tally.failed;
  }
  return failed;
}

Interval Statistics::TakeInterval() {
  Interval sum;
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    sum.done += shard->interval.done;
    sum.latency.Merge(shard->interval.latency);
    shard->interval.done = 0;
    shard->interval.latency.Clear();
  }
  return sum;
}

}  // namespace gemmd::ctl
