#include "server/telemetry/process_gauges.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "server/telemetry/families.h"

namespace gemmd {
namespace {

struct MemoryBytes {
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

// proc(5): the first two numbers of statm are pages of virtual and resident memory.
std::optional<MemoryBytes> ReadMemory() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  double resident_pages = 0;
  if (!(statm >> pages >> resident_pages)) return std::nullopt;
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  return MemoryBytes{pages * page_bytes, resident_pages * page_bytes};
}

std::optional<double> CountOpenFiles() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return std::nullopt;
  double entries = 0;
  while (readdir(directory) != nullptr) ++entries;
  closedir(directory);
  return entries - 3;  // ".", ".." and the directory itself
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessGauges::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&families](prometheus::MetricFamily family, double value) {
    AddSample(family, value);
    families.push_back(std::move(family));
  };
  add(GaugeSamples("process_start_time_seconds", "Start of the process, as Unix time in seconds."),
      absl::ToDoubleSeconds(started_ - absl::UnixEpoch()));
  if (const auto memory = ReadMemory()) {
    add(GaugeSamples("process_virtual_memory_bytes", "Virtual memory of the process."),
        memory->virtual_bytes);
    add(GaugeSamples("process_resident_memory_bytes", "Resident memory of the process."),
        memory->resident_bytes);
  }
  if (const auto files = CountOpenFiles()) {
    add(GaugeSamples("process_open_fds", "Open file descriptors."), *files);
  }
  if (rlimit limit; getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    add(GaugeSamples("process_max_fds", "Limit: open file descriptors."),
        static_cast<double>(limit.rlim_cur));
  }
  if (rusage usage; getrusage(RUSAGE_SELF, &usage) == 0) {
    add(CounterSamples("process_cpu_seconds_total", "Processor time, user and system together."),
        Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  }
  return families;
}

}  // namespace gemmd
