#include "server/net/address.h"

#include <string>

#include "gtest/gtest.h"

namespace gemmd {
namespace {

TEST(AddressTest, HostAndPort) {
  for (const char* text : {"127.0.0.1:0", "localhost:1", "a-b.c_d:65535", "[::1]:50051",
                           "[fe80::1%eth0]:7", "[::]:80"}) {
    const auto address = ParseTcpAddress(text);
    ASSERT_TRUE(address.ok()) << text << ": " << address.status();
    EXPECT_EQ(address->host + ":" + std::to_string(address->port), text);
    EXPECT_FALSE(address->is_unix());
  }
}

TEST(AddressTest, UnixPathsFitASocketsAddress) {
  const auto address = ParseAddress("unix:/run/a b.sock");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->path, "/run/a b.sock");
  EXPECT_TRUE(ParseAddress("unix:" + std::string(107, 'x')).ok());
  EXPECT_FALSE(ParseAddress("unix:" + std::string(108, 'x')).ok());
  EXPECT_FALSE(ParseAddress("unix:").ok());
  EXPECT_FALSE(ParseTcpAddress("unix:/run/x").ok());
}

TEST(AddressTest, SeveralHaveCommasBetweenThem) {
  const auto addresses = ParseAddresses("127.0.0.1:50051,unix:/run/a.sock,[::1]:0");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  ASSERT_EQ(addresses->size(), 3u);
  EXPECT_EQ((*addresses)[0].port, 50051);
  EXPECT_EQ((*addresses)[1].path, "/run/a.sock");
  EXPECT_EQ((*addresses)[2].host, "[::1]");
  for (const char* text : {"", ",", "h:1,", ",h:1", "h:1, h:2", "h:1,,h:2", "h:1;h:2"}) {
    EXPECT_FALSE(ParseAddresses(text).ok()) << text;
  }
  std::string many = "h:0";
  for (size_t i = 1; i < kMaxAddresses; ++i) many += ",h:0";
  EXPECT_TRUE(ParseAddresses(many).ok());
  EXPECT_FALSE(ParseAddresses(many + ",h:0").ok());
}

TEST(AddressTest, AnythingElseIsRefused) {
  for (const char* text :
       {"",         "nope",           ":1",        "h:",          "h:http",
        "h:65536",  "h:99999",        "h:100000",  "h:-1",        "h:+1",
        "h: 1",     "h:1 ",           " h:1",      "h :1",        "h:0x10",
        "h:1.5",    "::1:9464",       "[::1:80",   "[::1]80",     "::1]:80",
        "[]:80",    "[127.0.0.1]:80", "[nope]:80", "a:80,b:80",   "999.0.0.1:80",
        "127.1:80", "127.0.0.1.:80",  "h\n:1",     "http://h:80", "h:18446744073709551617"}) {
    const auto address = ParseAddress(text);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace gemmd
