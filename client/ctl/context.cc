#include "client/ctl/context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "files/output_file.h"
#include "gemm/quote.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {

std::string ClientVersion() { return GEMMCTL_VERSION; }

absl::StatusOr<std::unique_ptr<client::Client>> Connect(const Context& context,
                                                        const client::RetryOptions& retry) {
  client::ClientOptions options;
  options.address = context.global.address;
  options.channels = context.global.channels;
  options.retry = retry;
  const ServerSettings& server = context.global.server;
  if (UsesTls(server)) {
    options.tls = client::TlsOptions{.root_certificates_file = server.ca,
                                     .private_key_file = server.key,
                                     .certificate_chain_file = server.cert,
                                     .server_name = server.server_name};
  }
  options.token_file = server.token_file;
  options.token = server.token;
  options.token_without_tls = server.token_without_tls;
  options.user_agent = absl::StrCat("gemmctl/", ClientVersion());
  if (context.global.deadline.has_value()) options.connect_timeout = *context.global.deadline;
  auto client = client::Client::Connect(std::move(options));
  if (!client.ok()) return InNamesOfUser(client.status(), server);
  return client;
}

client::CallOptions Call(const Context& context, absl::Duration deadline) {
  return client::CallOptions{.timeout = context.global.deadline.value_or(deadline)};
}

Context Beside(const Context& context, std::initializer_list<std::string> files) {
  const bool taken = std::any_of(files.begin(), files.end(), files::IsStandardOutput);
  return {.global = context.global,
          .out = taken ? context.err : context.out,
          .err = context.err,
          .err_is_terminal = context.err_is_terminal,
          .width = context.width,
          .server_choice = context.server_choice,
          .command_line = context.command_line};
}

int Fail(const Context& context, const absl::Status& status) {
  context.err << "gemmctl: " << absl::StatusCodeToString(status.code()) << ": "
              << gemm::EscapeControls(status.message()) << '\n';
  return kExitFailed;
}

int FailUsage(const Context& context, const std::string& sentence) {
  context.err << "gemmctl: " << sentence << '\n';
  return kExitUsage;
}

std::string JsonText(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

void PrintJson(const Context& context, const Json& json) { context.out << JsonText(json); }

}  // namespace gemmd::ctl
