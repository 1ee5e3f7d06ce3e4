#include "server/flags/flags.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "files/size_text.h"
#include "files/text_file.h"
#include "gemm/edit_distance.h"
#include "server/flags/flag_table.h"
#include "server/flags/flag_values.h"
#include "server/process/version.h"

namespace gemmd {
namespace {

constexpr char kFlagFile[] = "flagfile";
constexpr size_t kMaxFlagFileBytes = size_t{1} << 20;

constexpr char kFooter[] = R"(
Every flag can also be set in the environment (--max-jobs as GEMMD_MAX_JOBS) and
in a flag file, with lines such as 'max-jobs=100' and comment lines after #. The
command line takes precedence over the environment, and the environment over the
file. A wrong value ends the process with exit code 2.

Examples:
  gemmd                              serve on 127.0.0.1:50051, metrics on :9464
  gemmd --devices=host:2             two host devices, no GPU needed
  gemmd --devices=cuda:0,1 --store-bytes=40GiB
  gemmd --address=unix:/run/gemmd.sock --metrics-address=
  gemmd --flagfile=/etc/gemmd.flags --log-format=json
)";

std::string EnvironmentName(const FlagRow& row) {
  return absl::StrCat("GEMMD_", absl::AsciiStrToUpper(absl::StrReplaceAll(row.name, {{"-", "_"}})));
}

const FlagRow* FindRow(absl::string_view name) {
  for (const FlagRow& row : FlagTable()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// "unknown flag --devics; did you mean --devices?" A third of the letters may be wrong.
std::string UnknownFlag(absl::string_view name) {
  const auto& table = FlagTable();
  const auto nearest =
      std::min_element(table.begin(), table.end(), [name](const FlagRow& x, const FlagRow& y) {
        return gemm::EditDistance(name, x.name) < gemm::EditDistance(name, y.name);
      });
  if (gemm::EditDistance(name, nearest->name) > std::max<size_t>(1, name.size() / 3)) {
    return absl::StrCat("unknown flag --", name, "; gemmd --help lists them");
  }
  return absl::StrCat("unknown flag --", name, "; did you mean --", nearest->name,
                      "? gemmd --help lists them");
}

absl::Status Set(const FlagRow& row, absl::string_view text, absl::string_view origin,
                 Flags& flags) {
  const absl::Status status = row.set(text, flags);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", status.message()));
}

// `origin` says how the path was given.
absl::Status ReadFlagFile(absl::string_view origin, const std::string& path, Flags& flags) {
  const absl::StatusOr<std::string> all = files::ReadText(path, kMaxFlagFileBytes);
  if (!all.ok()) {
    absl::string_view why = all.status().message();
    absl::ConsumePrefix(&why, absl::StrCat(path, ": "));
    absl::ConsumePrefix(&why, "cannot be read: ");
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": '", path, "': ", why, "; allowed: a file that can be read"));
  }
  int number = 0;
  for (absl::string_view text : absl::StrSplit(*all, '\n')) {
    ++number;
    text = absl::StripAsciiWhitespace(text);
    if (text.empty() || text[0] == '#') continue;
    const std::string where = absl::StrCat(path, " line ", number);
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": '", text, "'; allowed: name=value, or a comment after #"));
    }
    absl::string_view name = absl::StripAsciiWhitespace(text.substr(0, equals));
    absl::ConsumePrefix(&name, "--");
    const FlagRow* const row = FindRow(name);
    if (row == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", UnknownFlag(name)));
    }
    const absl::string_view value = absl::StripAsciiWhitespace(text.substr(equals + 1));
    const absl::Status status = Set(*row, value, absl::StrCat(where, ": --", row->name), flags);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadEnvironment(const Environment& environment, Flags& flags) {
  for (const FlagRow& row : FlagTable()) {
    const std::string name = EnvironmentName(row);
    const char* const value = environment(name.c_str());
    if (value == nullptr) continue;
    const absl::Status status = Set(row, value, absl::StrCat(name, " (--", row.name, ")"), flags);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Lines of at most kHelpColumns, which CLI11 indents: 80 together.
constexpr size_t kHelpIndent = 28;
constexpr size_t kHelpColumns = 80 - kHelpIndent;
std::string Wrap(absl::string_view text) {
  std::string wrapped;
  size_t column = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    const bool first = wrapped.empty();
    const bool fits = column + 1 + word.size() <= kHelpColumns;
    if (!first) wrapped += fits ? ' ' : '\n';
    column = first || !fits ? word.size() : column + 1 + word.size();
    wrapped.append(word.data(), word.size());
  }
  return wrapped;
}

// Checks that concern more than one flag.
absl::Status CheckTogether(const Flags& flags) {
  const size_t block = flags.server.engine.staging_block_bytes;
  const size_t message = flags.server.rpc.max_message_bytes;
  if (block > message - kKiB) {
    return absl::InvalidArgumentError(
        absl::StrCat("--staging-block-bytes: ", files::FormatSize(block),
                     "; allowed: at least 1KiB less than --max-message-bytes, ",
                     files::FormatSize(message), ", since a block becomes a message"));
  }
  return absl::OkStatus();
}

// The command line as written, by flag.
struct CommandLine {
  CLI::App app{
      "gemmd: a server that multiplies matrices over gRPC.\n"
      "The calls are documented in proto/gemm/v1/gemm.proto; gemmctl is a client."};
  std::map<const FlagRow*, std::string> values;
  std::map<const FlagRow*, CLI::Option*> options;
  std::string flagfile;
  CLI::Option* flagfile_option = nullptr;
  bool version = false;

  CommandLine() {
    app.name("gemmd");
    app.set_help_flag("-h,--help", "Print this and exit.");
    app.add_flag("--version", version, "Print the version and exit.");
    flagfile_option = app.add_option(absl::StrCat("--", kFlagFile), flagfile,
                                     "A file of flags, one per line (GEMMD_FLAGFILE).");
    flagfile_option->type_name("PATH")->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    const Flags defaults;
    for (const FlagRow& row : FlagTable()) {
      const std::string value = row.get(defaults);
      options[&row] =
          app.add_option(absl::StrCat("--", row.name), values[&row], Wrap(row.help))
              ->type_name(absl::StrCat(row.kind, " [", value.empty() ? "none" : value, "]"))
              ->group(row.group)
              ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    app.get_formatter()->column_width(kHelpIndent);
    app.footer(kFooter);
  }
};

FlagOutcome UsageError(absl::string_view sentence) {
  return {.output = absl::StrCat("gemmd: ", sentence, "\n"), .exit_code = kExitUsage};
}

// The first argument that CLI11 did not know; there is one.
std::string DescribeExtra(const CLI::App& app) {
  const std::string extra = app.remaining().front();
  absl::string_view name = extra;
  if (!absl::ConsumePrefix(&name, "--")) {
    return absl::StrCat("'", extra, "' is not a flag; flags are written --name=value");
  }
  return UnknownFlag(name.substr(0, name.find('=')));
}

// The arguments in reverse order, as CLI11 wants them. "--name=" becomes two, or
// CLI11 would take the next argument for the value.
std::vector<std::string> InOrderOfCli11(const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed;
  for (auto it = arguments.rbegin(); it != arguments.rend(); ++it) {
    absl::string_view argument = *it;
    if (absl::StartsWith(argument, "--") && absl::ConsumeSuffix(&argument, "=")) {
      reversed.push_back("");
    }
    reversed.push_back(std::string(argument));
  }
  return reversed;
}

absl::Status ReadCommandLine(const CommandLine& line, const Environment& environment,
                             Flags& flags) {
  const char* const file_from_environment = environment("GEMMD_FLAGFILE");
  absl::Status status;
  if (line.flagfile_option->count() > 0) {
    status = ReadFlagFile("--flagfile", line.flagfile, flags);
  } else if (file_from_environment != nullptr) {
    status = ReadFlagFile("GEMMD_FLAGFILE (--flagfile)", file_from_environment, flags);
  }
  if (status.ok()) status = ReadEnvironment(environment, flags);
  for (const FlagRow& row : FlagTable()) {
    if (!status.ok()) return status;
    if (line.options.at(&row)->count() == 0) continue;
    status = Set(row, line.values.at(&row), absl::StrCat("--", row.name), flags);
  }
  return status.ok() ? CheckTogether(flags) : status;
}

// A variable of clients, of images, or of Kubernetes: GEMMD_SERVICE_HOST, GEMMD_PORT_50051_TCP.
bool IsOfOthers(absl::string_view name) {
  return name == "GEMMD_TOKEN" || name == "GEMMD_TOKEN_FILE" || name == "GEMMD_COMMIT" ||
         absl::StrContains(name, "_SERVICE_") || absl::StrContains(name, "_PORT");
}

}  // namespace

FlagOutcome ParseFlags(const std::vector<std::string>& arguments, const Environment& environment) {
  CommandLine line;
  try {
    line.app.parse(InOrderOfCli11(arguments));
  } catch (const CLI::CallForHelp&) {
    return {.output = line.app.help()};
  } catch (const CLI::ExtrasError&) {
    return UsageError(DescribeExtra(line.app));
  } catch (const CLI::ParseError& error) {
    return UsageError(error.what());
  }
  if (line.version) return {.output = absl::StrCat(Describe(ThisBuild()), "\n")};
  Flags flags;
  const absl::Status status = ReadCommandLine(line, environment, flags);
  if (!status.ok()) {
    return UsageError(absl::string_view(status.message()));
  }
  return {.flags = std::move(flags)};
}

std::vector<UnknownVariable> UnknownVariables(const char* const* variables) {
  constexpr size_t kMostWrong = 2;  // letters
  std::vector<std::string> known = {"GEMMD_FLAGFILE"};
  for (const FlagRow& row : FlagTable()) known.push_back(EnvironmentName(row));
  std::vector<UnknownVariable> unknown;
  for (; *variables != nullptr; ++variables) {
    absl::string_view name = *variables;
    name = name.substr(0, name.find('='));
    if (!absl::StartsWith(name, "GEMMD_")) continue;
    const auto distance = [name](const std::string& x) { return gemm::EditDistance(name, x); };
    const auto nearest = std::min_element(
        known.begin(), known.end(),
        [&](const std::string& x, const std::string& y) { return distance(x) < distance(y); });
    const size_t wrong = distance(*nearest);
    if (wrong == 0) continue;
    const bool near = wrong <= kMostWrong;
    if (near || !IsOfOthers(name)) unknown.push_back({std::string(name), near ? *nearest : ""});
  }
  return unknown;
}

}  // namespace gemmd
