#include "client/ctl/app.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/ctl/cli_options.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/context.h"
#include "client/ctl/parse.h"
#include "kernels/bench/report/text_layout.h"

namespace gemmd::ctl {
namespace {

constexpr const char* kFooter =
    "Environment:\n"
    "  GEMMCTL_ADDRESS, then GEMMD_ADDRESS  the server, if --address is not given\n"
    "\n"
    "Exit status:\n"
    "  0  success\n"
    "  1  an error of the server or of a file; stderr has the gRPC code and the message\n"
    "  2  the command line was wrong\n"
    "  3  a product failed its verification\n"
    "\n"
    "Examples:\n"
    "  gemmctl info\n"
    "  gemmctl multiply A.npy B.npy -o C.npy\n"
    "  gemmctl matrix put weights.npy --name weights\n"
    "  gemmctl bench --shape 1024 --family host --types f32\n"
    "  gemmctl loadtest --concurrency 8 --shape 512x512x512 --duration 10s\n"
    "Each subcommand has more: gemmctl multiply --help";

std::string DefaultAddress() {
  for (const char* name : {"GEMMCTL_ADDRESS", "GEMMD_ADDRESS"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    // A server may listen on several, with commas between them: the first will do.
    const std::string addresses = value;
    return addresses.substr(0, addresses.find(','));
  }
  return "127.0.0.1:50051";
}

void AddGlobalOptions(CLI::App& app, GlobalOptions& global) {
  global.address = DefaultAddress();
  app.add_option("--address", global.address,
                 "The server: host:port, unix:/path or dns:///name:port")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option("--channels", global.channels,
                 "Connections to the server; a large matrix is split over them")
      ->check(CLI::Range(1, 64))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--json", global.json, "Print JSON for programs instead of tables for people");
  AddParsed(app, "--deadline", global.deadline, ParseDuration,
            "The most time that each call may take, such as 500ms, 2m, or inf for no bound. "
            "Default: 30 s for a query; 2 minutes plus 1 s for each MiB for a transfer; 1 s more "
            "for each 100 MFLOP for a product")
      ->type_name("DURATION");
}

// The column at which a wrapped line of help continues: after the names of an
// option, else after the line's leading spaces.
size_t HangingIndent(const std::string& line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = begin > 0 ? line.find("  ", begin) : line.npos;
  const size_t text = gap == line.npos ? line.npos : line.find_first_not_of(' ', gap);
  return text == line.npos ? begin : text;
}

// Wraps to lines of at most `width` columns; 0: no wrapping.
std::string WrapHelp(const std::string& help, size_t width) {
  std::string wrapped;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(help, "\n"), '\n')) {
    const size_t indent = HangingIndent(std::string(line));
    const size_t room = width > 2 * indent ? width - indent : 0;
    std::string before(line.substr(0, indent));
    for (const std::string& piece : gemm::bench::WrapText(line.substr(indent), room)) {
      absl::StrAppend(&wrapped, before, piece, "\n");
      before.assign(indent, ' ');
    }
  }
  return help.empty() ? help : wrapped;
}

// The error for a subcommand that needs a subcommand of its own.
std::string SubcommandWanted(const CLI::App& app) {
  const CLI::App* innermost = &app;
  while (!innermost->get_subcommands().empty()) innermost = innermost->get_subcommands().front();
  std::string names;
  for (const CLI::App* subcommand : innermost->get_subcommands(nullptr)) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", subcommand->get_name());
  }
  return absl::StrCat(innermost->get_name(), " needs a subcommand: ", names, "; --help says more");
}

}  // namespace

int RunGemmctl(int argc, const char* const* argv, const Screen& screen) {
  CLI::App app("gemmctl: matrix products on a gemmd server, from the command line", "gemmctl");
  Context context{.global = {},
                  .out = screen.out,
                  .err = screen.err,
                  .err_is_terminal = screen.err_is_terminal,
                  .width = screen.width};
  context.command_line = "gemmctl";
  for (int i = 1; i < argc; ++i) absl::StrAppend(&context.command_line, " ", argv[i]);
  // Global options may stand before or after the subcommand.
  app.fallthrough();
  // Zero is allowed, so that an unknown word gets a better error than 'a subcommand
  // is required'.
  app.require_subcommand(0, 1);
  app.footer(kFooter);
  app.get_formatter()->column_width(34);
  AddGlobalOptions(app, context.global);
  AddMultiply(app, context);
  AddMatrix(app, context);
  AddKernels(app, context);
  AddInfo(app, context);
  AddBench(app, context);
  AddLoadTest(app, context);
  AddVersion(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Also how --help ends: with code 0, and its text on `out`.
    std::ostringstream help;
    const int code = app.exit(error, help, screen.err);
    screen.out << WrapHelp(help.str(), screen.width);
    return code == 0 ? kExitOk : kExitUsage;
  }
  if (!context.run) return FailUsage(context, SubcommandWanted(app));
  return context.run();
}

}  // namespace gemmd::ctl
