// Whether, and when, a call is tried again.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/calls/clock.h"
#include "gemm/v1/gemm.pb.h"
#include "gemmd/client/retry.h"
#include "grpcpp/support/status.h"

namespace gemmd::client {

// The same code and message, with the details that the server gave, as payloads.
absl::Status FromGrpc(const grpc::Status& status);
// The error of a job on a stream.
absl::Status FromJobError(const ::gemm::v1::JobError& error);

// The budget of all calls of a client for further attempts. Thread-safe.
class RetryBudget {
 public:
  explicit RetryBudget(const RetryOptions& options)
      : most_(options.budget), per_call_(options.budget_per_call), left_(options.budget) {}

  void OnCall();
  // Whether there is enough for another attempt, which is then taken.
  bool Take();

 private:
  const double most_;
  const double per_call_;
  std::mutex mutex_;
  double left_;  // under mutex_
};

// Whether a call does the same when it runs twice.
enum class Repeated : uint8_t {
  kSame,       // the same as once
  kDifferent,  // keeps or deletes something: only where the first time did nothing
};

// The attempts of one call. Not thread-safe.
class Retries {
 public:
  // Counts the call. The budget must outlive this.
  Retries(const RetryOptions& options, RetryBudget& budget, Repeated repeated);

  // How long to wait before the next attempt of a call that has failed; nullopt where none
  // follows.
  std::optional<absl::Duration> Next(const absl::Status& status, absl::Time deadline);
  // The error of the call, whose last attempt has failed with `last`: where the server has gone
  // in between, the first such error says why.
  absl::Status Told(const absl::Status& last) const;
  // When the first attempt began.
  absl::Time begun() const { return begun_; }

 private:
  const absl::Time begun_ = SteadyNow();
  const RetryOptions options_;
  RetryBudget& budget_;
  const Repeated repeated_;
  int made_ = 1;
  absl::Status first_;  // the first UNAVAILABLE that another attempt followed
};

}  // namespace gemmd::client
