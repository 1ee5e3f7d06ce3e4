// gemmctl matrix put: uploads a matrix, or generates one on the server.
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/load/clock.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/progress_bar.h"
#include "client/ctl/output/render.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/parsing/operand_spec.h"
#include "client/ctl/parsing/parse.h"
#include "gemmd/client/npy.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

struct PutCommandOptions {
  OperandSpec source;
  client::PutOptions put;
  std::optional<client::DataType> npy_dtype;
};

absl::StatusOr<client::MatrixInfo> Upload(const Context& context, client::Client& client,
                                          const PutCommandOptions& options) {
  if (const auto* generated = std::get_if<client::Generated>(&options.source)) {
    return client.PutGenerated(
        *generated, options.put,
        Call(context, TransferDeadline(static_cast<double>(generated->shape.bytes()))));
  }
  const auto matrix = client::ReadNpy(std::get<NpyFile>(options.source).path, options.npy_dtype);
  if (!matrix.ok()) return matrix.status();
  SteadyClock clock;
  ProgressBar bar(context.err, context.err_is_terminal, "upload", [&] { return clock.Now(); });
  client::CallOptions call = Call(context, TransferDeadline(static_cast<double>(matrix->bytes())));
  call.progress = [&](uint64_t done, uint64_t total) { bar.Update(done, total); };
  return client.PutMatrix(matrix->view(), options.put, call);
}

int Run(const Context& context, const PutCommandOptions& options) {
  if (std::holds_alternative<client::Resident>(options.source)) {
    return FailUsage(context,
                     "matrix put: SOURCE is on the server already; give FILE.npy or random:...");
  }
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const absl::Time start = absl::Now();
  const auto info = Upload(context, **client, options);
  if (!info.ok()) return Fail(context, info.status());
  const absl::Duration elapsed = absl::Now() - start;
  if (context.global.json) {
    PrintJson(context,
              {{"matrix", ToJson(*info)}, {"elapsed_seconds", absl::ToDoubleSeconds(elapsed)}});
    return kExitOk;
  }
  Table summary = MatrixSummary(*info);
  summary.Add({"elapsed", DurationText(elapsed)});
  summary.Print(context.out, context.width);
  return kExitOk;
}

}  // namespace

void AddMatrixPut(CLI::App& matrix, Context& context) {
  const auto options = std::make_shared<PutCommandOptions>();
  CLI::App* command = matrix.add_subcommand("put", "Upload a matrix, or generate one there");
  AddParsed(*command, "SOURCE", options->source, ParseOperandSpec,
            "FILE.npy, or random:ROWSxCOLS:DTYPE[:SEED[:DISTRIBUTION[:LAYOUT]]]; by default "
            "uniform on [0, 1), or on [-128, 128) for s8")
      ->required()
      ->type_name("");
  AddParsed(*command, "--name", options->put.keep.name, ParseNewName,
            "1 to 128 of [A-Za-z0-9._/-], unique among your matrices. Default: the matrix has only "
            "an id")
      ->type_name("NAME");
  command->add_flag("--shared", options->put.keep.shared,
                    "Every caller may read the matrix; its name is one of the shared ones");
  command->add_flag("--replace", options->put.keep.replace,
                    "Take the name from the matrix that has it, once this one is complete");
  AddParsed(*command, "--if-version", options->put.keep.if_version, ParseVersion,
            "Replace only this version of it; 0: only where there is none")
      ->type_name("N")
      ->needs("--replace");
  AddParsed(
      *command, "--ttl", options->put.keep.ttl, ParseDuration,
      "Remove the matrix this long after its last use. Default: never with --name, else after "
      "the server's --unnamed-ttl")
      ->type_name("DURATION");
  command
      ->add_option("--device", options->put.device,
                   "Such as cuda:0 or host:0. Default: the device with the most room")
      ->type_name("DEVICE");
  AddParsed(*command, "--npy-dtype", options->npy_dtype, ParseDataTypeName,
            "The element type, where the .npy file does not say it: V1 (e4m3 and others; needed) "
            "or V2 (else bf16)")
      ->type_name("DTYPE");
  command->footer(
      "Examples:\n"
      "  gemmctl matrix put weights.npy --name weights --ttl 1h\n"
      "  gemmctl matrix put weights.npy --name weights --replace\n"
      "  gemmctl matrix put random:4096x4096:bf16:7:normal --name noise");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
