// Whether the server is to get calls, for /readyz and grpc.health.v1.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/health_check_service_interface.h"
#include "server/base/mutex.h"

namespace gemmd {

// Not ready at first, then ready, but while there is a reason against it. Thread-safe.
class Readiness {
 public:
  // Ready. `health` also hears of it, for each of `services`, and of the end; it must
  // outlive the last call of Withdraw or Restore.
  void Begin(grpc::HealthCheckServiceInterface* health, std::vector<std::string> services);
  // No longer ready, and why. Reasons add up; each counts once. Returns whether this one is new.
  bool Withdraw(absl::string_view reason);
  // The reason is gone. Returns whether there was this one.
  bool Restore(absl::string_view reason);

  // OK, or UNAVAILABLE with every reason.
  absl::Status Get() const;

 private:
  void TellHealth() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  grpc::HealthCheckServiceInterface* health_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::string> services_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> reasons_ ABSL_GUARDED_BY(mutex_) = {"starting"};
};

}  // namespace gemmd
