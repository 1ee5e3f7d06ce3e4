// gemmctl version: the version of this program and, if it answers, of the server.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/render.h"
#include "client/ctl/output/table.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

// Short: the version of this program is shown without a server, too.
constexpr absl::Duration kPatience = absl::Seconds(2);

int Run(Context& context) {
  if (!context.global.deadline.has_value()) context.global.deadline = kPatience;
  const auto client = context.server_choice.ok()
                          ? Connect(context)
                          : absl::StatusOr<std::unique_ptr<client::Client>>(context.server_choice);
  Json json = {{"client", ClientVersion()}};
  Table summary = SummaryTable();
  summary.Add({"client", ClientVersion()});
  if (client.ok()) {
    const client::ServerInfo& server = (*client)->server();
    json["server"] = {{"version", server.version()}, {"commit", server.commit()}};
    summary.Add({"server", absl::StrCat(server.version(), " (commit ", server.commit(), ") at ",
                                        context.global.address)});
  } else {
    json["server"] = nullptr;
    summary.Add({"server", context.server_choice.ok()
                               ? absl::StrCat("none answers at ", context.global.address)
                               : std::string(context.server_choice.message())});
  }
  if (context.global.json) {
    PrintJson(context, json);
  } else {
    summary.Print(context.out, context.width);
  }
  return kExitOk;
}

}  // namespace

void AddVersion(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "version", "Show the version of gemmctl and, if it answers, of the server");
  command->footer("Example:\n  gemmctl version --json");
  command->callback([&context] { context.run = [&context] { return Run(context); }; });
}

}  // namespace gemmd::ctl
