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

// What the pages say. Called from the endpoint's thread.
struct HttpPages {
  std::function<std::string()> metrics;
  // OK, UNAUTHENTICATED or PERMISSION_DENIED for a scrape with this header. Null: anyone.
  std::function<absl::Status(std::optional<absl::string_view> authorization)> may_scrape;
  // OK, or why calls are not served. Null: always OK.
  std::function<absl::Status()> ready;
};

struct HttpRequest {
  absl::string_view method;
  absl::string_view target;
  std::optional<absl::string_view> authorization;
};

// GET and HEAD of:
//   /metrics  200 with the metrics, or 401, 403
//   /readyz   200, or 503 with the reason
//   /livez    200
// 404 or 405 with a message for anything else. For HEAD, the sender must leave out the
// body.
HttpAnswer AnswerRequest(const HttpRequest& request, const HttpPages& pages);

}  // namespace gemmd
