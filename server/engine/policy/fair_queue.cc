#include "server/engine/policy/fair_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gemmd {
namespace {

// Also of a weight that is not a number.
double Bounded(double weight) {
  return weight >= kLeastWeight ? std::min(weight, kMostWeight) : kLeastWeight;
}

}  // namespace

void FairQueue::Add(std::shared_ptr<Runnable> job, const StreamClaim& claim, absl::Time now) {
  const Ring::iterator entry = FlowOf(claim.flow, claim.weight);
  Flow& flow = *entry;
  flow.weight = Bounded(claim.weight);
  if (flow.jobs == 0) ring_.splice(ring_.end(), debtors_, entry);
  Band& band = flow.bands[claim.cost.band];
  const absl::Duration cost = claim.cost.device_time;
  const Runnable* const key = job.get();
  band.jobs.push_back({.job = std::move(job), .cost = cost, .arrived = now});
  places_[key] = {.flow = entry, .band = claim.cost.band, .job = std::prev(band.jobs.end())};
  band.cost += cost;
  flow.cost += cost;
  cost_ += cost;
  ++flow.jobs;
}

FairQueue::Ring::iterator FairQueue::FlowOf(const std::string& name, double weight) {
  const auto [entry, is_new] = flows_.try_emplace(name);
  if (is_new) {
    entry->second = debtors_.insert(debtors_.end(), {.name = name, .weight = Bounded(weight)});
  }
  return entry->second;
}

void FairQueue::KeepOrForget(Ring::iterator flow) {
  if (flow->credit >= absl::ZeroDuration()) {
    flows_.erase(flow->name);
    debtors_.erase(flow);
  } else if (debtors_.size() > kMostDebtors) {
    flows_.erase(debtors_.front().name);
    debtors_.pop_front();
  }
}

void FairQueue::ForgetDebts() {
  for (const Flow& flow : debtors_) flows_.erase(flow.name);
  debtors_.clear();
}

FairQueue::Bands::iterator FairQueue::NextBand(Flow& flow, Which which) {
  if (which == Which::kQuick) return flow.bands.find(kQuickBand);
  const auto turn = [](const Bands::value_type& band) {
    return band.second.jobs.front().arrived + band.first * kHeadStart;
  };
  return std::min_element(flow.bands.begin(), flow.bands.end(),
                          [&](const auto& x, const auto& y) { return turn(x) < turn(y); });
}

double FairQueue::RoundsFor(const Flow& flow, absl::Duration cost) {
  return std::max(0.0, std::ceil(absl::FDivDuration(cost - flow.credit, kQuantum * flow.weight)));
}

std::optional<FairQueue::Taken> FairQueue::Take(Which which) {
  return TakeIf(which, [](const Runnable*) { return true; });
}

// A flow is passed over for one that is owed something, and not for one that is as far ahead.
std::optional<absl::Duration> FairQueue::MostAhead(const Flow* own) const {
  std::optional<absl::Duration> least;
  for (const Flow& flow : ring_) {
    if (&flow == own || flow.has_quick()) continue;
    const absl::Duration ahead = std::max(flow.ahead(), absl::ZeroDuration());
    least = least.has_value() ? std::min(*least, ahead) : ahead;
  }
  if (least.has_value()) *least += under_way_;
  return least;
}

bool FairQueue::InDebt(const StreamClaim& claim) const {
  const auto own = flows_.find(claim.flow);
  if (own == flows_.end()) return false;
  const Flow& flow = *own->second;
  const std::optional<absl::Duration> most_ahead = MostAhead(&flow);
  if (!most_ahead.has_value()) return false;
  const auto quick = flow.bands.find(kQuickBand);
  const absl::Duration waits =
      quick == flow.bands.end() ? absl::ZeroDuration() : quick->second.cost;
  return flow.ahead() + waits / flow.weight > *most_ahead;
}

FairQueue::Turn FairQueue::NextTurn(Which which) {
  const std::optional<absl::Duration> most_ahead =
      which == Which::kQuick ? MostAhead(nullptr) : std::nullopt;
  Turn next{.flow = ring_.end(), .in_advance = most_ahead.has_value()};
  for (auto flow = ring_.begin(); flow != ring_.end(); ++flow) {
    const auto band = NextBand(*flow, which);
    if (band == flow->bands.end()) continue;
    if (most_ahead.has_value() && flow->ahead() > *most_ahead) continue;
    if (which == Which::kAny) {
      flow->credit = std::min(flow->credit, band->second.jobs.front().cost + kMostSaved);
    }
    const double lacking = RoundsFor(*flow, band->second.jobs.front().cost);
    if (next.flow != ring_.end() && lacking >= next.rounds) continue;
    next.flow = flow;
    next.rounds = lacking;
    if (lacking == 0) break;
  }
  return next;
}

const Runnable* FairQueue::Next(Which which) {
  const Turn next = NextTurn(which);
  if (next.flow == ring_.end()) return nullptr;
  return NextBand(*next.flow, which)->second.jobs.front().job.get();
}

std::optional<FairQueue::Taken> FairQueue::TakeIf(Which which,
                                                  absl::FunctionRef<bool(const Runnable*)> wanted) {
  const auto [next, rounds, in_advance] = NextTurn(which);
  if (next == ring_.end()) return std::nullopt;
  const auto band = NextBand(*next, which);
  if (!wanted(band->second.jobs.front().job.get())) return std::nullopt;
  if (!in_advance && rounds > 0) GiveRounds(rounds);
  const Waiting& first = band->second.jobs.front();
  Taken taken{.charge = {.flow = next->name, .weight = next->weight, .cost = first.cost},
              .quick = band->first == kQuickBand};
  next->credit -= first.cost;
  if (which == Which::kAny) under_way_ += first.cost / next->weight;
  ring_.splice(ring_.end(), ring_, next);
  const auto place = places_.find(first.job.get());
  taken.job = Extract(place->second);
  places_.erase(place);
  return taken;
}

