// gemmctl matrix: the matrices that stay on the server; and gemmctl matrix list.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/render.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

int Run(const Context& context, const client::ListOptions& list) {
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const auto matrices = (*client)->ListMatrices(list, Call(context));
  if (!matrices.ok()) return Fail(context, matrices.status());
  if (context.global.json) {
    Json json = Json::array();
    for (const auto& info : *matrices) json.push_back(ToJson(info));
    PrintJson(context, {{"matrices", json}});
  } else {
    MatrixTable(*matrices, /*owners=*/list.shared || list.every_owner)
        .Print(context.out, context.width);
  }
  return kExitOk;
}

}  // namespace

void AddMatrixList(CLI::App& matrix, Context& context) {
  const auto list = std::make_shared<client::ListOptions>();
  CLI::App* command = matrix.add_subcommand("list", "List your matrices on the server, by id");
  command->add_option("PREFIX", list->name_prefix, "Only names with this prefix")->type_name("");
  command->add_flag("--shared", list->shared, "The shared matrices, whoever owns them");
  command->add_flag("--every-owner", list->every_owner,
                    "Everybody's matrices; only for administrators");
  command->footer(
      "Examples:\n"
      "  gemmctl matrix list\n"
      "  gemmctl matrix list layers/ --json");
  command->callback(
      [&context, list] { context.run = [&context, list] { return Run(context, *list); }; });
}

void AddMatrix(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("matrix", "Put, get, list and remove matrices on the server");
  command->require_subcommand(0, 1);
  command->footer(
      "A matrix on the server is named @NAME, or id:ID.\n"
      "\n"
      "Examples:\n"
      "  gemmctl matrix put weights.npy --name weights\n"
      "  gemmctl multiply X.npy @weights -o Y.npy\n"
      "  gemmctl matrix rm @weights");
  AddMatrixPut(*command, context);
  AddMatrixGet(*command, context);
  AddMatrixList(*command, context);
  AddMatrixRm(*command, context);
}

}  // namespace gemmd::ctl
