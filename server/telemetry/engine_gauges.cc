#include "server/telemetry/engine_gauges.h"

#include <string>
#include <utility>

#include "server/telemetry/families.h"

namespace gemmd {
namespace {

struct ServerRow {
  const char* name;
  const char* help;
  Gauge EngineStats::*gauge;
};
constexpr ServerRow kServerRows[] = {
    {"gemmd_jobs_in_flight", "Jobs admitted and not yet ended", &EngineStats::jobs},
    {"gemmd_queue_depth", "Jobs ready to run that wait for a stream", &EngineStats::queued_jobs},
    {"gemmd_admitted_bytes", "Device bytes reserved by the admitted jobs",
     &EngineStats::admitted_bytes},
    {"gemmd_matrices", "Resident matrices", &EngineStats::matrices},
    {"gemmd_traffic_entries", "Kinds of products that are worth tuning, as ListTraffic has them",
     &EngineStats::traffic},
};

struct DeviceRow {
  const char* name;
  const char* help;
  const char* direction;  // null: no such label
  Gauge DeviceStats::*gauge;
};
// Rows of one name stand together.
constexpr DeviceRow kDeviceRows[] = {
    {"gemmd_device_memory_bytes", "Device memory in use", nullptr, &DeviceStats::memory_bytes},
    {"gemmd_streams_in_use", "Streams that run a job", nullptr, &DeviceStats::streams},
    {"gemmd_staging_bytes", "Pinned staging memory in use", "in",
     &DeviceStats::upload_staging_bytes},
    {"gemmd_staging_bytes", "Pinned staging memory in use", "out",
     &DeviceStats::download_staging_bytes},
    {"gemmd_store_bytes", "Device memory of the resident matrices and their replicas", nullptr,
     &DeviceStats::store_bytes},
};

// A quantity and its bound, each a family of its own.
struct BoundedFamily {
  BoundedFamily(const std::string& name, const std::string& help)
      : used(GaugeSamples(name, help + ".")),
        limit(GaugeSamples(name + "_limit", "Limit: " + help + ".")) {}

  void Add(const Gauge& gauge, const prometheus::Labels& labels) {
    AddSample(used, static_cast<double>(gauge.used), labels);
    AddSample(limit, static_cast<double>(gauge.limit), labels);
  }

  void MoveTo(std::vector<prometheus::MetricFamily>& families) {
    families.push_back(std::move(used));
    families.push_back(std::move(limit));
  }

