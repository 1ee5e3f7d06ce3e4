#include "server/status/status_report.h"

#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gemm/catalogue.h"
#include "gemm/quote.h"
#include "nlohmann/json.hpp"
#include "server/base/clock.h"

namespace gemmd {
namespace {

using Json = nlohmann::ordered_json;

// To four digits: more would only make the text longer.
double Short(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double unit = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * unit) / unit;
}

double Seconds(absl::Duration duration) { return Short(absl::ToDoubleSeconds(duration)); }

Json TimeOf(absl::Time steady) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", ToWall(steady), absl::UTCTimeZone());
}

Json Pool(absl::string_view name, absl::string_view unit, const Gauge& gauge,
          absl::string_view device = "") {
  return {{"name", name},
          {"device", device},
          {"unit", unit},
          {"used", gauge.used},
          {"limit", gauge.limit}};
}

Json PoolsOf(const EngineStats& stats) {
  Json pools = {Pool("jobs", "jobs", stats.jobs), Pool("queued jobs", "jobs", stats.queued_jobs),
                Pool("admitted bytes", "bytes", stats.admitted_bytes),
                Pool("matrices", "matrices", stats.matrices)};
  for (const DeviceStats& device : stats.devices) {
    pools.push_back(Pool("device memory", "bytes", device.memory_bytes, device.name));
    pools.push_back(Pool("store", "bytes", device.store_bytes, device.name));
    pools.push_back(Pool("upload staging", "bytes", device.upload_staging_bytes, device.name));
    pools.push_back(Pool("download staging", "bytes", device.download_staging_bytes, device.name));
    pools.push_back(Pool("streams", "streams", device.streams, device.name));
  }
  return pools;
}

Json DevicesOf(const Engine& engine, const EngineStats& stats) {
  Json devices = Json::array();
  for (size_t i = 0; i < stats.devices.size(); ++i) {
    const DeviceStats& device = stats.devices[i];
    Json waiting = Json::array();
    for (const WaitingFlow& flow : engine.WaitingFlows(i, StatusReport::kMostRows)) {
      waiting.push_back(
          {{"caller", flow.name}, {"jobs", flow.jobs}, {"device_seconds", Short(flow.seconds)}});
    }
    devices.push_back({{"name", device.name},
                       {"health", device.health.ok() ? "ok" : std::string(device.health.message())},
                       {"queued_jobs", device.queued_jobs},
                       {"waiting_callers", device.waiting_flows},
                       {"queue_wait_seconds", Short(device.queue_wait_seconds)},
                       {"queue_wait_limit_seconds", device.queue_wait_limit_seconds},
                       {"replica_bytes", device.replicas.bytes},
                       {"waiting", std::move(waiting)}});
  }
  return devices;
}

Json ConnectionsOf(const StatusSources& sources) {
  Json listeners = Json::array();
  for (const auto& [name, read] : sources.listeners) {
    const ConnectionStats stats = read();
    listeners.push_back({{"listener", name},
                         {"open", stats.open},
                         {"limit", stats.limit},
                         {"handshaking", stats.handshaking},
                         {"accepted", stats.accepted},
                         {"refused", stats.refused + stats.refused_handshakes},
                         {"calls", stats.calls},
                         {"calls_limit", stats.calls_limit}});
  }
  return listeners;
}

Json RowOf(const JobSeries& series, bool with_steps) {
  const JobCounts& total = series.total;
  Json json = {{"name", series.name},
               {"jobs", total.jobs},
               {"failed", total.failed},
               {"products", total.products},
               {"tflop", Short(total.flops / 1e12)},
               {"seconds", Short(total.seconds)}};
  if (!with_steps) return json;
  const double step = absl::ToDoubleSeconds(JobHistory::kStep);
  Json products = Json::array();
  Json tflops = Json::array();
  for (const JobCounts& counts : series.steps) {
    products.push_back(Short(static_cast<double>(counts.products) / step));
    tflops.push_back(Short(counts.flops / step / 1e12));
  }
  json["products_per_second"] = std::move(products);
  json["tflops"] = std::move(tflops);
  return json;
}

Json RowsOf(const std::vector<JobSeries>& rows, size_t with_steps) {
  Json json = Json::array();
  for (size_t i = 0; i < rows.size(); ++i) json.push_back(RowOf(rows[i], i < with_steps));
  return json;
}

