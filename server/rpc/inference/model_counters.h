// The outcomes of requests to each model, for ModelStatistics. Each caller sees its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "inference/inference.pb.h"
#include "server/base/mutex.h"
#include "server/engine/core/report.h"
#include "server/rpc/inference/models.h"

namespace gemmd {

// Thread-safe.
class ModelCounters {
 public:
  // Models of one caller. Past the bound, its model with the oldest request is forgotten.
  static constexpr size_t kMostOfCaller = 256;
  // Models of all callers. Past the bound, the caller with the most models loses its oldest.
  static constexpr size_t kMostModels = 4096;

  void OnSuccess(const std::string& caller, const Model& model, const JobReport& report);
  // Not counted for a matrix of which no request has succeeded: it may not exist.
  void OnFailure(const std::string& caller, const Model& model, absl::Duration elapsed);

  // What the caller's requests to the model have come to: zeros where there were none. Without
  // version.
  inference::ModelStatistics Of(const std::string& caller, const std::string& model) const;
  size_t callers() const;  // that have models
  // The models that the caller's requests have named.
  std::vector<std::string> ModelsOf(const std::string& caller) const;

 private:
  struct Entry {
    inference::ModelStatistics statistics;
    uint64_t used = 0;  // the number of the last request
  };

  using Models = std::map<std::string, Entry>;

  Entry& EntryOf(const std::string& caller, const std::string& model)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetOldest(Models& of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Entry* Find(const std::string& caller, const std::string& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Models> callers_ ABSL_GUARDED_BY(mutex_);  // each has models
  size_t models_ ABSL_GUARDED_BY(mutex_) = 0;                      // of all of them
  uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
