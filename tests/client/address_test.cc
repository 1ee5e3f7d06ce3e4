// Which addresses a client takes, and which connections go through a proxy.
#include "client/cpp/calls/address.h"

#include <gtest/gtest.h>

#include <map>

namespace gemmd::client {
namespace {

TEST(Address, HostAndPortInEveryFormThatGrpcTakes) {
  for (const char* address :
       {"localhost:1", "127.0.0.1:65535", "[::1]:50051", "gpu-7.example:50051", "dns:///x:50051",
        "ipv4:10.0.0.1:1,10.0.0.2:2", "ipv6:[::1]:1", "unix:/run/x", "unix:x", "unix-abstract:x",
        "dns://1.1.1.1/x:50051", "DNS:x:1"}) {
    EXPECT_TRUE(CheckAddress(address).ok()) << address << ": " << CheckAddress(address);
  }
}

// gRPC would take these for port 443, for a port modulo 65536, or for a name to look up.
TEST(Address, OthersAreRefused) {
  for (const char* address : {"",
                              "localhost",
                              ":50051",
                              "127.0.0.1:",
                              "127.0.0.1:0",
                              "127.0.0.1:65536",
                              "127.0.0.1:117587",
                              "127.0.0.1:-1",
                              "127.0.0.1:+1",
                              "127.0.0.1:abc",
                              "::1",
                              "::1:50051",
                              "http://x:50051",
                              "https://x",
                              "dns:///x",
                              "ipv4:10.0.0.1:1,10.0.0.2",
                              "ipv6:::1",
                              "dns://1.1.1.1/x:117587",
                              "DNS:///x:70000",
                              "dns://x:1",
                              "dns://",
                              "xds:///x",
                              "unix:",
                              "a b:1"}) {
    EXPECT_EQ(CheckAddress(address).code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

TEST(Address, LoopbackAndUnixSocketsStayOnThisMachine) {
  for (const char* address :
       {"localhost:1", "127.0.0.2:1", "[::1]:1", "unix:/x", "dns:///localhost:1"}) {
    EXPECT_TRUE(StaysOnThisMachine(address)) << address;
  }
  for (const char* address : {"example:1", "127.example:1", "10.0.0.1:1", "[::2]:1"}) {
    EXPECT_FALSE(StaysOnThisMachine(address)) << address;
  }
}

std::string Chosen(const char* address, const std::map<std::string, std::string>& set) {
  const std::optional<Proxy> proxy =
      ProxyFor(address, [&](const char* name) -> std::optional<std::string> {
        const auto found = set.find(name);
        if (found == set.end()) return std::nullopt;
        return found->second;
      });
  return proxy ? proxy->variable + " " + proxy->address : "";
}

TEST(Proxy, TheFirstVariableThatIsSetCounts) {
  EXPECT_EQ(Chosen("gpu:1", {}), "");
  EXPECT_EQ(Chosen("gpu:1", {{"HTTPS_PROXY", "http://p:1"}}), "") << "gRPC does not know it";
  EXPECT_EQ(Chosen("gpu:1", {{"http_proxy", "http://p:1/"}}), "http_proxy p:1");
  EXPECT_EQ(Chosen("gpu:1", {{"http_proxy", "http://p:1"}, {"https_proxy", "http://u:s@q:2"}}),
            "https_proxy q:2");
  EXPECT_EQ(Chosen("gpu:1", {{"http_proxy", "http://p:1"}, {"grpc_proxy", ""}}), "");
  EXPECT_EQ(Chosen("gpu:1", {{"https_proxy", "https://p:1"}}), "") << "gRPC speaks no TLS to one";
  EXPECT_EQ(Chosen("unix:/run/x", {{"http_proxy", "http://p:1"}}), "");
}

TEST(Proxy, ServersAreExcepted) {
  const auto goes = [](const char* address, const char* list, const char* name = "NO_PROXY") {
    return !Chosen(address, {{"https_proxy", "http://p:1"}, {name, list}}).empty();
  };
  for (const char* name : {"no_grpc_proxy", "no_proxy", "NO_PROXY"}) {
    EXPECT_FALSE(goes("gpu.lab.example:1", "*", name));
    EXPECT_FALSE(goes("gpu.lab.example:1", "other, .LAB.example", name));
    EXPECT_TRUE(goes("gpu.lab.example:1", "", name));
    EXPECT_TRUE(goes("gpu.lab.example:1", "lab,gpu,", name));
  }
  for (const char* address : {"10.1.2.3:1", "ipv4:10.1.2.3:1,11.0.0.1:1", "dns:///10.1.2.3:1"}) {
    EXPECT_FALSE(goes(address, "10.0.0.0/14")) << address;
    EXPECT_TRUE(goes(address, "10.0.0.0/16")) << address;
    EXPECT_TRUE(goes(address, "10.0.0.0/64,10.0.0.0/x,fd00::/8")) << address;
  }
  EXPECT_FALSE(goes("[fd00::7]:1", "fd00::/8"));
  EXPECT_TRUE(goes("[fe00::7]:1", "fd00::/8"));
  EXPECT_TRUE(goes("gpu:1", "0.0.0.0/0"));
  EXPECT_FALSE(
      Chosen("gpu:1", {{"https_proxy", "http://p:1"}, {"no_proxy", "x"}, {"NO_PROXY", "*"}})
          .empty())
      << "the first that is set counts";
}

}  // namespace
}  // namespace gemmd::client
