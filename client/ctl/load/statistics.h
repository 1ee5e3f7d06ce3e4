// The statistics of a load test.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/ctl/load/histogram.h"
#include "client/ctl/output/phases.h"

namespace gemmd::ctl {

// The outcome of one request.
struct Outcome {
  absl::Status status;
  double flops = 0;             // of the product
  uint64_t bytes_sent = 0;      // payload
  uint64_t bytes_received = 0;  // payload
  std::optional<PhaseDurations> phases;
};

// The result of a product's verification.
struct Verdict {
  absl::Status fetched;  // where not OK there was nothing to verify: the request has failed
  bool checked = false;
  bool right = true;
  std::string explanation;  // where not right
};

// The sums over requests.
struct Tally {
  struct Errors {
    uint64_t count = 0;
    std::string first;  // the sentence of the first of them
  };

  uint64_t succeeded = 0;
  uint64_t failed = 0;  // those never sent among them
  // Keyed by the name of the gRPC code, or by kNotSentInTime.
  std::map<std::string, Errors> errors;
  double flops = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t verified = 0;
  uint64_t wrong = 0;
  std::string first_wrong;
  // Only of requests that succeeded.
  Histogram latency;
  std::array<Histogram, kPhaseCount> phases;

  void Merge(const Tally& other);
};

// A planned request of the open loop for which no worker was free in time.
inline constexpr const char* kNotSentInTime = "NOT_SENT_IN_TIME";

// The figures of a live line, since the line before.
struct Interval {
  uint64_t done = 0;
  Histogram latency;
};

// Collects from many threads. Thread-safe.
class Statistics {
 public:
  // Workers share `shards` locks by their number.
  explicit Statistics(size_t shards);

  void AddOutcome(size_t worker, const Outcome& outcome, absl::Duration latency);
  void AddNotSent(size_t worker, absl::Duration late);
  void AddVerdict(size_t worker, const Verdict& verdict);

  // Everything so far.
  Tally Sum() const;

  // Requests that failed so far, without the cost of Sum.
  uint64_t failed() const;

  // The requests that were recorded since the last call of TakeInterval.
  Interval TakeInterval();

 private:
  struct Shard {
    mutable std::mutex mutex;
    Tally tally;
    Interval interval;
  };

  Shard& ShardOf(size_t worker) { return *shards_[worker % shards_.size()]; }

  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace gemmd::ctl
