// gemmd: flags, a server, and its end.

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "files/size_text.h"
#include "files/standard_descriptors.h"
#include "proto/lock_order.h"
#include "server/base/clock.h"
#include "server/engine/engine.h"
#include "server/flags/flag_values.h"
#include "server/flags/flags.h"
#include "server/logs/logging.h"
#include "server/logs/tuning_log.h"
#include "server/net/descriptors.h"
#include "server/process/exit_bound.h"
#include "server/process/heap_trimmer.h"
#include "server/process/service_manager.h"
#include "server/process/thread_limits.h"
#include "server/process/version.h"
#include "server/server.h"

namespace gemmd {
namespace {

// How often the devices' health is looked at.
constexpr int kHealthPeriodMs = 250;

// Time for the end beyond --drain-timeout: for calls that were told to end, and the transport; for
// the device work of cancelled jobs; and, if no work is left, for the devices with their memory.
constexpr absl::Duration kStopGrace = absl::Seconds(7);
constexpr absl::Duration kWorkGrace = absl::Seconds(1);
constexpr absl::Duration kTeardownGrace = absl::Seconds(10);

// The signal handler writes the signal's number to the one end, and the main
// thread reads it from the other. A handler, and not a blocked signal that is
// waited for: threads that libraries start before main would take it.
int signal_pipe[2] = {-1, -1};

void OnStopSignal(int signal) {
  // The next signal has its default effect.
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  const char number = static_cast<char>(signal);
  if (write(signal_pipe[1], &number, 1) != 1) _exit(kExitFailure);
}

// Certificates and callers are read again. Lost where the pipe is full of earlier ones.
void OnHangup(int signal) {
  const int error = errno;
  const char number = static_cast<char>(signal);
  (void)!write(signal_pipe[1], &number, 1);
  errno = error;
}

void CatchSignals() {
  if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
  std::signal(SIGHUP, &OnHangup);
  std::signal(SIGTERM, &OnStopSignal);
  std::signal(SIGINT, &OnStopSignal);
}

// A log whose reader has gone costs its lines, not the jobs. So does a log or a tuning file at the
// limit of its size (ulimit -f). The write fails with EPIPE or EFBIG.
void IgnoreFailedWrites() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

// The signal that came within the health period, or until then where that is sooner; or 0.
int AwaitSignal(absl::Time until = absl::InfiniteFuture()) {
  const absl::Duration wait =
      std::clamp(until - SteadyNow(), absl::ZeroDuration(), absl::Milliseconds(kHealthPeriodMs));
  pollfd readable = {.fd = signal_pipe[0], .events = POLLIN};
  char number = 0;
  const int milliseconds =
      static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1))));
  if (poll(&readable, 1, milliseconds) == 1 && read(signal_pipe[0], &number, 1) != 1) number = 0;
  return number;
}

int Refuse(const absl::Status& status) {
  const bool usage = absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
  Log(LogLevel::kError, status.message(), {{"code", absl::StatusCodeToString(status.code())}});
  return usage ? kExitUsage : kExitFailure;
}

// Warns of settings that may leave too little memory.
void WarnOfMemory(const Engine& engine) {
  const size_t store = engine.options().store_bytes;
  uint64_t of_host_devices = 0;
  for (const auto& device : engine.devices()) {
    const DeviceInfoRecord& info = device->info();
    const size_t capacity = device->memory().capacity();
    if (info.caps.target == gemm::Target::kHost) of_host_devices += capacity;
    if (store < capacity) continue;
    Log(LogLevel::kWarning,
        "--store-bytes is not below a device's memory: resident matrices may leave none for jobs",
        {{"device", info.name},
         {"store-bytes", files::FormatSize(store)},
         {"memory", files::FormatSize(capacity)}});
  }
  const uint64_t machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (of_host_devices <= machine) return;
  Log(LogLevel::kWarning, "host devices may use more memory than this machine has",
      {{"device-memory-bytes", files::FormatSize(of_host_devices)},
       {"memory", files::FormatSize(machine)}});
}

void LogStart(Server& server) {
  const BuildInfo& build = ThisBuild();
  for (const auto& device : server.engine().devices()) {
    const DeviceInfoRecord& info = device->info();
    const absl::string_view estimates = device->estimates().model();
    Log(LogLevel::kInfo, "device",
        {{"name", info.name},
         {"model", info.model},
         {"memory", files::FormatSize(info.memory_bytes)},
         {"estimates", estimates.empty() ? "none" : estimates}});
  }
  WarnOfMemory(server.engine());
  LogTuning(server.engine().tuning());
  Log(LogLevel::kInfo, "serving",
      {{"address", server.address()},
       {"metrics", server.metrics_address()},
       {"devices", server.engine().devices().size()},
       {"version", build.version},
       {"commit", build.commit}});
}

