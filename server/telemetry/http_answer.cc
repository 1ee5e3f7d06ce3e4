#include "server/telemetry/http_answer.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gemmd {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

std::string Answer(absl::string_view status, absl::string_view type, absl::string_view body,
                   absl::string_view more_headers = "") {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", type,
                      "\r\nContent-Length: ", body.size(), "\r\nConnection: close\r\n",
                      more_headers, "\r\n", body);
}

}  // namespace

std::string AnswerRequest(absl::string_view request, absl::FunctionRef<std::string()> metrics) {
  const absl::string_view line = request.substr(0, request.find("\r\n"));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.")) {
    return Answer("400 Bad Request", kText, "This is HTTP/1.1: GET /metrics.\n");
  }
  const bool head = words[0] == "HEAD";
  if (words[0] != "GET" && !head) {
    return Answer("405 Method Not Allowed", kText, "Only GET and HEAD are known.\n",
                  "Allow: GET, HEAD\r\n");
  }
  if (words[1].substr(0, words[1].find('?')) != "/metrics") {
    return Answer("404 Not Found", kText, "There is only /metrics.\n");
  }
  std::string answer = Answer("200 OK", kPrometheusText, metrics());
  if (head) answer.resize(answer.find("\r\n\r\n") + 4);
  return answer;
}

}  // namespace gemmd
