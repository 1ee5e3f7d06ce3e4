#include "server/telemetry/metrics.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"
#include "server/engine/bounds/bound_error.h"
#include "server/telemetry/engine_gauges.h"
#include "server/telemetry/families.h"
#include "server/telemetry/label_sets.h"
#include "server/telemetry/process_gauges.h"

namespace gemmd {
namespace {

using prometheus::Counter;
using prometheus::Histogram;
using prometheus::Labels;

LabelSet KernelLabels(absl::Span<const gemm::Kernel* const> catalogue) {
  std::vector<std::string> names;
  for (const gemm::Kernel* kernel : catalogue) names.emplace_back(kernel->name);
  return LabelSet(std::move(names), "none");
}

LabelSet FamilyLabels(absl::Span<const gemm::Kernel* const> catalogue) {
  std::vector<std::string> names;
  for (const gemm::Kernel* kernel : catalogue) {
    if (std::find(names.begin(), names.end(), kernel->family) == names.end()) {
      names.emplace_back(kernel->family);
    }
  }
  return LabelSet(std::move(names), "none");
}

// The index of each kernel's family, by the kernel's index.
std::vector<size_t> FamiliesByKernel(absl::Span<const gemm::Kernel* const> catalogue,
                                     const LabelSet& families) {
  std::vector<size_t> indexes;
  for (const gemm::Kernel* kernel : catalogue) indexes.push_back(families.IndexOf(kernel->family));
  indexes.push_back(families.fallback());
  return indexes;
}

// The labels of the metric at an index of its family.
using LabelsAt = std::function<Labels(size_t)>;

IndexedFamily<Counter> Counters(prometheus::Registry& registry, const char* name, const char* help,
                                size_t size, LabelsAt labels_at) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  return {size, [&family, labels_at = std::move(labels_at)](size_t index) -> Counter& {
            return family.Add(labels_at(index));
          }};
}

IndexedFamily<Histogram> Histograms(prometheus::Registry& registry, const char* name,
                                    const char* help, const std::vector<double>& buckets,
                                    size_t size, LabelsAt labels_at) {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  return {size, [&family, &buckets, labels_at = std::move(labels_at)](size_t index) -> Histogram& {
            return family.Add(labels_at(index), buckets);
          }};
}

std::array<absl::Duration, kPhaseCount> InOrder(const PhaseDurations& phases) {
  return {phases.receive, phases.queue,          phases.host_to_device,
          phases.kernel,  phases.device_to_host, phases.send};
}

}  // namespace

// An index over several labels counts the last one fastest.
struct Metrics::Families {
  explicit Families(const MetricsOptions& options);

  Counter& Refusals(absl::string_view bound, const char* subject) {
    return refusals.Add({{"bound", std::string(bound)}, {"subject", subject}});
  }

  // There are hundreds of kernels, so only counters of one series a kernel have their names. All
  // else has their families.
  const LabelSet kernels;
  const LabelSet families;
  const std::vector<size_t> family_of_kernel;
  const LabelSet dtypes = DTypeLabels();
  const LabelSet methods;
  const LabelSet outcomes = OutcomeLabels();
  const LabelSet files{{"callers", "quotas"}, "tls"};
  const LabelSet drop_reasons{{"unread", "resets", "calls", "frames"}, "other"};
  const LabelSet idle_outcomes{{"tuned", "interrupted", "given_up", "failed"}, "other"};
  const LabelSet quota_keys{
      {"jobs", "admitted-bytes", "matrices", "store-bytes", "streams", "bytes-per-second"},
      "other"};
  CallerLabels callers;

  prometheus::Registry registry;
  EngineGauges engine;
  ConnectionGauges connections;
  const ProcessGauges process;

  const LabelsAt by_kernel = [this](size_t i) -> Labels { return {{"kernel", kernels[i]}}; };
  const LabelsAt by_family = [this](size_t i) -> Labels { return {{"family", families[i]}}; };
  const LabelsAt by_outcome = [this](size_t i) -> Labels { return {{"outcome", outcomes[i]}}; };
  const LabelsAt by_method = [this](size_t i) -> Labels { return {{"method", methods[i]}}; };
  const LabelsAt by_direction = [](size_t i) -> Labels {
    return {{"direction", std::string(Name(static_cast<Direction>(i)))}};
  };

