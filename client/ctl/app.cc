#include "client/ctl/app.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/context.h"
#include "client/ctl/parsing/cli_options.h"
#include "client/ctl/parsing/parse.h"
#include "client/ctl/servers/server_choice.h"
#include "gemm/quote.h"
#include "kernels/bench/report/text_layout.h"

namespace gemmd::ctl {
namespace {

constexpr const char* kFooter =
    "Environment:\n"
    "  GEMMCTL_ADDRESS, then GEMMD_ADDRESS  the server, if --address is not given\n"
    "  GEMMCTL_CA, GEMMCTL_CERT, GEMMCTL_KEY, GEMMCTL_SERVER_NAME, GEMMCTL_TOKEN_FILE,\n"
    "  GEMMCTL_CONTEXT  as the options of these names\n"
    "  GEMMCTL_TOKEN  the token itself, if no file is given\n"
    "  GEMMCTL_CONFIG  the configuration file; else gemmctl/config.toml in XDG_CONFIG_HOME or\n"
    "  ~/.config\n"
    "\n"
    "Configuration file, in TOML: where neither --address nor the environment names a server,\n"
    "or where --context or GEMMCTL_CONTEXT does:\n"
    "  current-context = \"lab\"\n"
    "  [lab]\n"
    "  address = \"gpu1.example:50051\"\n"
    "  ca = \"/etc/gemmd/ca.pem\"\n"
    "  token-file = \"lab.token\"    (a path begins in the file's folder)\n"
    "\n"
    "Exit status:\n"
    "  0  success\n"
    "  1  an error of the server or of a file; stderr has the gRPC code and the message\n"
    "  2  the command line was wrong\n"
    "  3  a product failed its verification\n"
    "  4  a load test did not hold --slo, or --compare found it slower\n"
    "\n"
    "Examples:\n"
    "  gemmctl info\n"
    "  gemmctl multiply A.npy B.npy -o C.npy\n"
    "  gemmctl matrix put weights.npy --name weights\n"
    "  gemmctl bench --shape 1024 --family host --types f32\n"
    "  gemmctl loadtest --concurrency 8 --shape 512x512x512 --duration 10s\n"
    "Each subcommand has more: gemmctl multiply --help";

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// How the server is reached. ChooseServer completes what the options leave open.
void AddServerOptions(CLI::App& app, GlobalOptions& global) {
  struct Row {
    const char* option;
    std::string* target;
    const char* type;
    const char* help;
  };
  ServerSettings& server = global.server;
  for (const Row& row :
       {Row{"--context", &global.context, "NAME",
            "The server of this name in the configuration file, with its credentials; variables "
            "of the environment for a server or for credentials are ignored"},
        Row{"--ca", &server.ca, "PATH", "TLS: the CA that signed the server's certificate, in PEM"},
        Row{"--cert", &server.cert, "PATH", "TLS: the certificate to show, in PEM"},
        Row{"--key", &server.key, "PATH", "TLS: its private key, in PEM"},
        Row{"--server-name", &server.server_name, "NAME",
            "TLS: the name in the server's certificate, where it is not the address's"},
        Row{"--token-file", &server.token_file, "PATH", "A file with the token to show"}}) {
    app.add_option(row.option, *row.target, row.help)->type_name(row.type);
  }
  app.add_flag("--tls", server.tls, "TLS with the system's CAs, where --ca is not given");
  app.add_flag("--token-without-tls", server.token_without_tls,
               "Send the token without TLS, also to other machines");
}

void AddGlobalOptions(CLI::App& app, GlobalOptions& global) {
  if (const std::string address = AddressFromEnvironment(&Variable); !address.empty()) {
    global.address = address;
  }
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
  AddServerOptions(app, global);
  AddParsed(app, "--deadline", global.deadline, ParseDuration,
            "The most time that each call may take, such as 500ms, 2m, or inf for no bound. "
            "Default: 30 s for a query; 2 minutes plus 1 s for each MiB for a transfer; 1 s more "
            "for each 100 MFLOP for a product")
      ->type_name("DURATION");
}

// The name of the first option, here or of a subcommand that is called, that is given with an empty
// value, as of a script's variable that was never set; "" where there is none.
std::string EmptyOption(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_positional()) continue;
    const std::vector<std::string>& words = option->results();
    if (std::find(words.begin(), words.end(), "") != words.end()) return option->get_name();
  }
  for (const CLI::App* command : app.get_subcommands()) {
    if (std::string name = EmptyOption(*command); !name.empty()) return name;
  }
  return "";
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

// The subcommand that was named, of a subcommand where that has some.
const CLI::App& Innermost(const CLI::App& app) {
  const CLI::App* innermost = &app;
  while (!innermost->get_subcommands().empty()) innermost = innermost->get_subcommands().front();
  return *innermost;
}

// The error for a subcommand that needs a subcommand of its own.
std::string SubcommandWanted(const CLI::App& app) {
  const CLI::App& innermost = Innermost(app);
  std::string names;
  for (const CLI::App* subcommand : innermost.get_subcommands(nullptr)) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", subcommand->get_name());
  }
  return absl::StrCat(innermost.get_name(), " needs a subcommand: ", names, "; --help says more");
}

// The first of the words of the command line that is one of these.
std::string FirstOf(const std::vector<std::string>& words, int argc, const char* const* argv) {
  const char* const* const first = std::find_if(argv + 1, argv + argc, [&](const char* typed) {
    return std::find(words.begin(), words.end(), typed) != words.end();
  });
  return first == argv + argc ? std::string() : *first;
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
  app.set_version_flag("--version", absl::StrCat("gemmctl ", ClientVersion()),
                       "Print the version of gemmctl and exit");
  AddGlobalOptions(app, context.global);
  AddMultiply(app, context);
  AddMatrix(app, context);
  AddKernels(app, context);
  AddInfo(app, context);
  AddBench(app, context);
  AddExplain(app, context);
  AddTune(app, context);
  AddLoadTest(app, context);
  AddToken(app, context);
  AddVersion(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError& error) {
    const std::string word = gemm::Quoted(FirstOf(app.remaining(true), argc, argv));
    if (Innermost(app).get_subcommands(nullptr).empty()) {
      return FailUsage(context, absl::StrCat(word, " was not expected; --help says more"));
    }
    return FailUsage(context, absl::StrCat("there is no ", word, ": ", SubcommandWanted(app)));
  } catch (const CLI::ParseError& error) {
    // Also how --help ends: with code 0, and its text on `out`.
    std::ostringstream help;
    const int code = app.exit(error, help, screen.err);
    screen.out << WrapHelp(help.str(), screen.width);
    return code == 0 ? kExitOk : kExitUsage;
  }
  if (const std::string empty = EmptyOption(app); !empty.empty()) {
    return FailUsage(context,
                     absl::StrCat(empty, " is given without a value: leave it out, or give one"));
  }
  if (!context.run) return FailUsage(context, SubcommandWanted(app));
  context.server_choice = ChooseServer(app.count("--address") > 0, &Variable, context.global);
  const bool needs_a_server = !app.got_subcommand("token") && !app.got_subcommand("version");
  if (needs_a_server && !context.server_choice.ok()) {
    return FailUsage(context, std::string(context.server_choice.message()));
  }
  return context.run();
}

}  // namespace gemmd::ctl
