#include "client/ctl/stop_on_signal.h"

#include <signal.h>

namespace gemmd::ctl {
namespace {

std::atomic<bool> interrupted{false};

// The handlers before ours. Set while no handler of ours is installed.
struct sigaction old_interrupt = {};
struct sigaction old_terminate = {};

// The next signal ends the program as it would without us, and unfinished files with it.
void Stop(int signal) {
  interrupted = true;
  (void)sigaction(signal, signal == SIGINT ? &old_interrupt : &old_terminate, nullptr);
}

}  // namespace

StopOnSignal::StopOnSignal() {
  interrupted = false;
  struct sigaction action = {};
  action.sa_handler = Stop;
  sigaction(SIGINT, nullptr, &old_interrupt);
  sigaction(SIGTERM, nullptr, &old_terminate);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

StopOnSignal::~StopOnSignal() {
  sigaction(SIGINT, &old_interrupt, nullptr);
  sigaction(SIGTERM, &old_terminate, nullptr);
}

const std::atomic<bool>& StopOnSignal::stopped() { return interrupted; }

}  // namespace gemmd::ctl