Json LatenciesOf(const std::vector<PhaseLatency>& phases) {
  Json json = Json::array();
  for (const PhaseLatency& phase : phases) {
    json.push_back({{"phase", phase.phase},
                    {"jobs", phase.count},
                    {"p50", Short(phase.p50)},
                    {"p90", Short(phase.p90)},
                    {"p99", Short(phase.p99)},
                    {"longest", Short(phase.longest)}});
  }
  return json;
}

// The busiest have a curve.
constexpr size_t kCurves = 6;

Json HistoryOf(const HistoryView& view) {
  Json all = RowOf(view.all, true);
  all.erase("name");
  all.erase("seconds");
  return {{"step_seconds", absl::ToInt64Seconds(JobHistory::kStep)},
          {"end", TimeOf(view.end)},
          {"all", std::move(all)},
          {"kernels", RowsOf(view.kernels, kCurves)},
          {"devices", RowsOf(view.devices, kCurves)},
          {"callers", RowsOf(view.callers, 0)},
          {"latency_minute", LatenciesOf(view.last_minute)},
          {"latency_window", LatenciesOf(view.window)}};
}

Json BenchmarksOf(const Benchmarks& benchmarks) {
  Json json = Json::array();
  for (const BenchmarkUnderWay& one : benchmarks.UnderWay()) {
    json.push_back({{"caller", one.caller},
                    {"device", one.device},
                    {"subject", one.subject},
                    {"seconds", Seconds(one.age)},
                    {"ending", one.ending}});
  }
  return json;
}

Json TuningOf(const Engine& engine) {
  const TuningLoad load = engine.tuning();
  Json skipped = Json::array();
  for (size_t i = 0; i < load.skipped.size() && i < StatusReport::kMostRows; ++i) {
    skipped.push_back(load.skipped[i]);
  }
  const EngineStats stats = engine.Stats();
  return {{"tables", engine.options().tuning_tables},
          {"idle_tuning", engine.options().idle_tuning},
          {"entries", load.entries},
          {"used", load.used},
          {"other_versions", load.other_versions},
          {"skipped", std::move(skipped)},
          {"skipped_count", load.skipped.size()},
          {"untuned_products", stats.traffic.used}};
}

