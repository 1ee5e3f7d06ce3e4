#include "server/telemetry/http_answer.h"

namespace gemmd {

HttpAnswer AnswerRequest(absl::string_view method, absl::string_view target,
                         absl::FunctionRef<std::string()> metrics) {
  if (method != "GET" && method != "HEAD") {
    return {.status = 405, .allow = "GET, HEAD", .body = "Only GET and HEAD are known.\n"};
  }
  if (target.substr(0, target.find('?')) != "/metrics") {
    return {.status = 404, .body = "There is only /metrics.\n"};
  }
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics()};
}

}  // namespace gemmd
