#include "server/process/exit_bound.h"

#include <cstdlib>
#include <string>

#include "server/base/clock.h"
#include "server/logs/logging.h"

namespace gemmd {

ExitBound::ExitBound() : thread_([this] { Watch(); }) {}

ExitBound::~ExitBound() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void ExitBound::Arm(absl::Duration timeout, int exit_code, absl::string_view under_way) {
  {
    MutexLock lock(mutex_);
    at_ = SteadyNow() + timeout;
    exit_code_ = exit_code;
    under_way_ = under_way;
  }
  changed_.NotifyAll();
}

void ExitBound::Disarm() { Arm(absl::InfiniteDuration(), 0, ""); }

void ExitBound::Watch() {
  std::string under_way;
  int exit_code = 0;
  {
    MutexLock lock(mutex_);
    while (!stop_ && SteadyNow() < at_) changed_.WaitUntil(mutex_, at_);
    if (stop_) return;
    under_way = std::string(under_way_);
    exit_code = exit_code_;
  }
  Log(LogLevel::kWarning, "stopped with work under way",
      {{"all_jobs_ended", false}, {"under_way", under_way}});
  // No destructor and no exit handler: those would wait for the work, or take its memory.
  std::_Exit(exit_code);
}

}  // namespace gemmd
