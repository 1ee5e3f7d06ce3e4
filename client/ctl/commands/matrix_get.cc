// gemmctl matrix get: downloads a matrix into a .npy file.
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/load/clock.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/progress_bar.h"
#include "client/ctl/output/render.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/parsing/operand_spec.h"
#include "gemmd/client/npy.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

struct GetCommandOptions {
  client::Resident matrix;
  std::string output;
};

int Run(const Context& terminal, const GetCommandOptions& options) {
  const Context context = Beside(terminal, {options.output});
  // Before the download, which may be long.
  auto output = client::NpyOutput::Open(options.output);
  if (!output.ok()) return Fail(context, output.status());
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const absl::Time start = absl::Now();
  SteadyClock clock;
  ProgressBar bar(context.err, context.err_is_terminal, "download", [&] { return clock.Now(); });
  const auto known = (*client)->StatMatrix(options.matrix, Call(context));
  if (!known.ok()) return Fail(context, known.status());
  client::CallOptions call = Call(context, TransferDeadline(static_cast<double>(known->bytes())));
  call.progress = [&](uint64_t done, uint64_t total) { bar.Update(done, total); };
  // By the given name again, which another matrix may have by now.
  const auto fetched = (*client)->GetMatrix(options.matrix, {}, call);
  if (!fetched.ok()) return Fail(context, fetched.status());
  const absl::Duration elapsed = absl::Now() - start;
  const absl::Status written = output->Write(fetched->matrix.view());
  if (!written.ok()) return Fail(context, written);
  if (context.global.json) {
    PrintJson(context, {{"matrix", ToJson(fetched->info)},
                        {"output", options.output},
                        {"elapsed_seconds", absl::ToDoubleSeconds(elapsed)}});
    return kExitOk;
  }
  Table summary = MatrixSummary(fetched->info);
  summary.Add({"output", options.output});
  summary.Add({"elapsed", DurationText(elapsed)});
  summary.Print(context.out, context.width);
  return kExitOk;
}

}  // namespace

void AddMatrixGet(CLI::App& matrix, Context& context) {
  const auto options = std::make_shared<GetCommandOptions>();
  CLI::App* command = matrix.add_subcommand("get", "Download a matrix into a .npy file");
  AddParsed(*command, "MATRIX", options->matrix, ParseResident,
            "@NAME, shared:[OWNER:]NAME or id:ID")
      ->required()
      ->type_name("");
  command->add_option("-o,--output", options->output, "The file to write")
      ->required()
      ->check(CheckMatrixFile)
      ->type_name("FILE.npy");
  command->footer(
      "Examples:\n"
      "  gemmctl matrix get @weights -o weights.npy");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
