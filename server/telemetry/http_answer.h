// The response to an HTTP request.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gemmd {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";  // Content-Type
  std::string allow;                               // Allow; empty: not sent
  std::string authenticate;                        // WWW-Authenticate; empty: not sent
  std::string body;
};

// Every answer has these. Pages may load nothing but their own files and JSON.
inline constexpr absl::string_view kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// What the pages say. Called from the endpoint's thread.
struct HttpPages {
  std::function<std::string()> metrics;
  // OK, UNAUTHENTICATED or PERMISSION_DENIED for a scrape with this header. Null: anyone.
  std::function<absl::Status(std::optional<absl::string_view> authorization)> may_scrape;
  // OK, or why calls are not served. Null: always OK.
  std::function<absl::Status()> ready;
  // The files of the status page, by path. They are the same for every server, so anyone may
  // read them. Null: there are none, and no `status`.
  std::function<std::optional<HttpAnswer>(absl::string_view path)> page;
  // /status.json, for those that may_scrape. `query` is what follows '?'.
  std::function<HttpAnswer(absl::string_view query)> status;
};

struct HttpRequest {
  absl::string_view method;
  absl::string_view target;
  std::optional<absl::string_view> authorization;
};

// GET and HEAD of:
//   /metrics  200 with the metrics, or 401, 403
//   /status.json  200 with the state, or 400, 401, 403, 503
//   / and its files  200
//   /readyz   200, or 503 with the reason
//   /livez    200
// 404 or 405 with a message for anything else. For HEAD, the sender must leave out the
// body.
HttpAnswer AnswerRequest(const HttpRequest& request, const HttpPages& pages);

}  // namespace gemmd
