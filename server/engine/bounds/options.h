// The options of an engine. The defaults are the server's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/bytes.h"

namespace gemmd {

// In order of strictness.
enum class Verify : uint8_t { kOff, kSampled, kAlways };

// The stricter of a request's wish and the server's policy.
constexpr Verify Stricter(Verify one, Verify other) { return std::max(one, other); }

// A job's payload, or its result, of up to this many bytes is small: it is staged in one
// block and copied on the job's own stream.
inline constexpr size_t kSmallBytes = 128 * kKiB;
// One block holds all of a small payload.
inline constexpr size_t kMinStagingBlockBytes = kSmallBytes;

// This fits in a block, even if every operand starts on a boundary of the arena.
inline constexpr size_t kMaxZeroCopyBytes = kSmallBytes / 2;

inline constexpr int kMaxStreamsPerDevice = 128;
inline constexpr int kMostCoalescedJobs = 64;

struct EngineOptions {
  // As DeviceSpecForms says, such as "cuda:0,1" or "host:4". auto: every CUDA device,
  // or one host device where there is none.
  std::string devices = "auto";

  // Device memory allocated at start, for each device. 0: 80% of what is free on a GPU;
  // 2 GiB (touched only as used) on the host.
  size_t device_memory_bytes = 0;
  // Streams that run jobs, for each device; at most kMaxStreamsPerDevice.
  int streams_per_device = 4;
  // Further streams of each device that run quick jobs alone (policy/cost_model.h); at most
  // kMaxStreamsPerDevice. 0: none, and quick jobs wait like the others.
  int quick_streams = 2;
  // The most small jobs that wait together, are alike and run in one launch. 1: each runs alone. 0:
  // kMostCoalescedJobs on a GPU, where a launch costs more than a small product, and 1 on a host,
  // whose streams work side by side.
  int max_coalesced_jobs = 0;
  // A payload or a result of up to this many bytes, at most kMaxZeroCopyBytes, is read or written
  // by the kernel in staging memory (job/small_payload.h).
  size_t zero_copy_bytes = 16 * kKiB;
  // Pinned staging memory for each device and direction, and its block size, which is at
  // least kMinStagingBlockBytes.
  size_t staging_bytes = 256 * kMiB;
  size_t staging_block_bytes = kMiB;
  // Whether libraries load their kernels at start, instead of at the first product that
  // needs one (job/warm_up.h).
  bool warm_up = true;
  // Threads that copy payload into staging memory, and as many that tell listeners of
  // results and ends. 0: half the cores, at least 1 and at most 8.
  int copy_threads = 0;
  // How long the completion thread polls without sleeping after a job, or the end of a transfer.
  absl::Duration completion_spin = absl::Milliseconds(1);

  // Files of tuning tables (gemm/tuning.h), with commas between them. A later file's entry
  // counts. Empty: kernels are chosen by estimate and rank.
  std::string tuning_tables;
  // A further file, which is read last if it exists. The server adds to it what it measures while
  // nothing runs (server/benchmark/idle_tuner.h). Empty: none.
  std::string idle_tuning;

  // Which products are checked; a request may ask for more (job/result_check.h). And the share
  // of the products that are, of those that are to be sampled.
  Verify verify = Verify::kOff;
  double verify_sample_rate = 0.01;

  // Admission. A job counts from its header to its end.
  size_t max_job_bytes = 16 * kGiB;       // device bytes of one job
  size_t max_admitted_bytes = 64 * kGiB;  // device bytes of all jobs
  int max_jobs = 4096;                    // jobs admitted and not yet ended
  int max_queued_jobs = 1024;             // jobs ready to run and waiting for a stream
  // The longest estimated wait of a job for a stream.
  absl::Duration max_queue_wait = absl::Seconds(1);

  // A device is given up when a job's work on it has not ended after this long and the time
  // of the slowest kernel (core/device_losses.h). 0: never.
  absl::Duration job_timeout = absl::Minutes(2);

  // The store. 0 bytes: half of each device's memory.
  size_t store_bytes = 0;  // resident matrices, for each device
  int max_matrices = 65536;
  // The time to live of matrices without a name and without one of their own, such as clients that
  // are killed leave behind. 0: until they are deleted.
  absl::Duration unnamed_ttl = absl::Hours(1);
  // An unfinished upload is dropped after this long without a byte.
  absl::Duration upload_timeout = absl::Seconds(60);
};

// OK, or INVALID_ARGUMENT, which names the option's flag, its value and what is allowed.
absl::Status CheckOptions(const EngineOptions& options);

// The check of both kinds of streams alone, for code that makes a device without an engine.
absl::Status CheckStreams(const EngineOptions& options);

// The number of threads for copy_threads = 0.
int DefaultCopyThreads();

}  // namespace gemmd
