#include "server/floods/transports.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace gemmd {
namespace {

using nlohmann::json;

struct GprDeleter {
  void operator()(char* text) const { gpr_free(text); }
};

// A page of channelz; null where there is none.
json Parse(char* text) {
  const std::unique_ptr<char, GprDeleter> owned(text);
  return text == nullptr ? json() : json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// Numbers of 64 bits are strings in the JSON of protobuf.
intptr_t Id(const json& ref, const char* key) {
  intptr_t id = 0;
  if (!absl::SimpleAtoi(ref.value(key, std::string()), &id)) return 0;
  return id;
}

// The list of a page; empty where the page has none.
json List(const json& page, const char* key) {
  return page.is_object() && page.contains(key) ? page[key] : json::array();
}

// A count in a page's text, without parsing it: it is asked for thousands of them, and carries the
// peer's certificate. 0 where there is none.
int64_t CountIn(absl::string_view page, absl::string_view key) {
  const size_t begin = page.find(key);
  if (begin == absl::string_view::npos) return 0;
  page.remove_prefix(begin + key.size());
  int64_t count = 0;
  return absl::SimpleAtoi(page.substr(0, page.find('"')), &count) ? count : 0;
}

bool IsLast(const json& page) { return !page.is_object() || page.value("end", false); }

}  // namespace

intptr_t NewestServer() {
  intptr_t newest = 0;
  for (;;) {
    const json page = Parse(grpc_channelz_get_servers(newest + 1));
    const json servers = List(page, "server");
    if (!servers.empty()) newest = Id(servers.back()["ref"], "serverId");
    if (servers.empty() || IsLast(page)) return newest;
  }
}

int64_t CountTransports(intptr_t server) {
  int64_t count = 0;
  for (intptr_t next = 0;;) {
    const json page = Parse(grpc_channelz_get_server_sockets(server, next, /*max_results=*/0));
    const json sockets = List(page, "socketRef");
    count += static_cast<int64_t>(sockets.size());
    if (sockets.empty() || IsLast(page)) return count;
    next = Id(sockets.back(), "socketId") + 1;
  }
}

std::vector<Transport> TransportsAfter(intptr_t server, intptr_t after) {
  std::vector<Transport> transports;
  for (;;) {
    const json page = Parse(grpc_channelz_get_server_sockets(server, after + 1, /*max_results=*/0));
    const json sockets = List(page, "socketRef");
    for (const json& socket : sockets) {
      after = Id(socket, "socketId");
      const std::string name = socket.value("name", "");  // "chttp2 ipv4:10.0.0.1:40000"
      transports.push_back({.id = after, .peer = name.substr(name.rfind(' ') + 1)});
    }
    if (sockets.empty() || IsLast(page)) return transports;
  }
}

std::optional<TransportCalls> CallsOfTransport(intptr_t id) {
  const std::unique_ptr<char, GprDeleter> page(grpc_channelz_get_socket(id));
  if (page == nullptr) return std::nullopt;
  const int64_t begun = CountIn(page.get(), R"("streamsStarted":")");
  const int64_t over =
      CountIn(page.get(), R"("streamsSucceeded":")") + CountIn(page.get(), R"("streamsFailed":")");
  return TransportCalls{.begun = begun, .unfinished = begun - over};
}

}  // namespace gemmd
