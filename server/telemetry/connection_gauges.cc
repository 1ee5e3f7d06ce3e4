#include "server/telemetry/connection_gauges.h"

#include <algorithm>

#include "server/telemetry/families.h"

namespace gemmd {
namespace {

// The open connections of a listener, by what they do.
void AddStates(prometheus::MetricFamily& states, const ConnectionStats& stats,
               const std::string& listener) {
  const auto add = [&](const char* state, int64_t count) {
    AddSample(states, static_cast<double>(count), {{"listener", listener}, {"state", state}});
  };
  add("handshaking", stats.handshaking);
  add("leaving", stats.leaving);
  add("serving", std::max<int64_t>(stats.open - stats.handshaking - stats.leaving, 0));
}

}  // namespace

void ConnectionGauges::Attach(std::string listener, Read read) {
  MutexLock lock(mutex_);
  listeners_.emplace_back(std::move(listener), std::move(read));
}

void ConnectionGauges::Detach() {
  MutexLock lock(mutex_);
  listeners_.clear();
}

std::vector<prometheus::MetricFamily> ConnectionGauges::Collect() const {
  prometheus::MetricFamily open = GaugeSamples("gemmd_connections", "Open connections.");
  prometheus::MetricFamily limit = GaugeSamples(
      "gemmd_connections_limit", "Limit: open connections (--max-connections, for gRPC).");
  prometheus::MetricFamily accepted =
      CounterSamples("gemmd_connections_accepted_total", "Connections accepted.");
  prometheus::MetricFamily refused =
      CounterSamples("gemmd_connections_refused_total",
                     "Connections closed at once because the limit was reached.");
  prometheus::MetricFamily states = GaugeSamples(
      "gemmd_connections_by_state",
      "Open connections: in their TLS handshake, serving, or leaving since they are older than "
      "--max-connection-age.");
  prometheus::MetricFamily handshake_limit =
      GaugeSamples("gemmd_handshakes_limit",
                   "Limit: connections in their TLS handshake (--max-handshakes); 0: none.");
  prometheus::MetricFamily refused_handshakes =
      CounterSamples("gemmd_handshakes_refused_total",
                     "Connections closed at once because too many were in their handshake.");
  prometheus::MetricFamily made_room =
      CounterSamples("gemmd_unproven_connections_closed_total",
                     "Connections closed to make room for others: their clients had not shown for "
                     "ten seconds who they are.");
  prometheus::MetricFamily refused_peers = CounterSamples(
      "gemmd_connections_refused_for_calls_total",
      "Connections closed at once because too many calls of their address, or of a caller there, "
      "were not over (--max-calls-per-caller), or a connection from there flooded with frames.");
  prometheus::MetricFamily refused_users = CounterSamples(
      "gemmd_connections_refused_for_user_total",
      "Connections of Unix sockets closed at once because their client is another user "
      "(--client-shared-memory).");
  prometheus::MetricFamily regions =
      GaugeSamples("gemmd_shared_memory_regions", "Regions of shared memory that are registered.");
  prometheus::MetricFamily regions_limit =
      GaugeSamples("gemmd_shared_memory_regions_limit",
                   "Limit: regions of shared memory; only where clients may register them "
                   "(--client-shared-memory).");
  prometheus::MetricFamily calls = GaugeSamples(
      "gemmd_unfinished_calls",
      "Calls that are not over, those that were reset or whose connection is closed included.");
  prometheus::MetricFamily calls_limit = GaugeSamples(
      "gemmd_unfinished_calls_limit",
      "Limit: calls of one caller, or of one address, that are not over (--max-calls-per-caller); "
      "all together may have eight times as many.");
  prometheus::MetricFamily failures =
      CounterSamples("gemmd_accept_failures_total",
                     "Failures of accept, as when descriptors run out; accept is retried.");
  MutexLock lock(mutex_);
  for (const auto& [listener, read] : listeners_) {
    const ConnectionStats stats = read();
    const prometheus::Labels labels = {{"listener", listener}};
    AddSample(open, static_cast<double>(stats.open), labels);
    AddSample(limit, static_cast<double>(stats.limit), labels);
    AddSample(accepted, static_cast<double>(stats.accepted), labels);
    AddSample(refused, static_cast<double>(stats.refused), labels);
    AddSample(failures, static_cast<double>(stats.failures), labels);
    AddStates(states, stats, listener);
    AddSample(handshake_limit, static_cast<double>(stats.handshake_limit), labels);
    AddSample(refused_handshakes, static_cast<double>(stats.refused_handshakes), labels);
    AddSample(made_room, static_cast<double>(stats.made_room), labels);
    AddSample(refused_peers, static_cast<double>(stats.refused_peers), labels);
    if (stats.regions_limit != 0) {
      AddSample(refused_users, static_cast<double>(stats.refused_users), labels);
      AddSample(regions, static_cast<double>(stats.regions), labels);
      AddSample(regions_limit, static_cast<double>(stats.regions_limit), labels);
    }
    if (stats.calls_limit == 0) continue;
    AddSample(calls, static_cast<double>(stats.calls), labels);
    AddSample(calls_limit, static_cast<double>(stats.calls_limit), labels);
  }
  if (listeners_.empty()) return {};
  return {std::move(open),
          std::move(limit),
          std::move(accepted),
          std::move(refused),
          std::move(states),
          std::move(handshake_limit),
          std::move(refused_handshakes),
          std::move(made_room),
          std::move(refused_peers),
          std::move(refused_users),
          std::move(regions),
          std::move(regions_limit),
          std::move(calls),
          std::move(calls_limit),
          std::move(failures)};
}

}  // namespace gemmd