  IndexedFamily<Counter> jobs = Counters(
      registry, "gemmd_jobs_total",
      "Jobs requested, by outcome and by family of their kernel. A job is a product, a batch or "
      "a group.",
      families.size() * dtypes.size() * outcomes.size(), [this](size_t i) -> Labels {
        return {{"family", families[i / outcomes.size() / dtypes.size()]},
                {"dtype", dtypes[i / outcomes.size() % dtypes.size()]},
                {"outcome", outcomes[i % outcomes.size()]}};
      });
  IndexedFamily<Counter> products = Counters(registry, "gemmd_products_total",
                                             "Products computed: one for each job that succeeded, "
                                             "of a batch or a group all of its products.",
                                             kernels.size(), by_kernel);
  IndexedFamily<Counter> coalesced =
      Counters(registry, "gemmd_coalesced_jobs_total",
               "Jobs that ran in one launch with others like them (--max-coalesced-jobs).",
               families.size(), by_family);
  IndexedFamily<Histogram> job_seconds = Histograms(
      registry, "gemmd_job_duration_seconds",
      "From a product's header to the end of its result; those that were refused are not in it.",
      DurationBuckets(), outcomes.size(), by_outcome);
  IndexedFamily<Histogram> phase_seconds =
      Histograms(registry, "gemmd_job_phase_seconds",
                 "Time of each phase of a product that had it; phases overlap.", DurationBuckets(),
                 kPhaseCount, [](size_t i) -> Labels {
                   return {{"phase", std::string(Name(static_cast<Phase>(i)))}};
                 });
  IndexedFamily<Histogram> tflops = Histograms(
      registry, "gemmd_kernel_tflops",
      "Rate of each job, by family of its kernel: 1e12 floating-point operations per second of "
      "kernel time.",
      TflopsBuckets(), families.size(), by_family);
  IndexedFamily<Counter> flop = Counters(registry, "gemmd_flop_total",
                                         "Floating-point operations of the products: 2 m n k each.",
                                         kernels.size(), by_kernel);
  IndexedFamily<Counter> kernel_seconds =
      Counters(registry, "gemmd_kernel_seconds_total", "Time that products spent in kernels.",
               kernels.size(), by_kernel);
  IndexedFamily<Counter> caller_seconds = Counters(
      registry, "gemmd_caller_device_seconds_total",
      "Device time of each caller's products: the time in which a device was busy, divided "
      "among the jobs that ran together. One label for all but the first 64 callers.",
      CallerLabels::size(), [this](size_t i) -> Labels {
        return {{"caller", callers[i]}};
      });
  IndexedFamily<Counter> payload_bytes = Counters(
      registry, "gemmd_payload_bytes_total",
      "Operand bytes received and result bytes sent by products.", kDirectionCount, by_direction);

  // Few, and by device, which is not known yet: so by their labels.
  prometheus::Family<Counter>& checks =
      prometheus::BuildCounter()
          .Name("gemmd_result_checks_total")
          .Help(
              "Products that were checked, by what the check found (passed, partial, unusual, "
              "suspect, wrong, lost), or that were to be and could not (skipped). The kernel is "
              "the one whose product failed, where one did.")
          .Register(registry);

  IndexedFamily<Counter> transfers =
      Counters(registry, "gemmd_matrix_transfers_total",
               "Transfers of resident matrices: in by PutMatrix, out by GetMatrix.",
               kDirectionCount* outcomes.size(), [this](size_t i) -> Labels {
                 Labels labels = by_direction(i / outcomes.size());
                 labels.emplace("outcome", outcomes[i % outcomes.size()]);
                 return labels;
               });
  IndexedFamily<Histogram> transfer_seconds =
      Histograms(registry, "gemmd_matrix_transfer_duration_seconds",
                 "From a transfer's header to its last byte.", DurationBuckets(), kDirectionCount,
                 by_direction);
  IndexedFamily<Counter> transfer_bytes =
      Counters(registry, "gemmd_matrix_transfer_bytes_total",
               "Bytes of resident matrices transferred.", kDirectionCount, by_direction);

