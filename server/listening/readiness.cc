#include "server/listening/readiness.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

namespace gemmd {

void Readiness::Begin(grpc::HealthCheckServiceInterface* health,
                      std::vector<std::string> services) {
  MutexLock lock(mutex_);
  health_ = health;
  services_ = std::move(services);
  reasons_.clear();
  TellHealth();
}

bool Readiness::Withdraw(absl::string_view reason) {
  MutexLock lock(mutex_);
  if (std::find(reasons_.begin(), reasons_.end(), reason) != reasons_.end()) return false;
  reasons_.emplace_back(reason);
  TellHealth();
  return true;
}

bool Readiness::Restore(absl::string_view reason) {
  MutexLock lock(mutex_);
  const auto found = std::find(reasons_.begin(), reasons_.end(), reason);
  if (found == reasons_.end()) return false;
  reasons_.erase(found);
  TellHealth();
  return true;
}

void Readiness::TellHealth() {
  for (const std::string& service : services_) {
    health_->SetServingStatus(service, reasons_.empty());
  }
}

absl::Status Readiness::Get() const {
  MutexLock lock(mutex_);
  if (reasons_.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrJoin(reasons_, "; "));
}

}  // namespace gemmd
