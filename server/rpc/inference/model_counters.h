// What became of the requests to each model, for ModelStatistics. Each caller sees its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
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
  // Models of all callers together. Past it, the one with the oldest request is forgotten.
  static constexpr size_t kMostModels = 4096;

  void OnSuccess(const std::string& caller, const Model& model, const JobReport& report);
  // Not counted for a matrix of which no request has succeeded: it may not exist.
  void OnFailure(const std::string& caller, const Model& model, absl::Duration elapsed);

  // What the caller's requests to the model have come to: zeros where there were none. Without
  // version.
  inference::ModelStatistics Of(const std::string& caller, const std::string& model) const;
  // The models that the caller's requests have named.
  std::vector<std::string> ModelsOf(const std::string& caller) const;

 private:
  using Key = std::pair<std::string, std::string>;  // caller and model
  struct Entry {
    inference::ModelStatistics statistics;
    uint64_t used = 0;  // the number of the last request
  };

  Entry& EntryOf(Key key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