  IndexedFamily<Counter> requests =
      Counters(registry, "gemmd_requests_total", "RPCs ended, by status.",
               methods.size() * outcomes.size(), [this](size_t i) -> Labels {
                 return {{"method", methods[i / outcomes.size()]},
                         {"outcome", outcomes[i % outcomes.size()]}};
               });
  IndexedFamily<Histogram> request_seconds =
      Histograms(registry, "gemmd_request_duration_seconds",
                 "RPC duration; a Multiply stream lasts as long as its client keeps it open.",
                 DurationBuckets(), methods.size(), by_method);
  IndexedFamily<Counter> stalls =
      Counters(registry, "gemmd_stalls_total",
               "Ended because the client stalled: calls whose answer it did not read (out), jobs "
               "and uploads whose payload it did not send (in).",
               methods.size() * kDirectionCount, [this](size_t i) -> Labels {
                 Labels labels = by_direction(i % kDirectionCount);
                 labels.emplace("method", methods[i / kDirectionCount]);
                 return labels;
               });
  IndexedFamily<Counter> dropped_connections =
      Counters(registry, "gemmd_connections_dropped_total",
               "Connections closed because their client read nothing of what was sent (unread), "
               "reset calls faster than they could end (resets), had too many calls that were not "
               "over (calls), or sent much that no call wanted (frames).",
               drop_reasons.size(), [this](size_t i) -> Labels {
                 return {{"reason", drop_reasons[i]}};
               });
  IndexedFamily<Counter> refused =
      Counters(registry, "gemmd_refused_calls_total",
               "Calls and scrapes refused for who made them: without credentials that the server "
               "knows, or without the role.",
               outcomes.size(), by_outcome);
  IndexedFamily<Counter> reloads = Counters(
      registry, "gemmd_identity_reloads_total",
      "Certificates (tls), or the files of callers or quotas, read again because they changed; "
      "those with taken=\"false\" were wrong, and what was read before stays in force.",
      2 * files.size(), [this](size_t i) -> Labels {
        return {{"what", files[i / 2]}, {"taken", i % 2 == 0 ? "false" : "true"}};
      });
  IndexedFamily<Counter> caller_bounds =
      Counters(registry, "gemmd_caller_bounds_total",
               "Requests refused because their caller had reached a bound of the quotas file; for "
               "bytes-per-second, how often a call had to wait.",
               quota_keys.size(), [this](size_t i) -> Labels {
                 return {{"bound", quota_keys[i]}};
               });
  prometheus::Family<Counter>& refusals =
      prometheus::BuildCounter()
          .Name("gemmd_refusals_total")
          .Help(
              "Jobs and transfers refused because a bound of the server or of their caller was "
              "reached, and calls past a caller's streams: by the flag or the key of the quotas "
              "file that sets it, and by whose bound it is (server, caller). Bounds of one stream "
              "are not in it.")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& identity_current =
      prometheus::BuildGauge()
          .Name("gemmd_identity_current")
          .Help(
              "1 where the files of certificates (tls), callers or quotas are in force as they "
              "were last "
              "seen; 0 where they were wrong or could not be read, and older ones are.")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& certificate =
      prometheus::BuildGauge()
          .Name("gemmd_tls_certificate_expiry_timestamp_seconds")
          .Help("Until when the server's certificate is valid, in Unix time; only with TLS.")
          .Register(registry);
  prometheus::Gauge& benchmark =
      prometheus::BuildGauge()
          .Name("gemmd_benchmark_running")
          .Help("1 while a benchmark runs. It slows jobs, and they slow it.")
          .Register(registry)
          .Add({});
  prometheus::Gauge& idle_tuning =
      prometheus::BuildGauge()
          .Name("gemmd_idle_tuning_running")
          .Help("1 while the server measures a product by itself (--idle-tuning).")
          .Register(registry)
          .Add({});
  IndexedFamily<Counter> idle_products =
      Counters(registry, "gemmd_idle_tuning_products_total",
               "Products that the server began to measure by itself: tuned, interrupted by callers "
               "and measured again later, given up because callers came each time, or failed.",
               idle_outcomes.size(), [this](size_t i) -> Labels {
                 return {{"outcome", idle_outcomes[i]}};
               });
  Counter& idle_unwritten =
      prometheus::BuildCounter()
          .Name("gemmd_idle_tuning_unwritten_total")
          .Help("How often what was found could not be written to the file of --idle-tuning.")
          .Register(registry)
          .Add({});
};

