#include "client/ctl/servers/server_choice.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace gemmd::ctl {
namespace {

void SetIfEmpty(std::string& value, const std::string& other) {
  if (value.empty()) value = other;
}

void NameOptions(ServerSettings& server) {
  for (const TextSetting& setting : kTextSettings) {
    if ((server.*setting.value).empty()) continue;
    server.names[setting.library] = absl::StrCat("--", setting.key);
  }
}

// GEMMCTL_TOKEN_FILE of "token-file".
std::string VariableOf(const TextSetting& setting) {
  return absl::StrCat("GEMMCTL_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(setting.key, {{"-", "_"}})));
}

void TakeVariables(const Environment& environment, GlobalOptions& global) {
  ServerSettings& server = global.server;
  SetIfEmpty(global.context, environment("GEMMCTL_CONTEXT"));
  for (const TextSetting& setting : kTextSettings) {
    // An address comes with the options.
    if (setting.value == &ServerSettings::address || !(server.*setting.value).empty()) continue;
    const std::string variable = VariableOf(setting);
    server.*setting.value = environment(variable.c_str());
    if (!(server.*setting.value).empty()) server.names[setting.library] = variable;
  }
  if (server.token_file.empty()) server.token = environment("GEMMCTL_TOKEN");
  if (!server.token.empty()) server.names["token"] = "GEMMCTL_TOKEN";
}

void TakeContext(const ServerSettings& context, GlobalOptions& global) {
  ServerSettings& server = global.server;
  global.address = context.address;
  for (const TextSetting& setting : kTextSettings) {
    const bool has_token = setting.value == &ServerSettings::token_file && !server.token.empty();
    std::string& value = server.*setting.value;
    if (has_token || !value.empty() || (context.*setting.value).empty()) continue;
    value = context.*setting.value;
    server.names[setting.library] = context.names.at(setting.library);
  }
  server.tls = server.tls || context.tls;
  server.token_without_tls = server.token_without_tls || context.token_without_tls;
}

// The context that is named, or the file's current one.
absl::Status ReadConfiguration(const Environment& environment, GlobalOptions& global) {
  const bool named = !global.context.empty();
  const std::string path = ConfigPath(environment);
  if (named && path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("context '", global.context,
                     "': no configuration file; set GEMMCTL_CONFIG, XDG_CONFIG_HOME or HOME"));
  }
  const bool asked_for = named || !environment("GEMMCTL_CONFIG").empty();
  if (path.empty() || (!asked_for && access(path.c_str(), F_OK) != 0)) return absl::OkStatus();
  const absl::StatusOr<ServerSettings> context = ReadContext(path, global.context);
  if (!context.ok()) return context.status();
  if (!context->address.empty()) TakeContext(*context, global);
  return absl::OkStatus();
}

}  // namespace

std::string AddressFromEnvironment(const Environment& environment) {
  std::string addresses = environment("GEMMCTL_ADDRESS");
  SetIfEmpty(addresses, environment("GEMMD_ADDRESS"));
  // A server may listen on several, with commas between them: the first will do.
  return addresses.substr(0, addresses.find(','));
}

absl::Status ChooseServer(bool address_given, const Environment& environment,
                          GlobalOptions& global) {
  const bool context_given = !global.context.empty();
  if (address_given && context_given) {
    return absl::InvalidArgumentError(
        "--address and --context both name a server; allowed: one of them");
  }
  NameOptions(global.server);
  if (!context_given) TakeVariables(environment, global);
  const bool from_variable = !context_given && !global.context.empty();
  // An address that is named here is not shown the credentials of another server.
  const bool elsewhere =
      address_given || (global.context.empty() && !AddressFromEnvironment(environment).empty());
  if (!elsewhere) {
    const absl::Status status = ReadConfiguration(environment, global);
    if (!status.ok() && from_variable) {
      return absl::InvalidArgumentError(absl::StrCat("GEMMCTL_CONTEXT: ", status.message()));
    }
    if (!status.ok()) return status;
  }
  if (!global.server.server_name.empty() && !UsesTls(global.server)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server-name (GEMMCTL_SERVER_NAME, server-name): '",
                     global.server.server_name, "' without TLS; allowed: with --tls or --ca"));
  }
  if (global.server.cert.empty() != global.server.key.empty()) {
    return absl::InvalidArgumentError(
        "--cert and --key (GEMMCTL_CERT and GEMMCTL_KEY, cert and key): one without the other; "
        "allowed: both or neither");
  }
  return absl::OkStatus();
}

}  // namespace gemmd::ctl
