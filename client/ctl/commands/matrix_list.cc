// gemmctl matrix list: the matrices on the server.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "client/ctl/commands/commands.h"
#include "client/ctl/render.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

int Run(const Context& context, const std::string& prefix) {
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const auto matrices = (*client)->ListMatrices(prefix, Call(context));
  if (!matrices.ok()) return Fail(context, matrices.status());
  if (context.global.json) {
    Json json = Json::array();
    for (const auto& info : *matrices) json.push_back(ToJson(info));
    PrintJson(context, {{"matrices", json}});
  } else {
    MatrixTable(*matrices).Print(context.out, context.width);
  }
  return kExitOk;
}

}  // namespace

void AddMatrixList(CLI::App& matrix, Context& context) {
  const auto prefix = std::make_shared<std::string>();
  CLI::App* command = matrix.add_subcommand("list", "List the matrices on the server, by id");
  command->add_option("PREFIX", *prefix, "Only names with this prefix")->type_name("");
  command->footer(
      "Examples:\n"
      "  gemmctl matrix list\n"
      "  gemmctl matrix list layers/ --json");
  command->callback(
      [&context, prefix] { context.run = [&context, prefix] { return Run(context, *prefix); }; });
}

}  // namespace gemmd::ctl
