// gemmctl kernels: the server's catalogue.
#include <memory>
#include <set>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/catalogue.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/render.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

struct KernelsOptions {
  std::string asked;
  std::string family;
  bool available = false;
};

absl::Status NothingNamed(const Kernels& kernels, const std::string& asked) {
  std::set<std::string> families;
  for (const auto& kernel : kernels) families.insert(kernel.family());
  return absl::NotFoundError(absl::StrCat("no kernel and no family of the server is named '", asked,
                                          "', nor does a kernel match it; its families are ",
                                          absl::StrJoin(families, ", ")));
}

int Run(const Context& context, const KernelsOptions& options) {
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  auto listed = (*client)->ListKernels(options.family, Call(context));
  if (!listed.ok()) return Fail(context, listed.status());
  Kernels kernels = KernelsNamed(*listed, options.asked);
  if (kernels.empty() && !options.asked.empty()) {
    return Fail(context, NothingNamed(*listed, options.asked));
  }
  if (options.available) {
    std::erase_if(kernels, [](const auto& kernel) { return kernel.devices().empty(); });
  }
  if (context.global.json) {
    Json json = Json::array();
    for (const auto& kernel : kernels) json.push_back(ToJson(kernel));
    PrintJson(context, {{"kernels", json}});
  } else if (kernels.empty()) {
    context.out << "No device of the server runs any of them.\n";
  } else if (options.asked.empty() && options.family.empty()) {
    PrintFamilies(context.out, kernels, context.width);
  } else if (kernels.size() == 1) {
    PrintKernel(context.out, kernels.front(), context.width);
  } else {
    PrintKernels(context.out, kernels, context.width);
  }
  return kExitOk;
}

}  // namespace

void AddKernels(CLI::App& app, Context& context) {
  const auto options = std::make_shared<KernelsOptions>();
  CLI::App* command = app.add_subcommand(
      "kernels", "Show the server's families of kernels, one family, or one kernel");
  command
      ->add_option("NAME", options->asked,
                   "A family, a kernel, or a pattern of kernel names with * and ?. Default: list "
                   "the families")
      ->type_name("");
  command->add_option("--family", options->family, "Only this family, such as host or cublaslt")
      ->type_name("FAMILY");
  command->add_flag("--available", options->available,
                    "Only kernels that a device of the server can run");
  command->footer(
      "The column TYPES has the form A[*B][>RESULT][/ARITHMETIC], with commas between "
      "alternatives: f16,bf16>f32 multiplies f16 or bf16 into f32.\n"
      "Tables fit the terminal; elsewhere they are COLUMNS wide, or as wide as they need. --json "
      "prints every kernel in full.\n"
      "\n"
      "Examples:\n"
      "  gemmctl kernels\n"
      "  gemmctl kernels host --available\n"
      "  gemmctl kernels host_openblas\n"
      "  gemmctl kernels 'hgemm_mma_*_stage3*'\n"
      "  gemmctl kernels --family host --json");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
