// gemmctl matrix rm: removes matrices from the server.
#include <memory>
#include <vector>

#include "client/ctl/cli_options.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/operand_spec.h"
#include "client/ctl/render.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

// Continues after a failure, and reports it at the end.
int Run(const Context& context, const std::vector<client::Resident>& matrices) {
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  int exit_code = kExitOk;
  std::vector<client::MatrixInfo> removed;
  for (const client::Resident& matrix : matrices) {
    auto info = (*client)->DeleteMatrix(matrix, Call(context));
    if (info.ok()) {
      removed.push_back(*std::move(info));
    } else {
      exit_code = Fail(context, info.status());
    }
  }
  if (context.global.json) {
    Json json = Json::array();
    for (const auto& info : removed) json.push_back(ToJson(info));
    PrintJson(context, {{"removed", json}});
  } else if (!removed.empty()) {
    MatrixTable(removed).Print(context.out, context.width);
  }
  return exit_code;
}

}  // namespace

void AddMatrixRm(CLI::App& matrix, Context& context) {
  const auto matrices = std::make_shared<std::vector<client::Resident>>();
  CLI::App* command = matrix.add_subcommand("rm", "Remove matrices from the server");
  AddParsedList(*command, "MATRIX", *matrices, ParseResident, "@NAME or id:ID, one or several")
      ->required()
      ->type_name("")
      ->allow_extra_args(true);
  command->footer(
      "Jobs that are using a matrix can still finish when it is removed.\n"
      "\n"
      "Examples:\n"
      "  gemmctl matrix rm @weights @noise");
  command->callback([&context, matrices] {
    context.run = [&context, matrices] { return Run(context, *matrices); };
  });
}

}  // namespace gemmd::ctl