// The bounds of the server that refuse jobs and transfers: their series are there from the start,
// since a counter that begins with its first event has no rate for that one.
constexpr const char* kServerBounds[] = {
    "deadline",     "device-memory-bytes", "max-admitted-bytes", "max-job-bytes", "max-jobs",
    "max-matrices", "max-queue-wait",      "max-queued-jobs",    "store-bytes"};
constexpr absl::string_view kRate = "bytes-per-second";  // at which calls wait

Metrics::Families::Families(const MetricsOptions& options)
    : kernels(KernelLabels(options.catalogue)),
      families(FamilyLabels(options.catalogue)),
      family_of_kernel(FamiliesByKernel(options.catalogue, families)),
      methods(options.methods, "other"),
      process(options.started) {
  prometheus::BuildGauge()
      .Name("gemmd_build_info")
      .Help("1, labelled with the version, commit and CUDA version of the server.")
      .Register(registry)
      .Add({{"version", options.version},
            {"commit", options.commit},
            {"cuda", options.cuda.empty() ? "none" : options.cuda}})
      .Set(1);
  for (const char* const bound : kServerBounds) Refusals(bound, "server");
  for (size_t i = 0; i < quota_keys.fallback(); ++i) {
    if (quota_keys[i] != kRate) Refusals(quota_keys[i], "caller");
  }
}

Metrics::Metrics(const MetricsOptions& options) : families_(std::make_unique<Families>(options)) {}
Metrics::~Metrics() = default;

void Metrics::OnJobEnd(const JobReport& report, const absl::Status& outcome) {
  CountRefusal(outcome);
  Families& f = *families_;
  const size_t kernel = f.kernels.IndexOf(report.kernel);
  const size_t family = f.family_of_kernel[kernel];
  // A job that ended before a kernel was chosen may not have had types either.
  const size_t dtype =
      report.kernel.empty() ? f.dtypes.fallback() : static_cast<size_t>(report.types.a);
  const size_t code = OutcomeIndex(outcome.code());
  f.jobs[(family * f.dtypes.size() + dtype) * f.outcomes.size() + code].Increment();
  // A job that was refused has taken no time, and would hide how long the others took.
  if (report.phases.total > absl::ZeroDuration()) {
    f.job_seconds[code].Observe(absl::ToDoubleSeconds(report.phases.total));
  }
  if (outcome.ok()) f.products[kernel].Increment(static_cast<double>(report.products()));
  if (report.jobs_in_launch > 1) f.coalesced[family].Increment();

  const auto phases = InOrder(report.phases);
  for (size_t i = 0; i < kPhaseCount; ++i) {
    if (phases[i] > absl::ZeroDuration()) {
      f.phase_seconds[i].Observe(absl::ToDoubleSeconds(phases[i]));
    }
  }
  if (report.flops > 0) {
    f.flop[kernel].Increment(report.flops);
    f.kernel_seconds[kernel].Increment(absl::ToDoubleSeconds(report.phases.kernel));
    if (const double tflops = report.tflops(); tflops > 0) f.tflops[family].Observe(tflops);
  }
  CountCheck(report);
  const auto add_bytes = [&f](Direction direction, uint64_t bytes) {
    if (bytes > 0) {
      f.payload_bytes[static_cast<size_t>(direction)].Increment(static_cast<double>(bytes));
    }
  };
  add_bytes(Direction::kIn, report.bytes_in);
  add_bytes(Direction::kOut, report.bytes_out);
}

void Metrics::OnDeviceTime(absl::string_view caller, absl::Duration time) {
  if (time <= absl::ZeroDuration()) return;
  Families& f = *families_;
  f.caller_seconds[f.callers.IndexOf(caller)].Increment(absl::ToDoubleSeconds(time));
}

void Metrics::CountRefusal(const absl::Status& outcome) {
  if (outcome.ok()) return;
  const std::optional<ReachedBound> reached = ReachedBoundOf(outcome);
  if (!reached.has_value()) return;
  if (reached->caller.has_value()) return OnCallerBound(reached->bound);
  families_->Refusals(reached->bound, "server").Increment();
}

