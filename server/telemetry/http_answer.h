// The response to an HTTP request.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace gemmd {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";  // Content-Type
  std::string allow;                               // Allow; empty: not sent
  std::string body;
};

// 200 with `metrics()` for GET and HEAD of /metrics; 404 or 405 with a message for
// anything else. For HEAD, the sender must leave out the body.
HttpAnswer AnswerRequest(absl::string_view method, absl::string_view target,
                         absl::FunctionRef<std::string()> metrics);

}  // namespace gemmd
