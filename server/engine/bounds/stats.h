// A snapshot of everything that is bounded, with its bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gemmd {

struct Gauge {
  int64_t used = 0;
  int64_t limit = 0;
};

// The replicas on a device, of other devices' matrices.
struct ReplicaStats {
  int64_t bytes = 0;  // now, part of the store's bytes on this device
  // Since the start.
  int64_t begun_peer = 0;  // copies directly from the other device
  int64_t begun_host = 0;  // copies through host memory
  int64_t copied_bytes = 0;
  int64_t reused = 0;   // operands whose replica already existed
  int64_t dropped = 0;  // to make room
};

// The cost of a device's loss. All zero while it is healthy.
struct DeviceLossStats {
  int64_t hangs = 0;           // 1: work on it did not end within --job-timeout
  int64_t matrices_lost = 0;   // resident matrices that had no copy elsewhere
  int64_t matrices_moved = 0;  // those whose replica on another device took their place
};

// The jobs of one caller, or of one connection without a caller, that wait for a stream.
struct WaitingFlow {
  std::string name;
  int64_t jobs = 0;
  double seconds = 0;  // of device time, as estimated
};

struct DeviceStats {
  std::string name;
  Gauge memory_bytes;  // device memory in use
  Gauge streams;       // running a job
  Gauge upload_staging_bytes;
  Gauge download_staging_bytes;
  Gauge store_bytes;  // resident matrices, and replicas of them
  ReplicaStats replicas;
  int64_t queued_jobs = 0;              // ready, waiting for a stream of this device
  int64_t waiting_flows = 0;            // whose they are: callers, or connections without
  double queue_wait_seconds = 0;        // until all of them have begun, and one more could
  double queue_wait_limit_seconds = 0;  // for a job's own turn
  int64_t jobs_begun = 0;  // jobs and PutMatrix generators given a stream since the start
  int64_t driver_allocations = 0;
  absl::Status health;
  DeviceLossStats loss;
};

// Arrivals, for those who wait for an idle time.
struct EngineActivity {
  int64_t arrived = 0;    // jobs and transfers admitted since the start
  int64_t under_way = 0;  // of these, not yet ended
};

struct EngineStats {
  Gauge jobs;  // admitted, not yet ended
  Gauge queued_jobs;
  Gauge admitted_bytes;
  Gauge matrices;
  int64_t matrices_expired = 0;  // since the start
  Gauge traffic;                 // kinds of products in the traffic log
  int64_t traffic_dropped = 0;   // since the start
  std::vector<DeviceStats> devices;
};

}  // namespace gemmd
