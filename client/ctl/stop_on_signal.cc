#include "client/ctl/stop_on_signal.h"

namespace gemmd::ctl {
namespace {

std::atomic<bool> interrupted{false};

}  // namespace

StopOnSignal::StopOnSignal() {
  interrupted = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

StopOnSignal::~StopOnSignal() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

const std::atomic<bool>& StopOnSignal::stopped() { return interrupted; }

}  // namespace gemmd::ctl