void Metrics::CountCheck(const JobReport& report) {
  const CheckReport& check = report.check;
  const bool skipped = check.result == CheckResult::kNone;
  if (skipped && check.why_not.empty()) return;
  Families& f = *families_;
  const std::string& kernel = check.failed_kernel.empty() ? report.kernel : check.failed_kernel;
  f.checks
      .Add({{"kernel", f.kernels[f.kernels.IndexOf(kernel)]},
            {"device", report.device},
            {"result", skipped ? "skipped" : std::string(Name(check.result))}})
      .Increment();
}

void Metrics::OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                            const absl::Status& outcome) {
  CountRefusal(outcome);
  Families& f = *families_;
  const auto direction = static_cast<size_t>(upload ? Direction::kIn : Direction::kOut);
  f.transfers[direction * f.outcomes.size() + OutcomeIndex(outcome.code())].Increment();
  f.transfer_seconds[direction].Observe(absl::ToDoubleSeconds(elapsed));
  f.transfer_bytes[direction].Increment(static_cast<double>(bytes));
}

void Metrics::OnRpcEnd(absl::string_view method, absl::StatusCode code, absl::Duration elapsed) {
  Families& f = *families_;
  const size_t index = f.methods.IndexOf(method);
  f.requests[index * f.outcomes.size() + OutcomeIndex(code)].Increment();
  f.request_seconds[index].Observe(absl::ToDoubleSeconds(elapsed));
}

void Metrics::OnStall(absl::string_view method, bool payload, size_t count) {
  Families& f = *families_;
  const auto direction = static_cast<size_t>(payload ? Direction::kIn : Direction::kOut);
  f.stalls[f.methods.IndexOf(method) * kDirectionCount + direction].Increment(
      static_cast<double>(count));
}

void Metrics::OnDroppedConnection(absl::string_view reason) {
  families_->dropped_connections[families_->drop_reasons.IndexOf(reason)].Increment();
}

void Metrics::OnRefusedCall(absl::StatusCode code) {
  families_->refused[OutcomeIndex(code)].Increment();
}

void Metrics::OnCallerBound(absl::string_view bound) {
  families_->caller_bounds[families_->quota_keys.IndexOf(bound)].Increment();
  if (bound != kRate) families_->Refusals(bound, "caller").Increment();
}

void Metrics::OnReload(absl::string_view what, bool taken) {
  families_->reloads[2 * families_->files.IndexOf(what) + (taken ? 1 : 0)].Increment();
  OnIdentity(what, taken);
}

void Metrics::OnIdentity(absl::string_view what, bool current) {
  families_->identity_current.Add({{"what", std::string(what)}}).Set(current ? 1 : 0);
}

void Metrics::OnTlsCertificate(absl::Time expires) {
  families_->certificate.Add({}).Set(static_cast<double>(absl::ToUnixSeconds(expires)));
}

void Metrics::OnBenchmark(bool running) { families_->benchmark.Set(running ? 1 : 0); }
void Metrics::OnIdleTuning(bool running) { families_->idle_tuning.Set(running ? 1 : 0); }
void Metrics::OnIdleTuningProduct(absl::string_view outcome) {
  families_->idle_products[families_->idle_outcomes.IndexOf(outcome)].Increment();
}
void Metrics::OnIdleTuningUnwritten() { families_->idle_unwritten.Increment(); }

void Metrics::Attach(const Engine* engine) { families_->engine.Attach(engine); }
void Metrics::AttachListener(std::string listener, ConnectionGauges::Read read) {
  families_->connections.Attach(std::move(listener), std::move(read));
}
void Metrics::Detach() {
  families_->engine.Detach();
  families_->connections.Detach();
}

std::string Metrics::Scrape() const {
  const prometheus::Collectable* const sources[] = {&families_->registry, &families_->engine,
                                                    &families_->connections, &families_->process};
  std::vector<prometheus::MetricFamily> samples;
  for (const prometheus::Collectable* source : sources) {
    auto more = source->Collect();
    samples.insert(samples.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
  }
  return prometheus::TextSerializer().Serialize(samples);
}

}  // namespace gemmd
