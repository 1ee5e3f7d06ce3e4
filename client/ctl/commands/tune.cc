// gemmctl tune: measures kernels on the server and writes a tuning table.
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/table.h"
#include "client/ctl/stop_on_signal.h"
#include "client/ctl/tune/session.h"
#include "client/ctl/tune/targets.h"
#include "client/ctl/tune/tune_options.h"
#include "files/output_file.h"
#include "files/text_file.h"
#include "kernels/bench/spec/selection.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

void PrintLoad(const Context& context, const client::ReloadTuningResponse& read) {
  Table summary = SummaryTable();
  summary.Add({"entries", absl::StrCat(read.entries())});
  summary.Add({"used here", absl::StrCat(read.used())});
  if (read.other_versions() > 0) {
    summary.Add({"of other versions", absl::StrCat(read.other_versions())});
  }
  if (read.skipped() > 0) {
    const bool all = read.skipped() == read.skipped_kernels_size();
    summary.Add(
        {"skipped", absl::StrCat(read.skipped(), " kernels that the server cannot run: ",
                                 absl::StrJoin(read.skipped_kernels(), ", "), all ? "" : ", ...")});
  }
  summary.Print(context.out, context.width);
}

// Has the server take up tuning tables that were written since it read them, and prints what it has
// of them then. The exit status of the program.
int ApplyTables(const Context& context) {
  const auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const auto read = (*client)->ReloadTuning(Call(context));
  if (!read.ok()) return Fail(context, read.status());
  if (context.global.json) {
    const auto& skipped = read->skipped_kernels();
    PrintJson(context,
              {{"entries", read->entries()},
               {"used", read->used()},
               {"other_versions", read->other_versions()},
               {"skipped", read->skipped()},
               {"skipped_kernels", std::vector<std::string>(skipped.begin(), skipped.end())}});
  } else {
    PrintLoad(context, *read);
  }
  return kExitOk;
}

namespace bench = gemm::bench;

// The table that the file has; an empty one where there is no file, or where the path is written
// through, as standard output, a device and a FIFO are.
absl::StatusOr<gemm::TuningTable> ReadTable(const std::string& path) {
  if (files::IsStandardOutput(path) || !files::IsRegularFile(path)) return gemm::TuningTable();
  const auto text = files::ReadText(path, gemm::kMaxTuningBytes);
  if (!text.ok()) return text.status();
  return gemm::ParseTuningTable(*text, path);
}

// The server's answer is parsed as a table before it is written as one.
absl::Status WriteTable(files::OutputFile& file, const gemm::TuningTable& table) {
  const std::string text = gemm::FormatTuningTable(table);
  if (const auto read = gemm::ParseTuningTable(text, "what the server sent"); !read.ok()) {
    return absl::InternalError(std::string(read.status().message()));
  }
  const absl::Status written = file.Write(text);
  return written.ok() ? file.Close() : written;
}

std::string LayoutText(const gemm::TunedProduct& product) {
  return std::string(bench::LayoutName({product.trans_a, product.trans_b}));
}

std::string ShapeText(const gemm::TunedProduct& product) {
  return bench::ShapeName({product.m, product.n, product.k});
}

std::string ParamsText(const gemm::TunedChoice& choice) {
  return absl::StrJoin(choice.params, " ", absl::PairFormatter("="));
}

void PrintEntries(const Context& context, const gemm::TuningTable& table) {
  Table out({{"SHAPE"},
             {"TYPES"},
             {"LAYOUT"},
             {"TIME", Align::kRight},
             {"TFLOPS", Align::kRight, Fit::kDrop},
             {"KERNEL", Align::kLeft, Fit::kWrap},
             {"PARAMS", Align::kLeft, Fit::kWrap}});
  for (const auto& [machine, products] : table.entries()) {
    for (const auto& [product, choice] : products) {
      const double flops = bench::Flops({product.m, product.n, product.k});
      out.Add({ShapeText(product), bench::TypesName(product.types()), LayoutText(product),
               DurationText(absl::Seconds(choice.seconds)),
               NumberText(flops / choice.seconds / 1e12), choice.kernel, ParamsText(choice)});
    }
  }
  out.Print(context.out, context.width);
}

Json EntriesJson(const gemm::TuningTable& table) {
  Json entries = Json::array();
  for (const auto& [machine, products] : table.entries()) {
    for (const auto& [product, choice] : products) {
      entries.push_back({{"device", machine.device},
                         {"driver", machine.driver},
                         {"cuda", machine.cuda},
                         {"library", machine.library},
                         {"types", bench::TypesName(product.types())},
                         {"layout", LayoutText(product)},
                         {"epilogue", gemm::Name(product.epilogue)},
                         {"m", product.m},
                         {"n", product.n},
                         {"k", product.k},
                         {"seconds", choice.seconds},
                         {"kernel", choice.kernel},
                         {"params", choice.params}});
    }
  }
  return entries;
}

