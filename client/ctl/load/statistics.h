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
#include "client/ctl/load/series.h"
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
  // Requests that succeeded, and the waits of those that were not sent in time.
  Histogram latency;
  // Only of requests that succeeded.
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
  // Workers share `shards` locks by their number. A request is one of `choices`.
  explicit Statistics(size_t shards, size_t choices = 1);

  // `at`: the time since the end of the warm-up.
  void AddOutcome(size_t worker, size_t choice, const Outcome& outcome, absl::Duration latency,
                  absl::Duration at);
  void AddNotSent(size_t worker, size_t choice, absl::Duration late, absl::Duration at);
  void AddVerdict(size_t worker, size_t choice, const Verdict& verdict);

  // Everything so far.
  Tally Sum() const;
  // The same, by choice.
  std::vector<Tally> SumByChoice() const;
  Series series() const;

  // Requests that failed so far, without the cost of Sum.
  uint64_t failed() const;

  // The requests that were recorded since the last call of TakeInterval.
  Interval TakeInterval();

 private:
  struct Shard {
    mutable std::mutex mutex;
    std::vector<Tally> tallies;  // by choice
    Interval interval;
  };

  Shard& ShardOf(size_t worker) { return *shards_[worker % shards_.size()]; }

  const size_t choices_;
  std::vector<std::unique_ptr<Shard>> shards_;
  mutable std::mutex series_mutex_;
  Series series_;
};

}  // namespace gemmd::ctl
