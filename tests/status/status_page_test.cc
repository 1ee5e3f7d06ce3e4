#include "server/status/status_page.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StatusPage, ItsFilesAreThereAndNothingElse) {
  EXPECT_EQ(StatusPage("/")->type, "text/html; charset=utf-8");
  EXPECT_EQ(StatusPage("/status.js")->type, "text/javascript; charset=utf-8");
  EXPECT_EQ(StatusPage("/status.css")->type, "text/css; charset=utf-8");
  for (const char* path : {"", "/status", "/index.html", "/../", "/status.js/"}) {
    EXPECT_FALSE(StatusPage(path).has_value()) << path;
  }
}

// The policy of HttpAnswer would block all of these.
TEST(StatusPage, HasNothingInlineAndNothingOfOtherHosts) {
  for (const char* path : {"/", "/status.js", "/status.css"}) {
    const std::string body = StatusPage(path)->body;
    EXPECT_THAT(body, Not(HasSubstr("https://"))) << path;
    EXPECT_THAT(body, Not(HasSubstr("innerHTML"))) << path;
    EXPECT_THAT(body, Not(HasSubstr("style="))) << path;
    EXPECT_THAT(body, Not(HasSubstr("onclick"))) << path;
  }
  EXPECT_THAT(StatusPage("/")->body, HasSubstr("</html>"));
  EXPECT_THAT(StatusPage("/")->body, Not(HasSubstr("<style")));
}

}  // namespace
}  // namespace gemmd