// What the measurements are worth, on stderr.
void Remark(const Context& context, const TuningSession& session) {
  if (session.concurrent_jobs() > 0) {
    context.err << "gemmctl: " << session.concurrent_jobs()
                << " jobs ran on the device meanwhile and disturbed the measurements\n";
  }
  if (!session.unmeasured().empty()) {
    context.err << "gemmctl: not measured within the server's time and memory, so not in the "
                   "table: "
                << absl::StrJoin(session.unmeasured(), ", ") << '\n';
  }
  if (!session.wrong().empty()) {
    context.err << "gemmctl: verification failed, so they are not in the table: "
                << absl::StrJoin(session.wrong(), ", ") << '\n';
  }
}

// What to measure; with --traffic as the server says, and then the selection has its types.
absl::StatusOr<std::vector<TuneTarget>> ChooseTargets(const Context& context,
                                                      client::Client& client,
                                                      TuneOptions& options) {
  if (!options.traffic) return TargetsOf(options);
  const auto traffic = client.ListTraffic(options.limit, Call(context));
  if (!traffic.ok()) return traffic.status();
  auto targets = TargetsOf(*traffic);
  if (targets.ok()) options.selection.types = TypesOf(*targets);
  return targets;
}

int Run(const Context& terminal, TuneOptions& options) {
  const Context context = Beside(terminal, {options.output});
  if (options.apply) return ApplyTables(context);
  if (options.output.empty()) return FailUsage(context, "tune needs --output, or --apply");
  if (options.shapes.empty() && !options.traffic) {
    return FailUsage(context, "tune needs --shapes, --shapes-file, --suite or --traffic");
  }
  if (options.selection.types.empty()) {
    options.selection.types = *bench::ParseTypesPatterns("f32:f32:f32:f32");
  }
  absl::StatusOr<gemm::TuningTable> table = ReadTable(options.output);
  if (!table.ok()) return Fail(context, table.status());
  // Before anything is measured: a path that cannot be written costs no time then.
  absl::StatusOr<files::OutputFile> output = files::OutputFile::Open(options.output);
  if (!output.ok()) return Fail(context, output.status());
  const auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const auto targets = ChooseTargets(context, **client, options);
  if (!targets.ok()) return Fail(context, targets.status());
  if (targets->empty()) {
    context.err << "gemmctl: nothing to tune: the server knows of no product without an entry of "
                   "its own in the tuning tables\n";
  }
  TuningSession session(context, **client, options, *targets);
  absl::Status status = targets->empty() ? absl::OkStatus() : session.Run();
  if (EndedBySignal(status) && session.table().size() > 0) {
    context.err << "gemmctl: ended early\n";
    status = absl::OkStatus();
  }
  // Also what a run that ended early has measured.
  if (session.table().size() > 0) {
    status.Update(table->Merge(session.table()));
    status.Update(WriteTable(*output, *table));
  }
  if (context.global.json) {
    PrintJson(context, {{"table", options.output}, {"entries", EntriesJson(session.table())}});
  } else if (session.table().size() > 0) {
    PrintEntries(context, session.table());
    context.out << '\n';
    Table summary = SummaryTable();
    summary.Add({"table", options.output});
    summary.Add({"entries", absl::StrCat(table->size(), ", ", session.table().size(),
                                         " of them from this run")});
    summary.Print(context.out, context.width);
  }
  Remark(context, session);
  if (!status.ok()) return Fail(context, status);
  if (session.wrong().empty() && session.table().size() == 0 && !targets->empty()) {
    return Fail(context, absl::ResourceExhaustedError(
                             absl::StrCat("nothing was measured, so ", options.output,
                                          " stays as it was: choose smaller shapes")));
  }
  return session.wrong().empty() ? kExitOk : kExitWrongProduct;
}

}  // namespace

void AddTune(CLI::App& app, Context& context) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand(
      "tune", "Measure which kernel is the fastest for each shape, and write a tuning table");
  DeclareTuneOptions(*command, *options);
  command->footer(
      "A server that is started with --tuning-tables=FILE takes the table's kernel for a product "
      "of a shape that it has, or of one near it, where the caller leaves the choice open. gemmctl "
      "explain shows what it takes. The table is text: a line for each product, under the device, "
      "driver and library that it was measured with. A server that runs already takes up what its "
      "files say now with --apply. With --traffic it names the products to measure: those that its "
      "tables have no entry for, and that took the most time since it read them.\n"
      "On each shape all kernels that are deterministic and take the types run in turns, on "
      "operands that are generated on the device, and every result is checked. Launch parameters "
      "of up to 16 values, such as the algorithm of cuBLASLt, are tried with each value. Products "
      "are measured without beta, bias or activation. A server runs one benchmark at a time, and "
      "jobs of other clients disturb it. Ctrl-C ends early and keeps the shapes that are "
      "complete. With a wrong result the exit status is 3.\n"
      "\n"
      "Examples:\n"
      "  gemmctl tune --shapes 512,1024x64x4096 -o host.tune\n"
      "  gemmctl tune --suite hgemm-125 --types f16:f16:f16:f32 --layouts nn,nt -o h200.tune\n"
      "  gemmctl tune --shapes-file model.txt --types bf16 --family cublaslt,mma -o model.tune\n"
      "  gemmctl tune --traffic --limit 20 -o own.tune\n"
      "  gemmctl tune --apply");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
