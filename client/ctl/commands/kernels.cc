// gemmctl kernels: the server's catalogue.
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/render.h"
#include "client/ctl/table.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

struct KernelsOptions {
  std::string family;
  bool available = false;
};

// "f16->f32" for each combination, equal factors and arithmetic left unsaid.
std::string TypesText(const client::KernelInfo& kernel) {
  std::string text;
  for (const auto& row : kernel.types()) {
    std::string word(client::Name(row.a()));
    if (row.b() != row.a()) absl::StrAppend(&word, "*", client::Name(row.b()));
    if (row.output() != row.a()) absl::StrAppend(&word, ">", client::Name(row.output()));
    if (row.compute() == client::kComputeTF32 || row.compute() == client::kComputeF16) {
      absl::StrAppend(&word, "/", client::Name(row.compute()));
    }
    absl::StrAppend(&text, text.empty() ? "" : " ", word);
  }
  return text;
}

std::string DevicesText(const client::KernelInfo& kernel) {
  if (kernel.devices().empty()) return absl::StrCat("none: ", kernel.unavailable_reason());
  std::string text;
  for (const auto& device : kernel.devices()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", device);
  }
  return text;
}

std::string ParamsText(const client::KernelInfo& kernel) {
  std::string text;
  for (const auto& param : kernel.params()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", param.name(), "=", param.min(), "..",
                    param.max());
  }
  return text;
}

std::string TileText(const client::KernelInfo& kernel) {
  if (kernel.tile_m() == 0) return "";
  return absl::StrCat(kernel.tile_m(), "x", kernel.tile_n(), "x", kernel.tile_k());
}

int Run(const Context& context, const KernelsOptions& options) {
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  auto kernels = (*client)->ListKernels(options.family, Call(context));
  if (!kernels.ok()) return Fail(context, kernels.status());
  if (options.available) {
    std::erase_if(*kernels, [](const auto& kernel) { return kernel.devices().empty(); });
  }
  if (context.global.json) {
    Json json = Json::array();
    for (const auto& kernel : *kernels) json.push_back(ToJson(kernel));
    PrintJson(context, {{"kernels", json}});
    return kExitOk;
  }
  Table table({{"NAME"}, {"FAMILY"}, {"TYPES"}, {"TILE"}, {"PARAMS"}, {"DEVICES"}});
  for (const auto& kernel : *kernels) {
    table.Add({kernel.name(), kernel.family(), TypesText(kernel), TileText(kernel),
               ParamsText(kernel), DevicesText(kernel)});
  }
  table.Print(context.out);
  return kExitOk;
}

}  // namespace

void AddKernels(CLI::App& app, Context& context) {
  const auto options = std::make_shared<KernelsOptions>();
  CLI::App* command = app.add_subcommand("kernels", "List the server's kernels");
  command->add_option("--family", options->family, "Only this family, such as host or cublaslt")
      ->type_name("FAMILY");
  command->add_flag("--available", options->available,
                    "Only kernels that a device of the server runs");
  command->footer(
      "TYPES reads A[*B][>OUTPUT][/ARITHMETIC]: f16>f32 multiplies f16 into f32.\n"
      "\n"
      "Examples:\n"
      "  gemmctl kernels --available\n"
      "  gemmctl kernels --family host --json");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
