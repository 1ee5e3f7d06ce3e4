// gemmctl bench: measures kernels on the server's device. gemm_bench does the same
// on this machine.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/bench_messages.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/render.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/run_benchmark.h"
#include "client/ctl/stop_on_signal.h"
#include "files/output_file.h"
#include "kernels/bench/options.h"
#include "kernels/bench/report/live_report.h"
#include "kernels/bench/report/report_files.h"
#include "kernels/bench/spec/shape.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

namespace bench = gemm::bench;

struct BenchCommand {
  std::string device;
  bench::BenchmarkOptions options;
};

// Shows the messages of the server.
class Receiver {
 public:
  Receiver(const Context& context, const bench::Outputs& outputs)
      : context_(context), report_(outputs, context.out, context.err, context.err_is_terminal) {}

  // After an error the benchmark should end.
  absl::Status Take(const client::BenchmarkResponse& response) {
    if (response.has_header()) return Begin(response.header());
    if (!begun_) return absl::InternalError("the benchmark began without its header");
    if (response.has_progress()) {
      const auto progress = FromProto(response.progress(), header_);
      if (!progress.ok()) return progress.status();
      report_.Update(*progress);
    } else if (response.has_rows()) {
      return AddRows(response.rows());
    }
    return absl::OkStatus();
  }

  bool begun() const { return begun_; }
  bench::LiveReport& report() { return report_; }

 private:
  absl::Status Begin(const ::gemm::v1::BenchmarkHeader& header) {
    header_ = header;
    bench::Metadata metadata = MetadataOf(header);
    metadata.emplace_back("gemmctl", ClientVersion());
    metadata.emplace_back("date",
                          absl::FormatTime("%Y-%m-%dT%H:%MZ", absl::Now(), absl::UTCTimeZone()));
    metadata.emplace_back("command", context_.command_line);
    absl::Status status = report_.Begin(std::move(metadata), header.vendor(),
                                        static_cast<size_t>(header.shapes_size()));
    begun_ = status.ok();
    return status;
  }

  absl::Status AddRows(const ::gemm::v1::BenchmarkRows& message) {
    auto rows = FromProto(message, header_);
    if (!rows.ok()) return rows.status();
    rows_.insert(rows_.end(), rows->begin(), rows->end());
    if (!message.complete() || rows_.empty()) return absl::OkStatus();
    report_.Add(rows_, static_cast<size_t>(message.shape_index()));
    rows_.clear();
    if (report_.unread()) return absl::CancelledError("nobody reads the output any more");
    return absl::OkStatus();
  }

  const Context& context_;
  bench::LiveReport report_;
  bool begun_ = false;
  ::gemm::v1::BenchmarkHeader header_;
  std::vector<bench::Row> rows_;  // of a shape that is not complete
};

absl::Status Measure(const Context& context, client::Client& client, const BenchCommand& command,
                     Receiver& receiver) {
  const auto end = RunBenchmark(
      context, client, command.options, command.device,
      [&](const client::BenchmarkResponse& response) { return receiver.Take(response); });
  if (!end.ok()) return end.status();
  if (end->concurrent_jobs() > 0) {
    receiver.report().AddMetadata("disturbed by", absl::StrCat(end->concurrent_jobs(), " jobs"));
    context.err << "gemmctl: " << end->concurrent_jobs()
                << " jobs ran on the device meanwhile and disturbed the measurements\n";
  }
  return absl::OkStatus();
}

// As tables; as `json`, which goes to `file` where there is one.
int ListSuites(const Context& context, bool json, const std::string& file) {
  if (!json && file.empty()) {
    bench::PrintSuites(context.out, context.width);
    return kExitOk;
  }
  Json suites = Json::array();
  for (const bench::Suite& suite : bench::Suites()) {
    Json shapes = Json::array();
    for (const bench::Shape& shape : suite.shapes) {
      shapes.push_back({{"m", shape.m}, {"n", shape.n}, {"k", shape.k}});
    }
    suites.push_back({{"name", suite.name}, {"summary", suite.summary}, {"shapes", shapes}});
  }
  const Json list = {{"suites", suites}};
  if (file.empty()) {
    PrintJson(context, list);
    return kExitOk;
  }
  const absl::Status written = files::WriteFile(file, JsonText(list));
  return written.ok() ? kExitOk : Fail(context, written);
}

