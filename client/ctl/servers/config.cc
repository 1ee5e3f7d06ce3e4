#include "client/ctl/servers/config.h"

#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "files/text_file.h"
#include "gemm/quote.h"

namespace gemmd::ctl {
namespace {

constexpr absl::string_view kCurrentContext = "current-context";
constexpr size_t kMaxBytes = size_t{1} << 20;

absl::Status Wrong(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", gemm::EscapeControls(why)));
}

absl::Status SetFlag(const std::string& text, bool& flag) {
  if (text != "true" && text != "false") {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "'; allowed: true, false"));
  }
  flag = text == "true";
  return absl::OkStatus();
}

// `path` and `context`: where the key is.
absl::Status Set(const std::string& path, const std::string& context, const std::string& key,
                 const std::string& text, ServerSettings& settings) {
  for (const TextSetting& setting : kTextSettings) {
    if (key != setting.key) continue;
    const bool is_path = setting.is_path && !text.empty();
    settings.*setting.value =
        is_path ? (std::filesystem::path(path).parent_path() / text).string() : text;
    settings.names[setting.library] = absl::StrCat(path, ": [", context, "] ", key);
    return absl::OkStatus();
  }
  if (key == "tls") return SetFlag(text, settings.tls);
  if (key == "token-without-tls") return SetFlag(text, settings.token_without_tls);
  return absl::InvalidArgumentError(
      "unknown key; allowed: address, ca, cert, key, server-name, token-file, tls, "
      "token-without-tls");
}

absl::StatusOr<std::vector<CLI::ConfigItem>> ReadItems(const std::string& path) {
  const absl::StatusOr<std::string> text = files::ReadText(path, kMaxBytes);
  if (!text.ok()) return text.status();
  try {
    std::istringstream file(*text);
    return CLI::ConfigTOML().from_config(file);
  } catch (const CLI::Error& error) {
    return Wrong(path, error.what());
  }
}

// CLI11 marks the begin and the end of a section with items of these names.
bool IsMark(const CLI::ConfigItem& item) { return item.name == "++" || item.name == "--"; }

}  // namespace

absl::StatusOr<ServerSettings> ReadContext(const std::string& path, const std::string& name) {
  const absl::StatusOr<std::vector<CLI::ConfigItem>> items = ReadItems(path);
  if (!items.ok()) return items.status();
  std::string wanted = name;
  for (const CLI::ConfigItem& item : *items) {
    if (!item.parents.empty() || IsMark(item)) continue;
    if (item.name != kCurrentContext) {
      return Wrong(path, absl::StrCat(item.name, ": unknown key; allowed outside of a context: ",
                                      kCurrentContext));
    }
    if (wanted.empty()) wanted = absl::StrJoin(item.inputs, " ");
  }
  ServerSettings settings;
  bool found = wanted.empty();
  for (const CLI::ConfigItem& item : *items) {
    if (item.parents.size() > 1) {
      return Wrong(path, absl::StrCat("[", absl::StrJoin(item.parents, "."),
                                      "]: a table in a table; allowed: names without dots"));
    }
    if (item.parents.empty() || item.parents.front() != wanted) continue;
    found = true;
    if (IsMark(item)) continue;
    if (item.inputs.size() != 1) {
      return Wrong(path, absl::StrCat("[", wanted, "] ", item.name, ": ", item.inputs.size(),
                                      " values; allowed: one, between quotation marks where it "
                                      "has spaces"));
    }
    const absl::Status status = Set(path, wanted, item.name, item.inputs.front(), settings);
    if (!status.ok()) {
      return Wrong(path, absl::StrCat("[", wanted, "] ", item.name, ": ", status.message()));
    }
  }
  if (!found) return Wrong(path, absl::StrCat("no context [", wanted, "] in it"));
  if (!wanted.empty() && settings.address.empty()) {
    return Wrong(path, absl::StrCat("[", wanted, "]: no address; allowed: host:port, unix:/path"));
  }
  return settings;
}

absl::Status InNamesOfUser(const absl::Status& status, const ServerSettings& server) {
  std::string message = absl::StrReplaceAll(
      status.message(), {{"set tls, or token_without_tls", "set --tls, or --token-without-tls"}});
  for (const auto& [library, own] : server.names) {
    absl::string_view rest = message;
    if (!absl::ConsumePrefix(&rest, library)) continue;
    if (!absl::StartsWith(rest, " ") && !absl::StartsWith(rest, ":")) continue;
    message = absl::StrCat(own, rest);
    break;
  }
  return absl::Status(status.code(), message);
}

bool UsesTls(const ServerSettings& server) {
  return server.tls || !server.ca.empty() || !server.cert.empty() || !server.key.empty();
}

std::string ConfigPath(const Environment& environment) {
  if (std::string path = environment("GEMMCTL_CONFIG"); !path.empty()) return path;
  std::string folder = environment("XDG_CONFIG_HOME");
  if (folder.empty()) {
    const std::string home = environment("HOME");
    if (home.empty()) return "";
    folder = absl::StrCat(home, "/.config");
  }
  return absl::StrCat(folder, "/gemmctl/config.toml");
}

}  // namespace gemmd::ctl
