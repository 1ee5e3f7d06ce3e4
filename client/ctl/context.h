// Shared by all subcommands: the global options, the output streams, and functions
// to connect and to report errors.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ctl/deadline.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/servers/config.h"
#include "gemmd/client/client.h"
#include "nlohmann/json_fwd.hpp"

namespace gemmd::ctl {

// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

struct GlobalOptions {
  std::string address = "127.0.0.1:50051";
  // How the server is reached. `server.address` is unused: `address` has it.
  ServerSettings server;
  // The context of the configuration file; empty: the file's current one.
  std::string context;
  int channels = 4;
  bool json = false;
  // For each call to the server.
  std::optional<absl::Duration> deadline;
};

struct Context {
  GlobalOptions global;
  std::ostream& out;
  std::ostream& err;
  // Progress bars and live lines are printed on terminals only.
  bool err_is_terminal = false;
  // The most columns of a table's line on `out`; 0: no bound.
  size_t width = 0;
  // Why no server could be chosen. Only commands that need none run then.
  absl::Status server_choice;
  // As typed; recorded with results so that they can be reproduced.
  std::string command_line;
  // Runs the chosen subcommand, after the command line was parsed.
  std::function<int()> run;
};

// The version of this program, such as "1.2.3".
std::string ClientVersion();

// Connects with the global options. `retry`: when the client's calls are tried again.
absl::StatusOr<std::unique_ptr<client::Client>> Connect(const Context& context,
                                                        const client::RetryOptions& retry = {});

// Options of one call, with the global deadline, or with `deadline` where none was
// given.
client::CallOptions Call(const Context& context, absl::Duration deadline = kQuestionDeadline);

// The same, for a command that writes `files`: if one of them is standard output, text for people
// goes to `err`.
Context Beside(const Context& context, std::initializer_list<std::string> files);

// Prints "gemmctl: NOT_FOUND: message" and returns kExitFailed.
int Fail(const Context& context, const absl::Status& status);

// Prints "gemmctl: sentence" and returns kExitUsage.
int FailUsage(const Context& context, const std::string& sentence);

// The indented text of a document. It is UTF-8: other bytes, as in a file name or a
// command line, become U+FFFD.
std::string JsonText(const Json& json);

// Prints JsonText(json).
void PrintJson(const Context& context, const Json& json);

}  // namespace gemmd::ctl
