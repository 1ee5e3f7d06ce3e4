#include "files/part_files.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <utility>

#include "files/standard_descriptors.h"

namespace gemmd::files {
namespace {

constexpr int kSlots = 16;

// Read by the signal handler: nothing but lock-free atomics. A path is given up
// before its string goes.
std::array<std::atomic<const char*>, kSlots> paths{};
static_assert(std::atomic<const char*>::is_always_lock_free);

void RemoveAndEnd(int signal) {
  for (const auto& slot : paths) {
    if (const char* const path = slot.load(); path != nullptr) (void)unlink(path);
  }
  // The handler was reset to the default, and the signal is delivered when it
  // returns.
  (void)raise(signal);
}

}  // namespace

PartFile::PartFile(std::string path) : path_(std::move(path)) {
  for (int i = 0; i < kSlots && slot_ < 0; ++i) {
    const char* empty = nullptr;
    if (paths[i].compare_exchange_strong(empty, path_.c_str())) slot_ = i;
  }
}

PartFile::~PartFile() {
  if (slot_ >= 0) paths[slot_].store(nullptr);
}

void EndUnread() {
  (void)signal(SIGPIPE, SIG_DFL);
  (void)raise(SIGPIPE);
  _exit(128 + SIGPIPE);  // it is blocked
}

void PrepareProcess() {
  OpenStandardDescriptors();
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGXFSZ, SIGPIPE}) (void)sigaction(signal, &action, nullptr);
  action.sa_handler = RemoveAndEnd;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGXCPU}) {
    struct sigaction old = {};
    // A signal that nohup or a shell has set to be ignored stays ignored.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) continue;
    (void)sigaction(signal, &action, nullptr);
  }
}

}  // namespace gemmd::files
