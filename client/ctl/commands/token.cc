// gemmctl token: a new bearer token, and the line by which the server knows it.
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/ctl/commands/commands.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

// 256 bits: no two are alike, and none is found by trying.
constexpr size_t kRandomBytes = 32;

struct TokenOptions {
  std::string name;
  std::string roles = "call,matrices";
};

absl::StatusOr<std::string> NewToken() {
  std::array<unsigned char, kRandomBytes> random{};
  if (RAND_bytes(random.data(), random.size()) != 1) {
    return absl::InternalError("OpenSSL gives no random bytes");
  }
  const absl::string_view bytes(reinterpret_cast<const char*>(random.data()), random.size());
  return absl::StrCat("gemmd_", absl::WebSafeBase64Escape(bytes));
}

absl::StatusOr<std::string> Sha256Hex(absl::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha256(), nullptr) != 1) {
    return absl::InternalError("OpenSSL has no SHA-256");
  }
  return absl::BytesToHexString({reinterpret_cast<const char*>(hash.data()), size});
}

int Run(const Context& context, const TokenOptions& options) {
  const absl::StatusOr<std::string> token = NewToken();
  if (!token.ok()) return Fail(context, token.status());
  const absl::StatusOr<std::string> hash = Sha256Hex(*token);
  if (!hash.ok()) return Fail(context, hash.status());
  const std::string line = absl::StrCat(options.name, " ", options.roles, " sha256:", *hash);
  if (context.global.json) {
    PrintJson(context, {{"token", *token}, {"line", line}});
  } else {
    // Apart, so that `> FILE` keeps the secret and the terminal shows the rest.
    context.out << *token << '\n';
    context.err << "# for the server's --callers-file:\n" << line << '\n';
  }
  return kExitOk;
}

// Narrower than the server's rule, so that every name fits a line as it is.
std::string CheckName(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 128 &&
                     name.find_first_not_of(
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                         "0123456789._@-") == std::string::npos;
  return plain ? "" : "must be 1 to 128 of [A-Za-z0-9._@-]";
}

// As the server: a line with another role makes it refuse the whole file.
std::string CheckRoles(const std::string& roles) {
  constexpr absl::string_view kRoles[] = {"call", "matrices", "benchmark", "metrics", "admin"};
  if (roles == "all") return "";
  for (const absl::string_view role : absl::StrSplit(roles, ',')) {
    if (std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles)) continue;
    return absl::StrCat("'", role, "' is no role; allowed: all, or of ",
                        absl::StrJoin(kRoles, ", "), ", joined with commas");
  }
  return "";
}

}  // namespace

void AddToken(CLI::App& app, Context& context) {
  const auto options = std::make_shared<TokenOptions>();
  CLI::App* command =
      app.add_subcommand("token", "Make a token for a caller; asks no server, and keeps nothing");
  command->add_option("NAME", options->name, "The caller's name on the server")
      ->required()
      ->check(&CheckName)
      ->type_name("");
  command
      ->add_option("--roles", options->roles,
                   "Of call, matrices, benchmark, metrics and admin, joined with commas; or all")
      ->check(&CheckRoles)
      ->type_name("ROLES")
      ->capture_default_str();
  command->footer(
      "The token goes to standard output, and the line for the server's --callers-file, which has "
      "only its SHA-256, to standard error. Append that to the file: the server reads it again.\n"
      "\n"
      "Examples:\n"
      "  (umask 077; gemmctl token alice > alice.token 2> line && cat line >> callers)\n"
      "  gemmctl token prometheus --roles metrics --json");
  command->callback([&context, options] {
    context.run = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace gemmd::ctl
