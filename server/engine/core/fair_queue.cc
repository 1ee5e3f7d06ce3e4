#include "server/engine/core/fair_queue.h"

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
  const auto [entry, is_new] = flows_.try_emplace(claim.flow);
  if (is_new) entry->second = ring_.insert(ring_.end(), Flow{.name = claim.flow});
  Flow& flow = *entry->second;
  flow.weight = Bounded(claim.weight);
  Band& band = flow.bands[claim.cost.band];
  const absl::Duration cost = claim.cost.device_time;
  const Runnable* const key = job.get();
  band.jobs.push_back({.job = std::move(job), .cost = cost, .arrived = now});
  places_[key] = {
      .flow = entry->second, .band = claim.cost.band, .job = std::prev(band.jobs.end())};
  band.cost += cost;
  flow.cost += cost;
  cost_ += cost;
  ++flow.jobs;
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

FairQueue::Turn FairQueue::NextTurn(Which which) {
  Turn next{.flow = ring_.end()};
  for (auto flow = ring_.begin(); flow != ring_.end(); ++flow) {
    const auto band = NextBand(*flow, which);
    if (band == flow->bands.end()) continue;
    if (which == Which::kAny) {
      flow->credit = std::min(flow->credit, band->second.jobs.front().cost + kMostSaved);
    }
    const double lacking = RoundsFor(*flow, band->second.jobs.front().cost);
    if (next.flow != ring_.end() && lacking >= next.rounds) continue;
    next = {.flow = flow, .rounds = lacking};
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
  const auto [next, rounds] = NextTurn(which);
  if (next == ring_.end()) return std::nullopt;
  const auto band = NextBand(*next, which);
  if (!wanted(band->second.jobs.front().job.get())) return std::nullopt;
  // A stream for quick jobs takes them in advance: the others' turn has not come for it.
  if (which == Which::kAny && rounds > 0) {
    for (Flow& flow : ring_) flow.credit += kQuantum * (rounds * flow.weight);
  }
  Taken taken{.cost = band->second.jobs.front().cost,
              .flow = next->name,
              .quick = band->first == kQuickBand};
  // A debt that Settle left may be larger.
  next->credit = std::max(next->credit - taken.cost, std::min(next->credit, -kMostDebt));
  ring_.splice(ring_.end(), ring_, next);
  const auto place = places_.find(band->second.jobs.front().job.get());
  taken.job = Extract(place->second);
  places_.erase(place);
  return taken;
}

void FairQueue::Settle(absl::string_view flow, Which which, absl::Duration cost,
                       absl::Duration took) {
  const auto entry = flows_.find(flow);
  if (entry == flows_.end()) return;
  absl::Duration& credit = entry->second->credit;
  const absl::Duration settled = credit + cost - took;
  // Of quick jobs no more debt is remembered than Take does.
  credit = which == Which::kAny ? settled : std::max(settled, std::min(credit, -kMostDebt));
}

bool FairQueue::quick_waits() const {
  return std::any_of(ring_.begin(), ring_.end(),
                     [](const Flow& flow) { return flow.bands.contains(kQuickBand); });
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
    flows_.erase(flow.name);
    ring_.erase(place.flow);
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
      // Of a band above, those that have waited longer than its head start.
      const absl::Time latest = now - (number - claim.cost.band) * kHeadStart;
      for (const Waiting& waiting : band.jobs) {
        if (waiting.arrived > latest) break;
        ahead += waiting.cost;
      }
    }
  }
  // What the others are served until the job's flow has been given enough for it.
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

}  // namespace gemmd