void FairQueue::GiveRounds(double rounds) {
  for (Ring* flows : {&ring_, &debtors_}) {
    for (auto next = flows->begin(); next != flows->end();) {
      const auto flow = next++;
      flow->credit += kQuantum * (rounds * flow->weight);
      if (flow->jobs == 0) KeepOrForget(flow);
    }
  }
}

std::optional<FairQueue::Charge> FairQueue::Pass(Which which, const StreamClaim& claim) {
  Charge charge{.flow = claim.flow,
                .weight = Bounded(claim.weight),
                .cost = claim.cost.device_time,
                .paid = false};
  if (which == Which::kAny) {
    under_way_ += charge.cost / charge.weight;
    return charge;
  }
  if (InDebt(claim)) return std::nullopt;
  const auto others = static_cast<size_t>(size_of(claim.flow) > 0 ? 1 : 0);
  if (ring_.size() == others) return charge;
  charge.paid = true;
  const Ring::iterator flow = FlowOf(claim.flow, claim.weight);
  flow->credit -= charge.cost;
  if (flow->jobs == 0) KeepOrForget(flow);
  return charge;
}

void FairQueue::Settle(Which which, const Charge& charge, absl::Duration took) {
  if (which == Which::kAny) under_way_ -= charge.cost / charge.weight;
  if (!charge.paid) return;
  const absl::Duration refund = charge.cost - took;
  if (!flows_.contains(charge.flow)) {
    // The flow is forgotten: a refund is lost, and a debt counts only while somebody waits.
    if (ring_.empty() || refund >= absl::ZeroDuration()) return;
  }
  const Ring::iterator flow = FlowOf(charge.flow, charge.weight);
  flow->credit += refund;
  if (flow->jobs == 0) KeepOrForget(flow);
}

bool FairQueue::quick_waits() const {
  return std::any_of(ring_.begin(), ring_.end(), [](const Flow& flow) { return flow.has_quick(); });
}

std::shared_ptr<Runnable> FairQueue::Remove(const Runnable* job) {
  const auto place = places_.find(job);
  if (place == places_.end()) return nullptr;
  std::shared_ptr<Runnable> removed = Extract(place->second);
  places_.erase(place);
  return removed;
}

std::shared_ptr<Runnable> FairQueue::Extract(const Place& place) {
  Flow& flow = *place.flow;
  const auto band = flow.bands.find(place.band);
  std::shared_ptr<Runnable> job = std::move(place.job->job);
  band->second.cost -= place.job->cost;
  flow.cost -= place.job->cost;
  cost_ -= place.job->cost;
  band->second.jobs.erase(place.job);
  if (band->second.jobs.empty()) flow.bands.erase(band);
  if (--flow.jobs == 0) {
    debtors_.splice(debtors_.end(), ring_, place.flow);
    KeepOrForget(place.flow);
  }
  return job;
}

absl::Duration FairQueue::Ahead(const StreamClaim& claim, Which which, absl::Time now) const {
  const auto own = flows_.find(claim.flow);
  absl::Duration ahead;
  absl::Duration credit;
  if (own != flows_.end()) {
    credit = own->second->credit;
    for (const auto& [number, band] : own->second->bands) {
      if (number <= claim.cost.band) {
        ahead += band.cost;
        continue;
      }
      if (which == Which::kQuick) break;
      // Jobs of a higher band that have waited longer than the head start.
      const absl::Time latest = now - (number - claim.cost.band) * kHeadStart;
      for (const Waiting& waiting : band.jobs) {
        if (waiting.arrived > latest) break;
        ahead += waiting.cost;
      }
    }
  }
  // The service of the others until the job's flow has enough credit for it.
  const absl::Duration needed =
      std::max(ahead + claim.cost.device_time - credit, absl::ZeroDuration());
  const double weight = Bounded(claim.weight);
  for (const Flow& flow : ring_) {
    if (own != flows_.end() && &flow == &*own->second) continue;
    absl::Duration backlog = flow.cost;
    if (which == Which::kQuick) {
      const auto quick = flow.bands.find(kQuickBand);
      backlog = quick == flow.bands.end() ? absl::ZeroDuration() : quick->second.cost;
    }
    ahead += std::min(backlog, needed * (flow.weight / weight));
  }
  return ahead;
}

int FairQueue::size_of(absl::string_view flow) const {
  const auto entry = flows_.find(flow);
  return entry == flows_.end() ? 0 : entry->second->jobs;
}

std::vector<WaitingFlow> FairQueue::Longest(size_t most) const {
  std::vector<const Flow*> flows;
  for (const Flow& flow : ring_) flows.push_back(&flow);
  most = std::min(most, flows.size());
  std::partial_sort(flows.begin(), flows.begin() + static_cast<ptrdiff_t>(most), flows.end(),
                    [](const Flow* x, const Flow* y) { return x->jobs > y->jobs; });
  std::vector<WaitingFlow> longest;
  for (size_t i = 0; i < most; ++i) {
    longest.push_back({.name = flows[i]->name,
                       .jobs = flows[i]->jobs,
                       .seconds = absl::ToDoubleSeconds(flows[i]->cost)});
  }
  return longest;
}

}  // namespace gemmd
