// Which addresses a client takes.
#include "client/cpp/calls/address.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gemmd::client
