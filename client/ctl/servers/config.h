// The servers of a configuration file, by name.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace gemmd::ctl {

// How a server is reached. Empty: not set.
struct ServerSettings {
  std::string address;
  std::string ca;  // PEM files
  std::string cert;
  std::string key;
  std::string server_name;
  std::string token_file;
  // Of the environment alone: a command line is seen by all, and recorded with results.
  std::string token;
  bool tls = false;  // TLS with the system's CAs, where none of the files is set
  bool token_without_tls = false;
};

// Whether the settings ask for TLS; else plain TCP.
bool UsesTls(const ServerSettings& server);

// The context `name` of a file in TOML; empty: the one that `current-context` names, or
// no settings where none is named. A context has an address. INVALID_ARGUMENT names the
// file, the key and what is allowed.
//
//   current-context = "lab"
//
//   [lab]
//   address = "gpu1.example:50051"
//   ca = "/etc/gemmd/ca.pem"
//   token-file = "/home/alice/.config/gemmctl/lab.token"
absl::StatusOr<ServerSettings> ReadContext(const std::string& path, const std::string& name);

// The value of an environment variable; empty where it is not set.
using Environment = std::function<std::string(const char* name)>;

// $GEMMCTL_CONFIG, else gemmctl/config.toml below $XDG_CONFIG_HOME or $HOME/.config.
// Empty: none of them is set.
std::string ConfigPath(const Environment& environment);

}  // namespace gemmd::ctl
