#include "server/telemetry/http_answer.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

// A target may have a whole address before its path (RFC 9112, 3.2.2).
absl::string_view PathOf(absl::string_view target) {
  absl::string_view path = target.substr(0, target.find('?'));
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(path, scheme)) continue;
    path.remove_prefix(std::min(path.find('/', scheme.size()), path.size()));
    break;
  }
  return path;
}

HttpAnswer MetricsPage(const HttpRequest& request, const HttpPages& pages) {
  const absl::Status may =
      pages.may_scrape == nullptr ? absl::OkStatus() : pages.may_scrape(request.authorization);
  if (absl::IsUnauthenticated(may)) {
    return {.status = 401, .authenticate = "Bearer", .body = absl::StrCat(may.message(), "\n")};
  }
  if (!may.ok()) return {.status = 403, .body = absl::StrCat(may.message(), "\n")};
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = pages.metrics()};
}

HttpAnswer ReadyPage(const HttpPages& pages) {
  const absl::Status ready = pages.ready == nullptr ? absl::OkStatus() : pages.ready();
  if (ready.ok()) return {.body = "ready\n"};
  return {.status = 503, .body = absl::StrCat("not ready: ", ready.message(), "\n")};
}

}  // namespace

HttpAnswer AnswerRequest(const HttpRequest& request, const HttpPages& pages) {
  if (request.method != "GET" && request.method != "HEAD") {
    return {.status = 405, .allow = "GET, HEAD", .body = "Only GET and HEAD are known.\n"};
  }
  const absl::string_view path = PathOf(request.target);
  if (path == "/metrics") return MetricsPage(request, pages);
  if (path == "/readyz") return ReadyPage(pages);
  if (path == "/livez") return {.body = "alive\n"};
  return {.status = 404, .body = "There are /metrics, /readyz and /livez.\n"};
}

}  // namespace gemmd
