// gemmctl explain: which kernel the server takes for a product, and why.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "client/ctl/bench_messages.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/render.h"
#include "client/ctl/output/table.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/parsing/parse.h"
#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/selection.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

namespace bench = gemm::bench;
namespace v1 = ::gemm::v1;

struct ExplainOptions {
  int64_t m = 0, n = 0, k = 0;
  std::vector<bench::TypesPattern> types;
  bench::Layout layout;
  bool epilogue = false;
  bool block_scales = false;
  std::string device;
  std::string family;
  int top = 10;  // 0: all
};

// The contract's bound of ProductSize.
absl::StatusOr<int64_t> ParseExtent(absl::string_view text) {
  constexpr int64_t kMost = 16777216;
  const auto extent = ParseDimension(text);
  if (extent.ok() && *extent <= kMost) return extent;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a dimension of 1 to ", kMost));
}

// A launch parameter at its default may be the kernel's own choice.
std::string ParamsText(const v1::RankedKernel& kernel) {
  std::string text;
  for (const auto& [name, value] : kernel.params()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=",
                    value == gemm::kOwnChoice ? "own" : absl::StrCat(value));
  }
  return text;
}

std::string MeasuredText(const v1::RankedKernel& kernel) {
  if (!kernel.has_tuned_from()) return "";
  return DurationText(absl::Seconds(kernel.tuned_from().seconds()));
}

std::string EstimatedText(const v1::RankedKernel& kernel) {
  if (kernel.estimated_seconds() <= 0) return "";
  return DurationText(absl::Seconds(kernel.estimated_seconds()));
}

std::string MachineText(const v1::MachineInfo& machine) {
  std::string text = machine.device();
  if (machine.driver() != "-") absl::StrAppend(&text, ", driver ", machine.driver());
  if (machine.cuda() != "-") absl::StrAppend(&text, ", CUDA ", machine.cuda());
  return absl::StrCat(text, ", library ", machine.library());
}

void PrintTables(const Context& context, const ExplainOptions& options,
                 const v1::RankKernelsResponse& ranking) {
  const auto types = FromProto(ranking.types());
  Table summary = SummaryTable();
  summary.Add({"product", absl::StrCat(options.m, " x ", options.n, " x ", options.k, "  ",
                                       types.ok() ? bench::TypesName(*types) : "", "  ",
                                       bench::LayoutName(options.layout),
                                       options.epilogue ? "  with an epilogue" : "",
                                       options.block_scales ? "  with block scales" : "")});
  summary.Add({"device", absl::StrCat(ranking.device(), ", ", MachineText(ranking.machine()))});
  summary.Add({"auto takes", ranking.kernels(0).name()});
  summary.Add({"by", RuleText(ranking.rule())});
  summary.Add({"reason", ranking.kernels(0).reason()});
  summary.Print(context.out, context.width);
  context.out << '\n';
  Table table({{"", Align::kRight},
               {"KERNEL", Align::kLeft, Fit::kWrap},
               {"PARAMS", Align::kLeft, Fit::kWrap},
               {"MEASURED", Align::kRight},
               {"ESTIMATE", Align::kRight},
               {"SCRATCH", Align::kRight, Fit::kDrop},
               {"REASON", Align::kLeft, Fit::kWrap}});
  const int shown =
      options.top == 0 ? ranking.kernels_size() : std::min(options.top, ranking.kernels_size());
  for (int i = 0; i < shown; ++i) {
    const v1::RankedKernel& kernel = ranking.kernels(i);
    table.Add({absl::StrCat(i + 1), kernel.name(), ParamsText(kernel), MeasuredText(kernel),
               EstimatedText(kernel),
               kernel.workspace_bytes() == 0
                   ? ""
                   : BytesText(static_cast<double>(kernel.workspace_bytes())),
               kernel.reason()});
  }
  table.Print(context.out, context.width);
  if (shown < ranking.kernels_size()) {
    context.out << "and " << ranking.kernels_size() - shown << " more (--top 0 shows all)\n";
  }
}

Json RankedJson(const v1::RankedKernel& kernel) {
  Json params = Json::object();
  for (const auto& [name, value] : kernel.params()) params[name] = value;
  Json json = {{"name", kernel.name()},
               {"family", kernel.family()},
               {"params", params},
               {"workspace_bytes", kernel.workspace_bytes()},
               {"deterministic", kernel.deterministic()},
               {"reason", kernel.reason()}};
  if (kernel.estimated_seconds() > 0) json["estimated_seconds"] = kernel.estimated_seconds();
  if (kernel.has_tuned_from()) json["tuned_from"] = ToJson(kernel.tuned_from());
  return json;
}

