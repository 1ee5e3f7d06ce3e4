// /status.json: the server's state for its status page (docs/status.md).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/benchmark/benchmarks.h"
#include "server/engine/engine.h"
#include "server/net/acceptor.h"
#include "server/status/job_history.h"
#include "server/telemetry/http_answer.h"

namespace gemmd {

// All of it must stay until StatusReport::Detach.
struct StatusSources {
  std::string version, commit;
  absl::Time started;
  const Engine* engine = nullptr;
  const Benchmarks* benchmarks = nullptr;
  const JobHistory* history = nullptr;
  std::vector<std::pair<std::string, std::function<ConnectionStats()>>> listeners;
};

// Thread-safe.
class StatusReport {
 public:
  // Of each list of matrices and of waiting callers.
  static constexpr size_t kMostRows = 32;
  static constexpr size_t kKernelsPerPage = 100;

  // `query` is what follows '?': "part=kernels&page=2". 400 for one that is not known, 503
  // before Attach and after Detach.
  HttpAnswer Answer(absl::string_view query) const;

  void Attach(StatusSources sources);
  // When this returns, no answer uses the sources any more.
  void Detach();

 private:
  mutable Mutex mutex_;  // held while an answer is made
  bool attached_ ABSL_GUARDED_BY(mutex_) = false;
  StatusSources sources_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
