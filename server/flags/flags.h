// The server's options, from the command line, the environment and a file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/logs/logging.h"
#include "server/server.h"

namespace gemmd {

struct Flags {
  ServerOptions server;
  LogOptions log;
  absl::Duration drain_delay = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);
};

// Exit codes of the process.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // could not serve
inline constexpr int kExitUsage = 2;    // a wrong flag
inline constexpr int kExitUnusable =
    70;  // stopped by itself: no device is healthy, or nothing listens
inline constexpr int kExitWorkLeft = 71;  // stopped in time, under work that did not end

// Either flags, or text to print and the exit code.
struct FlagOutcome {
  std::optional<Flags> flags;
  std::string output;
  int exit_code = kExitOk;
};

// The value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

// `arguments` without the program's name. The value of a flag comes from the command
// line, else from the environment, else from the flag file, else it is the default. An
// error names the flag, its origin, the value and what is allowed.
FlagOutcome ParseFlags(const std::vector<std::string>& arguments, const Environment& environment);

// Of the environment's variables ("NAME=value") those that begin with GEMMD_ and name no flag, each
// with the name that may be meant, or none. Not refused, as a flag is, for they are not the
// server's alone: those are left out that clients have, that Kubernetes sets for services called
// gemmd, and that images have.
struct UnknownVariable {
  std::string name;
  std::string meant;  // empty: nothing is near
};
std::vector<UnknownVariable> UnknownVariables(const char* const* variables);

}  // namespace gemmd