Json Overview(const StatusSources& sources) {
  const EngineStats stats = sources.engine->Stats();
  return {{"version", sources.version},
          {"commit", sources.commit},
          {"started", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", sources.started, absl::UTCTimeZone())},
          {"now", TimeOf(SteadyNow())},
          {"pools", PoolsOf(stats)},
          {"devices", DevicesOf(*sources.engine, stats)},
          {"connections", ConnectionsOf(sources)},
          {"benchmarks", BenchmarksOf(*sources.benchmarks)},
          {"tuning", TuningOf(*sources.engine)},
          {"history", HistoryOf(sources.history->View())}};
}

Json JobOf(const EndedJob& job) {
  const PhaseDurations& phases = job.phases;
  return {{"number", job.number},
          {"ended", TimeOf(job.ended)},
          {"code", absl::StatusCodeToString(job.code)},
          {"error", job.error},
          {"kernel", job.kernel},
          {"why", job.reason},
          {"device", job.device},
          {"caller", job.caller},
          {"types", job.types},
          {"m", job.m},
          {"n", job.n},
          {"k", job.k},
          {"products", job.products},
          {"tflops", Short(job.tflops)},
          {"seconds",
           {{"receive", Seconds(phases.receive)},
            {"queue", Seconds(phases.queue)},
            {"device_to_device", Seconds(phases.device_to_device)},
            {"host_to_device", Seconds(phases.host_to_device)},
            {"kernel", Seconds(phases.kernel)},
            {"check", Seconds(phases.check)},
            {"device_to_host", Seconds(phases.device_to_host)},
            {"send", Seconds(phases.send)},
            {"total", Seconds(phases.total)}}}};
}

Json JobsOf(const std::vector<EndedJob>& jobs) {
  Json json = Json::array();
  for (const EndedJob& job : jobs) json.push_back(JobOf(job));
  return json;
}

Json MatricesOf(const std::vector<MatrixRecord>& matrices) {
  Json json = Json::array();
  for (const MatrixRecord& matrix : matrices) {
    json.push_back({{"id", matrix.id},
                    {"name", matrix.name},
                    {"owner", matrix.owner},
                    {"shared", matrix.shared},
                    {"shape", ToString(matrix.shape)},
                    {"bytes", matrix.shape.dense_bytes()},
                    {"device", matrix.device},
                    {"copies", matrix.copies},
                    {"uses", matrix.uses},
                    {"in_use", matrix.in_use}});
  }
  return json;
}

Json KernelOf(const gemm::Kernel& kernel, const Engine& engine) {
  std::vector<std::string> types;
  for (const gemm::Types& one : kernel.types) {
    const std::string type = absl::StrCat(gemm::Name(one.a), ":", gemm::Name(one.d));
    if (types.empty() || types.back() != type) types.push_back(type);
  }
  std::vector<std::string> devices;
  std::string why_not;
  for (const auto& device : engine.devices()) {
    const absl::Status may = gemm::CheckDevice(kernel, device->info().caps);
    if (may.ok()) devices.push_back(device->info().name);
    if (!may.ok()) why_not = std::string(may.message());
  }
  return {{"name", kernel.name},
          {"family", kernel.family},
          {"summary", kernel.summary},
          {"types", absl::StrJoin(types, " ")},
          {"devices", absl::StrJoin(devices, " ")},
          {"unavailable", devices.empty() ? why_not : ""}};
}

Json Kernels(const Engine& engine, size_t page) {
  const absl::Span<const gemm::Kernel* const> all = gemm::Catalogue();
  Json kernels = Json::array();
  const size_t begin = page * StatusReport::kKernelsPerPage;
  for (size_t i = begin; i < all.size() && i < begin + StatusReport::kKernelsPerPage; ++i) {
    kernels.push_back(KernelOf(*all[i], engine));
  }
  const bool more = begin + StatusReport::kKernelsPerPage < all.size();
  Json json = {{"count", all.size()}, {"kernels", std::move(kernels)}};
  json["next_page"] = more ? Json(page + 1) : Json(nullptr);
  return json;
}

struct Question {
  std::string part = "overview";
  uint32_t page = 0;
};

// nullopt: a word that is not known.
std::optional<Question> Parse(absl::string_view query) {
  Question question;
  for (const absl::string_view word : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (pair.first == "part") {
      question.part = std::string(pair.second);
    } else if (pair.first != "page" || !absl::SimpleAtoi(pair.second, &question.page)) {
      return std::nullopt;
    }
  }
  return question;
}

std::optional<Json> Part(const StatusSources& sources, const Question& question) {
  if (question.part == "overview") return Overview(sources);
  if (question.part == "jobs") {
    return Json{{"slowest", JobsOf(sources.history->Slowest())},
                {"failed", JobsOf(sources.history->LatestFailed())}};
  }
  if (question.part == "matrices") {
    const MatrixExtremes extremes = sources.engine->FirstMatrices(StatusReport::kMostRows);
    return Json{{"count", sources.engine->Stats().matrices.used},
                {"largest", MatricesOf(extremes.largest)},
                {"hottest", MatricesOf(extremes.hottest)}};
  }
  if (question.part == "kernels") return Kernels(*sources.engine, question.page);
  return std::nullopt;
}

}  // namespace

HttpAnswer StatusReport::Answer(absl::string_view query) const {
  const std::optional<Question> question = Parse(query);
  std::optional<Json> json;
  {
    MutexLock lock(mutex_);
    if (!attached_) return {.status = 503, .body = "The server is starting or stopping.\n"};
    if (question.has_value()) json = Part(sources_, *question);
  }
  if (!json.has_value()) {
    return {.status = 400,
            .body = absl::StrCat("query: ", gemm::Quoted(std::string(query)),
                                 "; allowed: part=overview, part=jobs, part=matrices or "
                                 "part=kernels, and page=N\n")};
  }
  // Bytes of callers that are not UTF-8 are replaced.
  return {.type = "application/json",
          .body = json->dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

void StatusReport::Attach(StatusSources sources) {
  MutexLock lock(mutex_);
  sources_ = std::move(sources);
  attached_ = true;
}

void StatusReport::Detach() {
  MutexLock lock(mutex_);
  attached_ = false;
}

}  // namespace gemmd