int Run(const Context& terminal, BenchCommand& command) {
  bench::BenchmarkOptions& options = command.options;
  if (const std::string wrong = bench::ContradictionOf(options.outputs); !wrong.empty()) {
    return FailUsage(terminal, absl::StrCat("bench: ", wrong));
  }
  const bool json = terminal.global.json || options.outputs.json == files::kStandardOutput;
  if (options.outputs.json == files::kStandardOutput) options.outputs.json.clear();
  const Context context =
      Beside(terminal, {options.outputs.csv, options.outputs.json, options.outputs.plot});
  if (options.list_suites) return ListSuites(context, json, options.outputs.json);
  if (options.shapes.empty()) return FailUsage(context, "bench needs --suite or --shapes");
  if (json) options.outputs.tables = bench::Outputs::Tables::kNone;
  options.outputs.width = context.width;
  Receiver receiver(context, options.outputs);
  if (absl::Status opened = receiver.report().Open(); !opened.ok()) return Fail(context, opened);
  const auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  absl::Status status = Measure(context, **client, command, receiver);
  if (EndedBySignal(status)) {
    context.err << "gemmctl: ended early\n";
    receiver.report().AddMetadata("ended", "early, by a signal");
    status = absl::OkStatus();
  }
  if (receiver.begun()) {
    // Also for a run that ended early.
    status.Update(receiver.report().Finish());
    if (json) context.out << bench::ToJson(receiver.report().metadata(), receiver.report().rows());
  }
  if (status.ok()) status = bench::CheckMeasured(receiver.report().rows());
  if (!status.ok()) return Fail(context, status);
  if (const absl::Status right = bench::CheckRows(receiver.report().rows()); !right.ok()) {
    context.err << "gemmctl: verification failed: " << right.message() << '\n';
    return kExitWrongProduct;
  }
  return kExitOk;
}

}  // namespace

void AddBench(CLI::App& app, Context& context) {
  const auto command = std::make_shared<BenchCommand>();
  CLI::App* bench = app.add_subcommand("bench", "Measure kernels on a device of the server");
  bench::DeclareBenchmarkOptions(*bench, command->options);
  bench
      ->add_option("--device", command->device,
                   "A name from `gemmctl info`, such as cuda:0. Default: the first device")
      ->group("What to measure");
  // Hidden: a request says nothing of scales, and the figures would be those of plain products.
  bench
      ->add_option_function<std::string>(
          "--block-scales",
          [](const std::string&) {
            throw CLI::ValidationError("--block-scales",
                                       "a server measures products without block scales; "
                                       "gemm_bench, on the device's machine, measures them with");
          })
      ->group("");
  // Unlike the global flag of the same name, this one may name a file.
  bench
      ->add_option("--json", command->options.outputs.json,
                   "Print metadata, rows and means as JSON instead of tables, or write them to "
                   "FILE in addition")
      ->expected(0, 1)
      ->default_str(files::kStandardOutput)
      ->type_name("[FILE]")
      ->group("Output");
  bench->footer(
      "The program gemm_bench does the same on this machine without a server; its help explains "
      "the columns. A server runs one benchmark at a time. Its flag --benchmark-limit bounds the "
      "time, and is the default of --budget. Jobs of other clients go on and disturb the figures. "
      "With a wrong result the exit status is 3, with nothing measured 1. Ctrl-C ends the "
      "benchmark early; the rows so far are kept, and the exit status is theirs.\n"
      "\n"
      "Examples:\n"
      "  gemmctl bench --shape 512 --family host --types f32 --iterations 3\n"
      "  gemmctl bench --shape 4096 --family simt,mma --types f32,f16 --budget 60 --csv rows.csv\n"
      "  gemmctl bench --suite hgemm-27 --kernel 'hgemm_mma_*' --param swizzle=0,2048 --svg "
      "mma.svg\n"
      "  gemmctl bench --suite odd --device cuda:1 --json odd.json");
  bench->callback([&context, command] {
    context.run = [&context, command] { return Run(context, *command); };
  });
}

}  // namespace gemmd::ctl
