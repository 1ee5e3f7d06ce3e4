// Counts what the server does, for Prometheus.
#pragma once

#include <memory>
#include <string>
#include <vector>

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
  // The values of the label `kernel`; other names count as "none". Used only by the
  // constructor.
  absl::Span<const gemm::Kernel* const> catalogue;
  // The values of the label `method`: "Multiply". Other names count as "other".
  std::vector<std::string> methods;
  absl::Time started = absl::Now();
};

// Every metric family of the server. Thread-safe, and lock-free except for
// prometheus-cpp's own histograms and for the names of callers. Must outlive the engine and
// the RPCs that report to it.
class Metrics : public EngineObserver {
 public:
  explicit Metrics(const MetricsOptions& options);
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void OnJobEnd(const JobReport& report, const absl::Status& outcome) override;
  void OnDeviceTime(absl::string_view caller, absl::Duration time) override;
  void OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                     const absl::Status& outcome) override;
  // `method` without its service: "Multiply". A gRPC code has the same number as the
  // absl code.
  void OnRpcEnd(absl::string_view method, absl::StatusCode code, absl::Duration elapsed);

  // `count` calls, or jobs of a stream that goes on, were ended because their client
  // sent no payload (`payload`) or read no answer in time.
  void OnStall(absl::string_view method, bool payload, size_t count);

  // A connection was closed because its client read nothing ("unread"), or reset its calls
  // faster than they could end ("resets"), or its caller had too many that were not over ("calls"),
  // or it sent much that no call wanted ("frames").
  void OnDroppedConnection(absl::string_view reason);

  // A call, or a scrape, was refused for who made it.
  void OnRefusedCall(absl::StatusCode code);
  // A caller has reached a bound of the quotas file: its key, such as "jobs".
  void OnCallerBound(absl::string_view bound);
  // Files were read again: "callers", "quotas" or "tls".
  void OnReload(absl::string_view what, bool taken);
  // Whether these files are in force as they were last seen. OnReload says so, too.
  void OnIdentity(absl::string_view what, bool current);
  // Until when the server's certificate is valid.
  void OnTlsCertificate(absl::Time expires);

  // A benchmark begins or ends.
  void OnBenchmark(bool running);
  // The server begins to measure a product by itself, or is done with it.
  void OnIdleTuning(bool running);
  // What became of a product: "tuned", "interrupted", "given_up" or "failed".
  void OnIdleTuningProduct(absl::string_view outcome);
  // Its results could not be written.
  void OnIdleTuningUnwritten();

  // Scrapes show the state of `engine` between Attach and Detach. Call Detach before
  // the engine is destroyed; it waits for a scrape under way.
  void Attach(const Engine* engine);
  // Scrapes also show the connections that `read` returns, until Detach.
  void AttachListener(std::string listener, ConnectionGauges::Read read);
  void Detach();

  // Everything in the Prometheus text format 0.0.4.
  std::string Scrape() const;

 private:
  void CountCheck(const JobReport& report);

  struct Families;
  // Whose bound it was, where one was reached.
  void CountRefusal(const absl::Status& outcome);
  const std::unique_ptr<Families> families_;
};

}  // namespace gemmd
