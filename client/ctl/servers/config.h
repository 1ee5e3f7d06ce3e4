// The servers of a configuration file, by name.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace gemmd::ctl {

// How a server is reached. Empty: not set. `names` has an entry for each value that is set, under
// the client library's name for it.
struct ServerSettings {
  std::string address;
  std::string ca;  // PEM files
  std::string cert;
  std::string key;
  std::string server_name;
  std::string token_file;
  // Comes only from the environment: a command line is seen by all, and recorded with results.
  std::string token;
  bool tls = false;  // TLS with the system's CAs, where none of the files is set
  bool token_without_tls = false;
  // How the user set a value, such as "--ca", "GEMMCTL_CA" or "/etc/lab.toml: [lab] ca".
  std::map<std::string, std::string> names;
};

// A setting that is a text, everywhere that it has a name.
struct TextSetting {
  std::string ServerSettings::*value;
  const char* key;      // in the configuration file
  const char* library;  // in ClientOptions
  bool is_path;
};
inline constexpr TextSetting kTextSettings[] = {
    {&ServerSettings::address, "address", "address", false},
    {&ServerSettings::ca, "ca", "tls.root_certificates_file", true},
    {&ServerSettings::cert, "cert", "tls.certificate_chain_file", true},
    {&ServerSettings::key, "key", "tls.private_key_file", true},
    {&ServerSettings::server_name, "server-name", "tls.server_name", false},
    {&ServerSettings::token_file, "token-file", "token_file", true}};

// An error of Client::Connect, in the user's words for settings.
absl::Status InNamesOfUser(const absl::Status& status, const ServerSettings& server);

// Whether the settings ask for TLS; else plain TCP.
bool UsesTls(const ServerSettings& server);

// The context `name` of a file in TOML; empty: the one that `current-context` names, or
// no settings where none is named. A context has an address. Its paths begin in the folder of the
// file, where they are not absolute. INVALID_ARGUMENT names the file, the key and what is allowed.
//
//   current-context = "lab"
//
//   [lab]
//   address = "gpu1.example:50051"
//   ca = "/etc/gemmd/ca.pem"
//   token-file = "lab.token"
absl::StatusOr<ServerSettings> ReadContext(const std::string& path, const std::string& name);

// The value of an environment variable; empty where it is not set.
using Environment = std::function<std::string(const char* name)>;

// $GEMMCTL_CONFIG, else gemmctl/config.toml below $XDG_CONFIG_HOME or $HOME/.config.
// Empty: none of them is set.
std::string ConfigPath(const Environment& environment);

}  // namespace gemmd::ctl
