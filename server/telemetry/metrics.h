// Counts what the server does, for Prometheus.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gemm/kernel.h"
#include "server/engine/core/report.h"
#include "server/engine/engine.h"
#include "server/telemetry/connection_gauges.h"

namespace gemmd {

struct MetricsOptions {
  std::string version;  // "1.2.3"
  std::string commit;
  std::string cuda;  // the toolkit's version; empty: "none"
  // The values of the label `kernel`; a name that is not among them counts as
  // "none". Read by the constructor only.
  absl::Span<const gemm::Kernel* const> catalogue;
  absl::Time started = absl::Now();
};

// Every metric family of the server. Thread-safe, and lock-free but for
// prometheus-cpp's own histograms. Outlives the engine and the RPCs that tell
// it things.
class Metrics : public EngineObserver {
 public:
  explicit Metrics(const MetricsOptions& options);
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void OnJobEnd(const JobReport& report, const absl::Status& outcome) override;
  void OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                     const absl::Status& outcome) override;
  // `method` without its service: "Multiply". A gRPC code is an absl code of
  // the same number.
  void OnRpcEnd(absl::string_view method, absl::StatusCode code, absl::Duration elapsed);

  // Calls, or jobs of a stream that goes on, were given up because their client
  // sent no payload (`payload`) or took no answer in time.
  void OnStall(absl::string_view method, bool payload, size_t count);

  // A benchmark begins or ends.
  void OnBenchmark(bool running);

  // Scrapes show the state of `engine` between Attach and Detach. Detach
  // before the engine goes; it waits for a scrape under way.
  void Attach(const Engine* engine);
  // Scrapes show the connections that `read` tells, too, until Detach.
  void AttachListener(std::string listener, ConnectionGauges::Read read);
  void Detach();

  // Everything in the Prometheus text format 0.0.4.
  std::string Scrape() const;

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

}  // namespace gemmd