Json RankingJson(const v1::RankKernelsResponse& ranking) {
  Json kernels = Json::array();
  for (const v1::RankedKernel& kernel : ranking.kernels()) kernels.push_back(RankedJson(kernel));
  const auto types = FromProto(ranking.types());
  return {{"device", ranking.device()},
          {"machine",
           {{"device", ranking.machine().device()},
            {"driver", ranking.machine().driver()},
            {"cuda", ranking.machine().cuda()},
            {"library", ranking.machine().library()}}},
          {"types", types.ok() ? bench::TypesName(*types) : ""},
          {"rule", RuleText(ranking.rule())},
          {"kernels", kernels}};
}

v1::RankKernelsRequest RequestOf(const ExplainOptions& options) {
  v1::RankKernelsRequest request;
  request.set_device(options.device);
  request.set_family(options.family);
  request.mutable_size()->set_m(options.m);
  request.mutable_size()->set_n(options.n);
  request.mutable_size()->set_k(options.k);
  Fill(options.types.front(), *request.mutable_types());
  request.mutable_layout()->set_transpose_a(options.layout.trans_a);
  request.mutable_layout()->set_transpose_b(options.layout.trans_b);
  request.set_epilogue(options.epilogue);
  request.set_block_scales(options.block_scales);
  return request;
}

int Run(const Context& context, ExplainOptions& options) {
  if (options.types.empty()) options.types = *bench::ParseTypesPatterns("f32");
  if (options.types.size() != 1 || !options.types.front().a.has_value()) {
    return FailUsage(context, "--types takes one combination here, with the type of A");
  }
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const auto ranking = (*client)->RankKernels(RequestOf(options), Call(context));
  if (!ranking.ok()) return Fail(context, ranking.status());
  if (ranking->kernels().empty()) {
    return Fail(context, absl::InternalError("the server ranked no kernels"));
  }
  if (context.global.json) {
    PrintJson(context, RankingJson(*ranking));
  } else {
    PrintTables(context, options, *ranking);
  }
  return kExitOk;
}

}  // namespace

void AddExplain(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain", "Show which kernel the server takes for a product, and how it ranks the others");
  AddParsed(*command, "-m", options->m, ParseExtent, "Rows of the result")
      ->type_name("M")
      ->required();
  AddParsed(*command, "-n", options->n, ParseExtent, "Columns of the result")
      ->type_name("N")
      ->required();
  AddParsed(*command, "-k", options->k, ParseExtent, "The inner dimension")
      ->type_name("K")
      ->required();
  AddParsed(*command, "--types", options->types, bench::ParseTypesPatterns,
            "A:B:D:COMPUTE, such as f16:f16:f16:f32; what is left out is as for a product. "
            "Default: f32")
      ->type_name("TYPES");
  AddParsed(*command, "--layout", options->layout, bench::ParseLayout,
            "How A and B are stored: nn, nt, tn, tt (t: transposed). Default: nn")
      ->type_name("LAYOUT");
  command->add_flag("--epilogue", options->epilogue,
                    "The product has a beta, a bias or an activation");
  command->add_flag("--block-scales", options->block_scales,
                    "The product has block scales of fp8 operands");
  command->add_option("--family", options->family, "Only this family")->type_name("NAME");
  command
      ->add_option("--device", options->device,
                   "A name from `gemmctl info`, such as cuda:0. Default: the first device")
      ->type_name("DEVICE");
  command->add_option("--top", options->top, "How many kernels are shown; 0: all")
      ->check(CLI::Range(0, 1000000).description(""))
      ->type_name("N")
      ->capture_default_str();
  command->footer(
      "The choice is by one of these rules. table exact: the server's tuning table "
      "(--tuning-tables, gemmctl tune) has this shape. table near: it has a shape near this one. "
      "estimate: it has neither, and the kernel with the least estimated time is taken. rank: no "
      "kernel has an estimate, and the first of the catalogue's ranking is taken. A column-major "
      "result is the row-major one with m and n, and A and B, in each other's place. --json prints "
      "all kernels.\n"
      "\n"
      "Examples:\n"
      "  gemmctl explain -m 4096 -n 4096 -k 512 --types f16\n"
      "  gemmctl explain -m 64 -n 1000 -k 4096 --types bf16:bf16:f32 --layout nt --epilogue\n"
      "  gemmctl explain -m 512 -n 512 -k 512 --family host --top 0");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
