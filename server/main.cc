// gemmd: flags, a server, and its end.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "server/engine/engine.h"
#include "server/flag_values.h"
#include "server/flags.h"
#include "server/logging.h"
#include "server/server.h"
#include "server/version.h"

namespace gemmd {
namespace {

// How often the devices' health is looked at.
constexpr timespec kHealthPeriod = {.tv_sec = 0, .tv_nsec = 250'000'000};

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

int Refuse(const absl::Status& status) {
  const bool usage = absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
  Log(LogLevel::kError, status.message(), {{"code", absl::StatusCodeToString(status.code())}});
  return usage ? kExitUsage : kExitFailure;
}

void LogStart(Server& server) {
  const BuildInfo& build = ThisBuild();
  for (const auto& device : server.engine().devices()) {
    const DeviceInfoRecord& info = device->info();
    Log(LogLevel::kInfo, "device",
        {{"name", info.name}, {"model", info.model}, {"memory", FormatSize(info.memory_bytes)}});
  }
  Log(LogLevel::kInfo, "serving",
      {{"address", server.address()},
       {"metrics", server.metrics_address()},
       {"devices", server.engine().devices().size()},
       {"version", build.version},
       {"commit", build.commit}});
}

// Waits for a signal or for the last healthy device to be lost.
absl::Status WaitForTheEnd(Server& server, const sigset_t& signals) {
  for (;;) {
    const int signal = sigtimedwait(&signals, nullptr, &kHealthPeriod);
    if (signal > 0) {
      Log(LogLevel::kInfo, "draining", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
      return absl::OkStatus();
    }
    if (absl::Status health = server.CheckHealth(); !health.ok()) return health;
  }
}

int Serve(const Flags& flags) {
  // Blocked here, before any thread starts, and so in every thread.
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(flags.server);
  if (!server.ok()) return Refuse(server.status());
  LogStart(**server);
  const absl::Status health = WaitForTheEnd(**server, signals);
  // From now on a signal does what it does to any process.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  if (!health.ok()) {
    Log(LogLevel::kError, "no healthy device is left", {{"reason", health.message()}});
  }
  const bool all_ended = (*server)->Stop(health.ok() ? flags.drain_timeout : absl::ZeroDuration());
  Log(LogLevel::kInfo, "stopped", {{"all_jobs_ended", all_ended}});
  return health.ok() ? kExitOk : kExitDeviceLost;
}

}  // namespace
}  // namespace gemmd

int main(int argc, char** argv) {
  const gemmd::FlagOutcome outcome = gemmd::ParseFlags(
      {argv + 1, argv + argc}, [](const char* name) -> const char* { return std::getenv(name); });
  if (!outcome.flags.has_value()) {
    std::fputs(outcome.output.c_str(), outcome.exit_code == gemmd::kExitOk ? stdout : stderr);
    return outcome.exit_code;
  }
  gemmd::SetUpLogging(outcome.flags->log);
  return gemmd::Serve(*outcome.flags);
}
