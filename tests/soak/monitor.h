// Watches the server while it is under load: its memory and its gauges.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd::soak {

struct Sample {
  absl::Time at;
  double resident_bytes = 0;              // of the process
  std::map<std::string, double> metrics;  // by family, its series added up
};

// The families of a scrape. UNAVAILABLE where the endpoint does not answer.
absl::StatusOr<std::map<std::string, double>> Scrape(const std::string& address);

// VmRSS of a process. NOT_FOUND where there is none.
absl::StatusOr<double> ResidentBytes(int pid);

// Takes a sample every second from construction to Stop.
class Monitor {
 public:
  Monitor(std::string metrics_address, int pid);
  ~Monitor();

  absl::StatusOr<Sample> Now() const;
  // Ends the sampling and returns what it saw.
  std::vector<Sample> Stop();
  // How often a sample could not be taken.
  int misses() const { return misses_.load(); }

 private:
  void Run();

  const std::string address_;
  const int pid_;
  std::atomic<int> misses_{0};
  Mutex mutex_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Sample> samples_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// The median of resident_bytes over the samples in [from, to); 0 without any.
double MedianResidentBytes(const std::vector<Sample>& samples, absl::Time from, absl::Time to);

}  // namespace gemmd::soak
