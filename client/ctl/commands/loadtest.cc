// gemmctl loadtest: runs many products at once or at a rate, and times them.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/load/load_options.h"
#include "client/ctl/load/load_report.h"
#include "client/ctl/load/runner.h"
#include "client/ctl/load/workload.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/render.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/stop_on_signal.h"
#include "files/output_file.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

constexpr size_t kMaxStatisticsShards = 8;

// Fewer bytes of operands are made at once.
constexpr double kBytesWorthSaying = 256 << 20;

// A live line of less time than this would have no meaningful rate.
constexpr absl::Duration kShortestInterval = absl::Milliseconds(500);

LoadResult Measure(const Context& context, const LoadOptions& options,
                   const std::vector<std::unique_ptr<Caller>>& callers) {
  const RunPlan plan{.schedule = {.rate = options.rate,
                                  .warmup = options.warmup,
                                  .duration = options.duration,
                                  .requests = options.requests},
                     .max_delay = options.max_delay};
  SteadyClock clock;
  Statistics statistics(std::min(callers.size(), kMaxStatisticsShards));
  absl::Duration last_line;
  const auto live = [&](absl::Duration elapsed) {
    std::string line = absl::StrCat(absl::ToInt64Seconds(elapsed), " s  warming up");
    if (elapsed >= options.warmup + kShortestInterval) {
      line = LiveLine(elapsed, elapsed - std::max(last_line, options.warmup),
                      statistics.TakeInterval(), statistics.failed());
      last_line = elapsed;
    }
    // On a terminal the line is rewritten; in a file each second has its own line.
    if (context.err_is_terminal) {
      context.err << "\r\x1b[K" << line << std::flush;
    } else {
      context.err << line << std::endl;
    }
  };
  const StopOnSignal signals;
  LoadResult result;
  result.wall = RunLoad(plan, clock, callers, StopOnSignal::stopped(), statistics, live);
  if (context.err_is_terminal) context.err << "\r\x1b[K" << std::flush;
  result.tally = statistics.Sum();
  result.interrupted = StopOnSignal::stopped();
  return result;
}

int ExitCodeOf(const LoadResult& result) {
  if (result.tally.wrong > 0) return kExitWrongProduct;
  if (result.tally.failed > 0) return kExitFailed;
  return kExitOk;
}

int Run(const Context& terminal, LoadOptions& options) {
  const bool json_to_output = terminal.global.json || options.json == files::kStandardOutput;
  if (options.json == files::kStandardOutput) options.json.clear();
  const Context context = Beside(terminal, {options.json});
  ApplyDefaults(options);
  // Before the test, which may be long.
  std::optional<files::OutputFile> file;
  if (!options.json.empty()) {
    absl::StatusOr<files::OutputFile> opened = files::OutputFile::Open(options.json);
    if (!opened.ok()) return Fail(context, opened.status());
    file = *std::move(opened);
  }
  // One attempt each: the test shows what a request costs, and which requests fail.
  const auto client = Connect(context, {.attempts = 1});
  if (!client.ok()) return Fail(context, client.status());
  const auto patient = Connect(context);
  if (!patient.ok()) return Fail(context, patient.status());
  const auto workload = Workload::Prepare(**client, **patient, options, [&](double bytes) {
    if (bytes < kBytesWorthSaying) return;
    context.err << "gemmctl: makes operands of " << BytesText(bytes) << " on this machine\n";
  });
  if (!workload.ok()) return Fail(context, workload.status());
  const auto callers = (*workload)->MakeCallers();
  if (!callers.ok()) return Fail(context, callers.status());
  const absl::Status tried = (*workload)->Try(*callers->front());
  if (!tried.ok()) return Fail(context, tried);
  LoadResult result = Measure(context, options, *callers);
  result.products = options.products();

  Json configuration = ToJson(options);
  configuration["address"] = context.global.address;
  configuration["channels"] = context.global.channels;
  const Json json = {{"client_version", ClientVersion()},
                     {"server", ToJson((*client)->server())},
                     {"configuration", configuration},
                     {"result", ToJson(result)}};
  if (json_to_output) {
    PrintJson(context, json);
  } else {
    PrintLoadTable(context.out, result, context.width);
  }
  if (file.has_value()) {
    absl::Status written = file->Write(JsonText(json));
    if (written.ok()) written = file->Close();
    if (!written.ok()) return Fail(context, written);
  }
  if (result.tally.wrong > 0) {
    context.err << "gemmctl: verification failed: " << result.tally.first_wrong << '\n';
  }
  return ExitCodeOf(result);
}

}  // namespace

void AddLoadTest(CLI::App& app, Context& context) {
  const auto options = std::make_shared<LoadOptions>();
  CLI::App* command =
      app.add_subcommand("loadtest", "Run many products at once or at a rate, and time them");
  DeclareLoadOptions(*command, *options);
  // Unlike the global flag of the same name, this one may name a file.
  command
      ->add_option("--json", options->json,
                   "Print everything as JSON instead of tables, or write it to FILE in addition")
      ->expected(0, 1)
      ->default_str(files::kStandardOutput)
      ->type_name("[FILE]");
  command->footer(
      "Closed loop: --concurrency requests are always under way, so a slow server gets fewer.\n"
      "Open loop: --rate requests are due each second, as from independent users. Where a "
      "request has to wait, the wait is part of its latency.\n"
      "If any request fails, the exit status is 1; none is tried again. Ctrl-C ends the test early "
      "and prints its "
      "table.\n"
      "\n"
      "Examples:\n"
      "  gemmctl loadtest --concurrency 8 --shape 1024x1024x1024 --dtype f16 --duration 10s\n"
      "  gemmctl loadtest --rate 200 --shape 64x64x64=9 --shape 2048x2048x2048=1\n"
      "  gemmctl loadtest --source resident --result keep --shape 4096x4096x4096\n"
      "  gemmctl loadtest --requests 100 --kernel host_openblas --kernel host_reference "
      "--verify=0.1\n"
      "  gemmctl loadtest --batch 1000 --shape 64x64x64 --dtype f16 --source resident\n"
      "  gemmctl loadtest --group 64 --shape 4096x1024x2048 --dtype bf16 --source resident\n"
      "  gemmctl loadtest --rate 50 --duration 1m --json result.json");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
