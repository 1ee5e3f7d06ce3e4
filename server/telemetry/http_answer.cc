#include "server/telemetry/http_answer.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
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

absl::string_view QueryOf(absl::string_view target) {
  const size_t mark = target.find('?');
  return mark == absl::string_view::npos ? "" : target.substr(mark + 1);
}

// `answer` for those that may scrape.
HttpAnswer ForScrapers(const HttpRequest& request, const HttpPages& pages,
                       absl::FunctionRef<HttpAnswer()> answer) {
  const absl::Status may =
      pages.may_scrape == nullptr ? absl::OkStatus() : pages.may_scrape(request.authorization);
  if (absl::IsUnauthenticated(may)) {
    return {.status = 401, .authenticate = "Bearer", .body = absl::StrCat(may.message(), "\n")};
  }
  if (!may.ok()) return {.status = 403, .body = absl::StrCat(may.message(), "\n")};
  return answer();
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
  if (path == "/metrics") {
    return ForScrapers(request, pages, [&pages] {
      return HttpAnswer{.type = "text/plain; version=0.0.4; charset=utf-8",
                        .body = pages.metrics()};
    });
  }
  if (path == "/status.json" && pages.status != nullptr) {
    return ForScrapers(request, pages, [&] { return pages.status(QueryOf(request.target)); });
  }
  if (path == "/readyz") return ReadyPage(pages);
  if (path == "/livez") return {.body = "alive\n"};
  if (pages.page != nullptr) {
    if (std::optional<HttpAnswer> file = pages.page(path); file.has_value())
      return *std::move(file);
  }
  return {.status = 404, .body = "There are /, /status.json, /metrics, /readyz and /livez.\n"};
}

}  // namespace gemmd
