#include "server/floods/unfinished_calls.h"

#include <algorithm>
#include <utility>

#include "server/base/clock.h"

namespace gemmd {
namespace {

// After the last call of a connection. What a closed one had sent is read within seconds.
constexpr absl::Duration kForgetAfter = absl::Minutes(10);
constexpr absl::Duration kForgetClosedAfter = absl::Minutes(1);
// A call that was not handed over by then was dropped.
constexpr absl::Duration kDroppedAfter = absl::Minutes(1);

}  // namespace

bool UnfinishedCalls::Begin(uint64_t connection, bool of_caller, const std::string& caller) {
  const absl::Time now = SteadyNow();
  std::string report;
  {
    MutexLock lock(mutex_);
    Connection& its = connections_[connection];
    its.last_call = now;
    its.of_caller |= of_caller;
    if (its.caller != caller && !caller.empty()) its.caller = caller;
    ForgetDropped(its, now);
    if (its.calls() < most_) {
      ++its.begun;
      if (connections_.size() > forget_at_) ForgetOld(now);
      return true;
    }
    its.exceeded = true;
    report = ToReport(its);
  }
  if (!report.empty()) on_excess_(report);
  return false;
}

void UnfinishedCalls::HandOver(uint64_t connection, const std::string& peer) {
  const absl::Time now = SteadyNow();
  std::string report;
  bool is_callers = false;
  std::string caller;
  {
    MutexLock lock(mutex_);
    Connection& its = connections_[connection];
    its.last_call = now;
    is_callers = its.of_caller && !std::exchange(its.told_of_caller, its.of_caller);
    if (is_callers) caller = its.caller;
    // The latest first. So dropped calls are left with those before, and forgotten with them.
    int64_t& begun = its.begun > 0 ? its.begun : its.begun_before;
    begun = std::max<int64_t>(0, begun - 1);
    ++its.handed_over;
    if (its.peer.empty()) its.peer = peer;
    report = ToReport(its);
  }
  if (is_callers) on_caller_(peer, caller);
  if (!report.empty()) on_excess_(report);
}

void UnfinishedCalls::End(uint64_t connection) {
  on_end_();
  MutexLock lock(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  Connection& its = found->second;
  its.handed_over = std::max<int64_t>(0, its.handed_over - 1);
  if (its.calls() == 0 && !its.exceeded) connections_.erase(found);
}

bool UnfinishedCalls::FirstCallWaits() const {
  MutexLock lock(mutex_);
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& entry) {
    return entry.second.peer.empty() && entry.second.calls() > 0;
  });
}

size_t UnfinishedCalls::connections() const {
  MutexLock lock(mutex_);
  return connections_.size();
}

void UnfinishedCalls::ForgetDropped(Connection& connection, absl::Time now) {
  const absl::Duration period = now - connection.period_began;
  if (period < kDroppedAfter) return;
  connection.begun_before = period < 2 * kDroppedAfter ? connection.begun : 0;
  connection.begun = 0;
  connection.period_began = now;
}

std::string UnfinishedCalls::ToReport(Connection& connection) {
  if (!connection.exceeded || connection.peer.empty()) return "";
  return std::exchange(connection.reported, true) ? "" : connection.peer;
}

void UnfinishedCalls::ForgetOld(absl::Time now) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    const Connection& its = it->second;
    const absl::Duration after = its.exceeded ? kForgetClosedAfter : kForgetAfter;
    it = now - its.last_call > after ? connections_.erase(it) : std::next(it);
  }
  forget_at_ = std::max<size_t>(1024, 2 * connections_.size());
}

}  // namespace gemmd
