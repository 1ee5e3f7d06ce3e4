// The quotas file: what a line may say, and which line counts.
#include "server/identity/quotas.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/callers.h"
#include "server/identity/lines.h"
#include "server/identity/watched_file.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Quotas Parsed(const std::string& text) {
  absl::StatusOr<Quotas> quotas = Quotas::Parse(text);
  EXPECT_TRUE(quotas.ok()) << quotas.status();
  return quotas.ok() ? *std::move(quotas) : Quotas();
}

std::string QuotaRefusal(const std::string& text) {
  const absl::Status status = Quotas::Parse(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

CallerQuota Of(const Quotas& quotas, const std::string& name, RoleSet roles = {CallerRole::kCall}) {
  return *quotas.Of(Caller{.name = name, .roles = roles});
}

TEST(QuotasFile, ALineSaysEverything) {
  const Quotas quotas = Parsed(
      "alice jobs=100 admitted-bytes=8GiB matrices=7 store-bytes=1MiB streams=64 "
      "bytes-per-second=200MiB weight=2.5\n");
  const CallerQuota alice = Of(quotas, "alice");
  EXPECT_EQ(alice.caller, "alice");
  EXPECT_EQ(alice.jobs, 100);
  EXPECT_EQ(alice.admitted_bytes, int64_t{8} << 30);
  EXPECT_EQ(alice.matrices, 7);
  EXPECT_EQ(alice.store_bytes, 1 << 20);
  EXPECT_EQ(alice.streams, 64);
  EXPECT_EQ(alice.bytes_per_second, 200 << 20);
  EXPECT_EQ(alice.weight, 2.5);
}

TEST(QuotasFile, WhatIsLeftOutHasNoBound) {
  const CallerQuota alice = Of(Parsed("alice jobs=0\n"), "alice");
  EXPECT_EQ(alice.jobs, 0);
  EXPECT_EQ(alice.streams, kNoBound);
  EXPECT_EQ(alice.store_bytes, kNoBound);
  EXPECT_EQ(alice.weight, 1);
}

TEST(QuotasFile, TheMostSpecificLineCountsAlone) {
  const Quotas quotas = Parsed(
      "* jobs=1\n"
      "role:admin jobs=4 weight=3\n"
      "role:call jobs=2   # the second of two that fit root\n"
      "\n"
      "alice streams=5\n");
  EXPECT_EQ(quotas.size(), 4u);
  EXPECT_EQ(Of(quotas, "alice").jobs, kNoBound) << "lines are not added up";
  EXPECT_EQ(Of(quotas, "alice").streams, 5);
  EXPECT_EQ(Of(quotas, "bob").jobs, 2);
  EXPECT_EQ(Of(quotas, "bob").caller, "bob");
  EXPECT_EQ(Of(quotas, "root", RoleSet::All()).jobs, 4);
  EXPECT_EQ(Of(quotas, "root", RoleSet::All()).weight, 3);
  EXPECT_EQ(Of(quotas, "scraper", {CallerRole::kMetrics}).jobs, 1);
}

TEST(QuotasFile, TheCallerOfAServerThatAsksNobodyIsOneOfThem) {
  const CallerQuota nobody = Of(Parsed("* jobs=3\n"), "", RoleSet::All());
  EXPECT_EQ(nobody.caller, "");
  EXPECT_EQ(nobody.jobs, 3);
  EXPECT_EQ(Of(Quotas(), "alice").jobs, kNoBound) << "without a file";
}

TEST(QuotasFile, TheExampleThatIsShippedIsRight) {
  const absl::StatusOr<std::string> text = ReadWholeFile(GEMMD_QUOTAS_EXAMPLE, kMaxFileBytes);
  ASSERT_TRUE(text.ok()) << text.status();
  const Quotas quotas = Parsed(*text);
  EXPECT_EQ(quotas.size(), 3u);
  EXPECT_EQ(Of(quotas, "trainer").weight, 2);
  EXPECT_EQ(Of(quotas, "somebody").streams, 64);
}

TEST(QuotasFile, ErrorsNameTheLineTheKeyTheValueAndWhatIsAllowed) {
  EXPECT_THAT(QuotaRefusal("alice jobs=1\nbob jobs=many\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("jobs"), HasSubstr("\"many\""),
                    HasSubstr("a whole number from 0 to 10000000")));
  EXPECT_THAT(QuotaRefusal("bob jobs=-1\n"), HasSubstr("\"-1\""));
  EXPECT_THAT(QuotaRefusal("bob jobs=1MiB\n"), HasSubstr("\"1MiB\""));
  EXPECT_THAT(QuotaRefusal("bob streams=0\n"), HasSubstr("from 1 to"));
  EXPECT_THAT(QuotaRefusal("bob store-bytes=65TiB\n"), HasSubstr("a size from 0 to 64TiB"));
  EXPECT_THAT(QuotaRefusal("bob store-bytes=99999999999999999999\n"), HasSubstr("a size"));
  EXPECT_THAT(QuotaRefusal("bob bytes-per-second=1\n"), HasSubstr("from 64KiB"));
  for (const char* weight : {"0", "-1", "101", "nan", "inf", ""}) {
    EXPECT_THAT(QuotaRefusal(absl::StrCat("bob weight=", weight, "\n")),
                HasSubstr("a number from 0.01 to 100"));
  }
  EXPECT_THAT(QuotaRefusal("bob speed=1\n"),
              AllOf(HasSubstr("unknown key \"speed\""), HasSubstr("bytes-per-second, weight")));
  EXPECT_THAT(QuotaRefusal("bob jobs\n"), AllOf(HasSubstr("\"jobs\""), HasSubstr("KEY=VALUE")));
  EXPECT_THAT(QuotaRefusal("bob\n"), HasSubstr("no KEY=VALUE in it"));
  EXPECT_THAT(QuotaRefusal("role:cook jobs=1\n"), HasSubstr("call, matrices, benchmark"));
  EXPECT_THAT(QuotaRefusal(absl::StrCat(std::string(kMaxCallerNameBytes + 1, 'x'), " jobs=1\n")),
              HasSubstr("129 bytes"));
}

TEST(QuotasFile, NothingIsSaidTwice) {
  EXPECT_THAT(QuotaRefusal("bob jobs=1 jobs=2\n"), HasSubstr("\"jobs\": twice"));
  EXPECT_THAT(QuotaRefusal("bob jobs=1\nbob streams=2\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("\"bob\": a line before")));
  EXPECT_THAT(QuotaRefusal("* jobs=1\n* streams=2\n"), HasSubstr("a line before"));
  EXPECT_THAT(QuotaRefusal("role:call jobs=1\nrole:call jobs=2\n"), HasSubstr("a line before"));
}

TEST(QuotasFile, ACutFileIsRefused) {
  EXPECT_THAT(QuotaRefusal(""), HasSubstr("no quota in it"));
  EXPECT_THAT(QuotaRefusal("# nothing\n"), HasSubstr("no quota in it"));
  EXPECT_THAT(QuotaRefusal("bob jobs=1"), HasSubstr("the last line has no end"));
  EXPECT_THAT(QuotaRefusal(std::string(kMaxFileBytes + 1, '\n')), HasSubstr("allowed: up to"));
  std::string lines;
  for (size_t i = 0; i <= kMaxFileLines; ++i) absl::StrAppend(&lines, "c", i, " jobs=1\n");
  EXPECT_THAT(QuotaRefusal(lines), HasSubstr(absl::StrCat("more than ", kMaxFileLines, " quotas")));
}

}  // namespace
}  // namespace gemmd
