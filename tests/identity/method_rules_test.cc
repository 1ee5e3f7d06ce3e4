// Rules of who may use a service, as flags have them.
#include "server/identity/method_rules.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

TEST(MethodRules, AreReadAsTheyAreWritten) {
  for (const char* text : {"call", "matrices", "benchmark", "metrics", "admin", "anyone", "off"}) {
    const absl::StatusOr<MethodRule> rule = ParseMethodRule(text);
    ASSERT_TRUE(rule.ok()) << rule.status();
    EXPECT_EQ(ToString(*rule), text);
  }
  EXPECT_EQ(ToString({.who = MethodRule::Who::kCallers}), "callers");
  EXPECT_EQ(ToString({.who = MethodRule::Who::kNobody}), "nobody");
  for (const char* text : {"", "callers", "nobody", "Call"}) {
    EXPECT_THAT(std::string(ParseMethodRule(text).status().message()),
                HasSubstr("admin, anyone, off"))
        << text;
  }
}

}  // namespace
}  // namespace gemmd
