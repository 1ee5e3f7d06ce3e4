#include "server/process/thread_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/cgroup.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

// Threads that have ended count for a moment longer.
constexpr absl::Duration kLongestEnd = absl::Seconds(1);

// The number of "Threads: 12" in /proc/self/status; 0 where there is none.
int64_t ThreadsNow() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    absl::string_view rest = line;
    int64_t threads = 0;
    if (absl::ConsumePrefix(&rest, "Threads:") && absl::SimpleAtoi(rest, &threads)) return threads;
  }
  return 0;
}

// The least pids.max of the process's cgroups; nullopt where none limits.
std::optional<int64_t> PidsMax() {
  std::optional<int64_t> least;
  for (const std::string& folder : CgroupFolders("pids")) {
    std::ifstream file(folder + "/pids.max");
    std::string text;
    int64_t most = 0;
    if (file >> text && absl::SimpleAtoi(text, &most)) {
      least = std::min(least.value_or(most), most);
    }
  }
  return least;
}

// Waits until no more threads than `count` are left, as far as the system says.
void AwaitEnds(int64_t count) {
  const absl::Time give_up = SteadyNow() + kLongestEnd;
  while (ThreadsNow() > count && SteadyNow() < give_up) absl::SleepFor(absl::Milliseconds(1));
}

}  // namespace

int ThreadsOfGrpc() {
  // As gRPC counts them: also those that this process may not use.
  const int cpus = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_CONF)));
  const int executor = 2 * cpus;  // one at first; more where closures queue up
  const int resolver = 1;
  const int event_engine = std::clamp(cpus, 2, 16) + 2;  // its pool, its poller and its timers
  const int callbacks = std::clamp(cpus / 2, 2, 16);
  const int timers = 4;  // one at first; more where timers fire at once
  return executor + resolver + event_engine + callbacks + timers;
}

absl::Status CheckThreads(int count, absl::string_view of) {
  const int64_t before = ThreadsNow();
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(count);
  std::string why;
  try {
    while (static_cast<int>(threads.size()) < count) {
      threads.emplace_back([ended] { ended.wait(); });
    }
  } catch (const std::system_error& error) {
    why = error.what();
  }
  end.set_value();
  for (std::thread& thread : threads) thread.join();
  if (before > 0) AwaitEnds(before);
  if (why.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("too few threads are allowed: ", of, " needs ", count, " more, and ",
                   threads.size(), " of them start (", why, "). ", DescribeThreads(),
                   ". Raise the limit by at least ", count - static_cast<int>(threads.size())));
}

std::string DescribeThreads() {
  std::string text = absl::StrCat("The process has ", ThreadsNow(), " threads. Limits: ");
  rlimit of_user{};
  if (getrlimit(RLIMIT_NPROC, &of_user) == 0 && of_user.rlim_cur != RLIM_INFINITY) {
    absl::StrAppend(
        &text, "RLIMIT_NPROC (ulimit -u), for all of the user's processes: ", of_user.rlim_cur);
  } else {
    absl::StrAppend(&text, "RLIMIT_NPROC (ulimit -u): none");
  }
  const std::optional<int64_t> of_cgroup = PidsMax();
  absl::StrAppend(&text, "; pids.max of the cgroup (container): ",
                  of_cgroup.has_value() ? absl::StrCat(*of_cgroup) : "none");
  return text;
}

std::vector<int> NeighbourCpus(const std::vector<int>& allowed, int current, int count) {
  const auto size = static_cast<size_t>(count);
  if (size >= allowed.size()) return allowed;
  const auto at = std::lower_bound(allowed.begin(), allowed.end(), current);
  const auto index = static_cast<size_t>(at - allowed.begin());
  const size_t first = std::min(index / size * size, allowed.size() - size);
  return {allowed.begin() + static_cast<std::ptrdiff_t>(first),
          allowed.begin() + static_cast<std::ptrdiff_t>(first + size)};
}

CpuConfinement::CpuConfinement(int count) {
  if (count == 0 || sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before_)) allowed.push_back(cpu);
  }
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (const int cpu : NeighbourCpus(allowed, sched_getcpu(), count)) CPU_SET(cpu, &chosen);
  // If the system refuses, the threads run anywhere: slower, but right.
  confined_ = sched_setaffinity(0, sizeof(chosen), &chosen) == 0;
}

CpuConfinement::~CpuConfinement() {
  if (confined_) sched_setaffinity(0, sizeof(before_), &before_);
}

}  // namespace gemmd
