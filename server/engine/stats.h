// A snapshot of everything that is bounded, beside its bound.
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

struct DeviceStats {
  std::string name;
  Gauge memory_bytes;  // device memory handed out
  Gauge streams;       // running a job
  Gauge upload_staging_bytes;
  Gauge download_staging_bytes;
  Gauge store_bytes;        // resident matrices
  int64_t queued_jobs = 0;  // ready, waiting for a stream of this device
  int64_t jobs_begun = 0;   // given a stream of this device, since the start
  int64_t driver_allocations = 0;
  absl::Status health;
};

struct EngineStats {
  Gauge jobs;  // admitted, not yet ended
  Gauge queued_jobs;
  Gauge admitted_bytes;
  Gauge matrices;
  std::vector<DeviceStats> devices;
};

}  // namespace gemmd
