// What every subcommand has: the global options, where to print, and how to
// connect and to fail.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "client/ctl/deadline.h"
#include "client/ctl/exit_code.h"
#include "nlohmann/json_fwd.hpp"

namespace gemmd::ctl {

// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

struct GlobalOptions {
  std::string address = "127.0.0.1:50051";
  int channels = 4;
  bool json = false;
  // Of each call to the server.
  std::optional<absl::Duration> deadline;
};

struct Context {
  GlobalOptions global;
  std::ostream& out;
  std::ostream& err;
  // Progress bars and a live line that rewrites itself are for terminals.
  bool err_is_terminal = false;
  // That lines of tables on `out` may have; 0: no bound.
  size_t width = 0;
  // As it was typed, for results that are to be had again.
  std::string command_line;
  // What the chosen subcommand does once the command line is parsed.
  std::function<int()> run;
};

// Of this program, such as "1.2.3".
std::string ClientVersion();

// As the global options say.
absl::StatusOr<std::unique_ptr<client::Client>> Connect(const Context& context);

// Options of one call: with the global deadline, and where none was given with
// `deadline`.
client::CallOptions Call(const Context& context, absl::Duration deadline = kQuestionDeadline);

// Prints "gemmctl: NOT_FOUND: sentence" and returns kExitFailed.
int Fail(const Context& context, const absl::Status& status);

// Prints "gemmctl: sentence" and returns kExitUsage.
int FailUsage(const Context& context, const std::string& sentence);

// A document, indented. JSON is UTF-8: bytes of a file name or a command line that
// are not become U+FFFD.
std::string JsonText(const Json& json);

// Prints a document as JsonText gives it.
void PrintJson(const Context& context, const Json& json);

}  // namespace gemmd::ctl
