#include "server/status/status_report.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/base/test_clock.h"
#include "tests/telemetry/fake_catalogue.h"
#include "tests/telemetry/fake_engine.h"

namespace gemmd {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

EngineStats OneDevice() {
  EngineStats stats;
  stats.jobs = {3, 4096};
  stats.matrices = {7, 65536};
  DeviceStats device;
  device.name = "host:0";
  device.memory_bytes = {1 << 20, 1 << 30};
  stats.devices.push_back(device);
  return stats;
}

class NoObserver final : public EngineObserver {
 public:
  void OnJobEnd(const JobReport&, const absl::Status&) override {}
  void OnTransferEnd(bool, uint64_t, absl::Duration, const absl::Status&) override {}
};

class StatusReportTest : public ::testing::Test {
 protected:
  StatusReportTest() {
    report_.Attach(
        {.version = "1.2.3",
         .commit = "abc123",
         .started = absl::UnixEpoch(),
         .engine = &engine_,
         .benchmarks = &benchmarks_,
         .history = &history_,
         .listeners = {{"grpc", [] { return ConnectionStats{.open = 2, .limit = 9}; }}}});
  }
  json Get(absl::string_view query) {
    const HttpAnswer answer = report_.Answer(query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.type, "application/json");
    return json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  }

  TestClock clock_;
  FakeEngine engine_{OneDevice()};
  Benchmarks benchmarks_{engine_, {}, nullptr};
  NoObserver observer_;
  JobHistory history_{observer_, kFakeCatalogue};
  StatusReport report_;
};

TEST_F(StatusReportTest, TheOverviewHasPoolsConnectionsAndTheHistory) {
  JobReport job;
  job.kernel = "slow";
  job.device = "host:0";
  job.flops = 2e12;
  job.phases.total = absl::Seconds(2);
  history_.OnJobEnd(job, absl::OkStatus());
  clock_.Advance(JobHistory::kStep);
  const json overview = Get("");
  EXPECT_EQ(overview["pools"], Get("part=overview")["pools"]);
  EXPECT_EQ(overview["version"], "1.2.3");
  EXPECT_EQ(
      overview["pools"][0],
      json({{"name", "jobs"}, {"device", ""}, {"unit", "jobs"}, {"used", 3}, {"limit", 4096}}));
  EXPECT_EQ(overview["connections"][0]["open"], 2);
  EXPECT_EQ(overview["devices"][0]["health"], "ok");
  const json& kernel = overview["history"]["kernels"][0];
  EXPECT_EQ(kernel["name"], "slow");
  EXPECT_EQ(kernel["tflop"], 2);
  EXPECT_EQ(kernel["tflops"].size(), JobHistory::kSteps);
  EXPECT_EQ(kernel["tflops"].back(), 0.4);
  EXPECT_EQ(overview["history"]["all"]["products_per_second"].back(), 0.2);
}

TEST_F(StatusReportTest, AnOverviewOfTheMostRowsIsSmall) {
  for (size_t step = 0; step <= JobHistory::kSteps; ++step) {
    for (int i = 0; i < 100; ++i) {
      JobReport job;
      job.kernel = i % 2 == 0 ? "slow" : "fast_f32";
      job.device = absl::StrCat("device:", i);
      job.caller = absl::StrCat(std::string(100, 'c'), i);
      job.flops = 1.23456789e12;
      job.phases.total = absl::Microseconds(12345);
      history_.OnJobEnd(
          job, i % 3 == 0 ? absl::InternalError(std::string(5000, '"')) : absl::OkStatus());
    }
    clock_.Advance(JobHistory::kStep);
  }
  EXPECT_LT(report_.Answer("").body.size(), 64u << 10);
  EXPECT_LT(report_.Answer("part=jobs").body.size(), 256u << 10);
  EXPECT_EQ(Get("part=jobs")["slowest"].size(), JobHistory::kMostJobs);
}

TEST_F(StatusReportTest, TheCatalogueIsPaged) {
  const json first = Get("part=kernels");
  EXPECT_LE(first["kernels"].size(), StatusReport::kKernelsPerPage);
  EXPECT_GT(first["count"], 0);
  const json beyond = Get("part=kernels&page=4294967295");
  EXPECT_TRUE(beyond["kernels"].empty());
  EXPECT_TRUE(beyond["next_page"].is_null());
}

TEST_F(StatusReportTest, TextsOfCallersAreValidJson) {
  JobReport job;
  job.caller = "\xff\"<script>";
  history_.OnJobEnd(job, absl::InternalError("bad \xc3"));
  EXPECT_EQ(Get("part=jobs")["failed"][0]["caller"], "\xef\xbf\xbd\"<script>");
}

TEST_F(StatusReportTest, OtherQueriesAreErrorsThatSaySo) {
  for (const char* query : {"part=", "part=x", "page=x", "page=-1", "x=1", "part"}) {
    const HttpAnswer answer = report_.Answer(query);
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_THAT(answer.body, HasSubstr("allowed: part=overview")) << query;
  }
}

TEST_F(StatusReportTest, NothingIsReadAfterDetach) {
  report_.Detach();
  EXPECT_EQ(report_.Answer("").status, 503);
}

}  // namespace
}  // namespace gemmd