  prometheus::MetricFamily used;
  prometheus::MetricFamily limit;
};

void AddServerSamples(const EngineStats& stats, std::vector<prometheus::MetricFamily>& families) {
  for (const ServerRow& row : kServerRows) {
    BoundedFamily family(row.name, row.help);
    family.Add(stats.*row.gauge, {});
    family.MoveTo(families);
  }
}

void AddExpirySamples(const EngineStats& stats, std::vector<prometheus::MetricFamily>& families) {
  auto expired = CounterSamples("gemmd_matrices_expired_total",
                                "Resident matrices whose time to live has passed: unnamed ones "
                                "(--unnamed-ttl), and those with one of their own.");
  AddSample(expired, static_cast<double>(stats.matrices_expired));
  families.push_back(std::move(expired));
}

void AddTrafficSamples(const EngineStats& stats, std::vector<prometheus::MetricFamily>& families) {
  auto dropped = CounterSamples("gemmd_traffic_dropped_total",
                                "Kinds of products that made room for others in what ListTraffic "
                                "has.");
  AddSample(dropped, static_cast<double>(stats.traffic_dropped));
  families.push_back(std::move(dropped));
}

void AddBoundedDeviceSamples(const std::vector<DeviceStats>& devices,
                             std::vector<prometheus::MetricFamily>& families) {
  for (size_t row = 0; row < std::size(kDeviceRows);) {
    const std::string name = kDeviceRows[row].name;
    BoundedFamily family(name, kDeviceRows[row].help);
    for (; row < std::size(kDeviceRows) && kDeviceRows[row].name == name; ++row) {
      for (const DeviceStats& device : devices) {
        prometheus::Labels labels{{"device", device.name}};
        if (kDeviceRows[row].direction != nullptr) {
          labels.emplace("direction", kDeviceRows[row].direction);
        }
        family.Add(device.*kDeviceRows[row].gauge, labels);
      }
    }
    family.MoveTo(families);
  }
}

void AddOtherDeviceSamples(const std::vector<DeviceStats>& devices,
                           std::vector<prometheus::MetricFamily>& families) {
  auto queued = GaugeSamples("gemmd_device_queue_depth",
                             "Jobs ready to run that wait for a stream of this device.");
  auto flows = GaugeSamples("gemmd_device_waiting_flows",
                            "Callers with jobs that wait for a stream of this device; connections "
                            "where the server asks nobody.");
  auto wait = GaugeSamples("gemmd_queue_wait_estimate_seconds",
                           "Estimated time until all jobs that wait for a stream of this device "
                           "have begun. A job that would wait longer than --max-queue-wait for its "
                           "own turn is refused.");
  auto wait_limit = GaugeSamples("gemmd_queue_wait_limit_seconds",
                                 "Limit: the estimated wait of a job for a stream of this device "
                                 "(--max-queue-wait).");
  auto allocations = CounterSamples(
      "gemmd_driver_allocations_total",
      "Driver allocations, frees and pinnings on this device; constant once the server is warm.");
  auto healthy = GaugeSamples("gemmd_device_healthy", "1 while the device works, 0 once lost.");
  for (const DeviceStats& device : devices) {
    const prometheus::Labels labels{{"device", device.name}};
    AddSample(queued, static_cast<double>(device.queued_jobs), labels);
    AddSample(flows, static_cast<double>(device.waiting_flows), labels);
    AddSample(wait, device.queue_wait_seconds, labels);
    AddSample(wait_limit, device.queue_wait_limit_seconds, labels);
    AddSample(allocations, static_cast<double>(device.driver_allocations), labels);
    AddSample(healthy, device.health.ok() ? 1 : 0, labels);
  }
  families.push_back(std::move(queued));
  families.push_back(std::move(flows));
  families.push_back(std::move(wait));
  families.push_back(std::move(wait_limit));
  families.push_back(std::move(allocations));
  families.push_back(std::move(healthy));
}

void AddLossSamples(const std::vector<DeviceStats>& devices,
                    std::vector<prometheus::MetricFamily>& families) {
  auto hangs = CounterSamples("gemmd_device_hangs_total",
                              "1 once work on the device did not end within --job-timeout, for "
                              "which the device was given up.");
  auto lost = CounterSamples("gemmd_matrices_lost_total",
                             "Resident matrices whose only copy was on the device when it was "
                             "lost.");
  auto moved = CounterSamples("gemmd_matrices_moved_total",
                              "Resident matrices of the lost device whose replica on another "
                              "device took their place.");
  for (const DeviceStats& device : devices) {
    const prometheus::Labels labels{{"device", device.name}};
    AddSample(hangs, static_cast<double>(device.loss.hangs), labels);
    AddSample(lost, static_cast<double>(device.loss.matrices_lost), labels);
    AddSample(moved, static_cast<double>(device.loss.matrices_moved), labels);
  }
  for (auto* family : {&hangs, &lost, &moved}) families.push_back(std::move(*family));
}

void AddReplicaSamples(const std::vector<DeviceStats>& devices,
                       std::vector<prometheus::MetricFamily>& families) {
  auto bytes = GaugeSamples("gemmd_replica_bytes",
                            "Store bytes on this device used by replicas: copies of matrices that "
                            "lie on other devices.");
  auto begun = CounterSamples(
      "gemmd_replicas_total",
      "Replicas begun on this device, copied directly from the other device (peer) or through "
      "host memory (host).");
  auto copied = CounterSamples("gemmd_replica_copied_bytes_total", "Bytes copied into replicas.");
  auto reused = CounterSamples("gemmd_replica_reuses_total",
                               "Operands whose replica was already on this device.");
  auto dropped = CounterSamples("gemmd_replicas_dropped_total",
                                "Replicas dropped on this device to make room.");
  for (const DeviceStats& device : devices) {
    const prometheus::Labels labels{{"device", device.name}};
    const auto add = [&](prometheus::MetricFamily& family, int64_t value) {
      AddSample(family, static_cast<double>(value), labels);
    };
    add(bytes, device.replicas.bytes);
    for (const auto& [route, count] : {std::pair("peer", device.replicas.begun_peer),
                                       std::pair("host", device.replicas.begun_host)}) {
      AddSample(begun, static_cast<double>(count), {{"device", device.name}, {"route", route}});
    }
    add(copied, device.replicas.copied_bytes);
    add(reused, device.replicas.reused);
    add(dropped, device.replicas.dropped);
  }
  for (auto* family : {&bytes, &begun, &copied, &reused, &dropped}) {
    families.push_back(std::move(*family));
  }
}

}  // namespace

std::vector<prometheus::MetricFamily> Samples(const EngineStats& stats) {
  std::vector<prometheus::MetricFamily> families;
  AddServerSamples(stats, families);
  AddExpirySamples(stats, families);
  AddTrafficSamples(stats, families);
  AddBoundedDeviceSamples(stats.devices, families);
  AddOtherDeviceSamples(stats.devices, families);
  AddReplicaSamples(stats.devices, families);
  AddLossSamples(stats.devices, families);
  return families;
}

void EngineGauges::Attach(const Engine* engine) {
  MutexLock lock(mutex_);
  engine_ = engine;
}

std::vector<prometheus::MetricFamily> EngineGauges::Collect() const {
  MutexLock lock(mutex_);
  if (engine_ == nullptr) return {};
  return Samples(engine_->Stats());
}

}  // namespace gemmd
