// gemmctl matrix: the matrices that stay on the server.
#include "CLI/CLI.hpp"
#include "client/ctl/commands/commands.h"

namespace gemmd::ctl {

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