// Waits for a signal, or for the last healthy device or the listener to be lost.
absl::Status WaitForTheEnd(Server& server, ServiceManager& manager) {
  HeapTrimmer trimmer;
  for (;;) {
    manager.Alive();
    const int signal = AwaitSignal();
    if (signal == SIGHUP) {
      server.ReloadIdentity();
    } else if (signal != 0) {
      Log(LogLevel::kInfo, "draining", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
      return absl::OkStatus();
    }
    if (absl::Status health = server.CheckHealth(); !health.ok()) return health;
    if (trimmer.Look()) Log(LogLevel::kDebug, "freed memory given back to the system");
  }
}

// Goes on serving, as a server that balancers leave. Not OK where it no longer can.
absl::Status LeaveRotation(Server& server, absl::Duration delay) {
  server.LeaveRotation();
  const absl::Time end = SteadyNow() + delay;
  while (SteadyNow() < end) {
    if (AwaitSignal(end) == SIGHUP) server.ReloadIdentity();
    if (absl::Status health = server.CheckHealth(); !health.ok()) return health;
  }
  return absl::OkStatus();
}

// `bound` gets its thread here, too: when the server stops, there may be none left.
absl::StatusOr<std::unique_ptr<Server>> StartServer(const ServerOptions& options,
                                                    std::optional<ExitBound>& bound) {
  try {
    bound.emplace();
    return Server::Start(options);
  } catch (const std::system_error& error) {  // a thread's
    return absl::UnavailableError(absl::StrCat("too few threads are allowed: one does not start (",
                                               error.what(), "). ", DescribeThreads(),
                                               ". gRPC alone needs ", ThreadsOfGrpc(), " more"));
  }
}

int Serve(const Flags& flags) {
  CatchSignals();
  RaiseDescriptorLimit();
  std::optional<ExitBound> bound;
  absl::StatusOr<std::unique_ptr<Server>> server = StartServer(flags.server, bound);
  if (!server.ok()) return Refuse(server.status());
  LogStart(**server);
  ServiceManager manager;
  manager.Ready();
  absl::Status health = WaitForTheEnd(**server, manager);
  manager.Stopping();  // which ends the watchdog, too
  if (health.ok()) health = LeaveRotation(**server, flags.drain_delay);
  if (health.ok()) Log(LogLevel::kInfo, "refusing new calls", {});
  if (!health.ok()) {
    const bool devices_left = (*server)->engine().Health().ok();
    Log(LogLevel::kError,
        devices_left ? "shutting down: the listening socket is lost"
                     : "shutting down: no healthy device left",
        {{"reason", health.message()}});
  }
  const absl::Duration drain = health.ok() ? flags.drain_timeout : absl::ZeroDuration();
  const int cut_short = health.ok() ? kExitWorkLeft : kExitUnusable;
  bound->Arm(drain + kStopGrace, cut_short, "calls that did not end");
  const bool all_ended = (*server)->Stop(drain);
  // The callers of cancelled jobs have been told; the kernels they left may run on.
  const bool idle = (*server)->engine().Drain(SteadyNow() + kWorkGrace);
  bound->Arm(idle ? kTeardownGrace : absl::ZeroDuration(), cut_short,
             "work that cannot be broken off: of a device, or a file that is read");
  server->reset();
  bound->Disarm();
  const bool work_left = Engine::LeftWorkBehind();
  Log(LogLevel::kInfo, "stopped", {{"all_jobs_ended", all_ended}, {"work_left", work_left}});
  // Exit handlers of the driver may wait for the kernel that hangs.
  if (work_left) std::_Exit(cut_short);
  return health.ok() ? kExitOk : kExitUnusable;
}

}  // namespace
}  // namespace gemmd

int main(int argc, char** argv) {
  gemmd::files::OpenStandardDescriptors();
  gemmd::IgnoreFailedWrites();
  gemmd::LeaveLockOrderUnchecked();
  const gemmd::FlagOutcome outcome = gemmd::ParseFlags(
      {argv + 1, argv + argc}, [](const char* name) -> const char* { return std::getenv(name); });
  if (!outcome.flags.has_value()) {
    std::FILE* const out = outcome.exit_code == gemmd::kExitOk ? stdout : stderr;
    if (std::fputs(outcome.output.c_str(), out) >= 0 && std::fflush(out) == 0) {
      return outcome.exit_code;
    }
    if (out == stderr) return outcome.exit_code;
    std::fprintf(stderr, "gemmd: standard output cannot be written: %s\n", std::strerror(errno));
    return gemmd::kExitFailure;
  }
  gemmd::SetUpLogging(outcome.flags->log);
  for (const gemmd::UnknownVariable& variable : gemmd::UnknownVariables(environ)) {
    gemmd::Log(gemmd::LogLevel::kWarning, "a variable of the environment names no flag",
               {{"variable", variable.name},
                {"may_be_meant", variable.meant.empty() ? "nothing near" : variable.meant}});
  }
  return gemmd::Serve(*outcome.flags);
}
