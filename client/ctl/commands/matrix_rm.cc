// gemmctl matrix rm: removes matrices from the server.
#include <memory>
#include <optional>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/render.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/parsing/operand_spec.h"
#include "client/ctl/parsing/parse.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

struct RmCommandOptions {
  std::vector<client::Resident> matrices;
  std::optional<uint64_t> if_version;
};

// Continues after a failure, and reports it at the end.
int Run(const Context& context, const RmCommandOptions& options) {
  if (options.if_version && options.matrices.size() > 1) {
    return FailUsage(context, "matrix rm: --if-version is of one matrix; give one MATRIX");
  }
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  int exit_code = kExitOk;
  std::vector<client::MatrixInfo> removed;
  for (client::Resident matrix : options.matrices) {
    matrix.version = options.if_version;
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
  const auto options = std::make_shared<RmCommandOptions>();
  CLI::App* command = matrix.add_subcommand("rm", "Remove matrices from the server");
  AddParsedList(*command, "MATRIX", options->matrices, ParseResident,
                "@NAME, shared:NAME or id:ID, one or several")
      ->required()
      ->type_name("")
      ->allow_extra_args(true);
  AddParsed(*command, "--if-version", options->if_version, ParseVersion,
            "Remove only this version, as `gemmctl matrix list` says it; of one MATRIX")
      ->type_name("N");
  command->footer(
      "Jobs that are using a matrix can still finish when it is removed.\n"
      "\n"
      "Examples:\n"
      "  gemmctl matrix rm @weights @noise");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
