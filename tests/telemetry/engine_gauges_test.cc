#include "server/telemetry/engine_gauges.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/telemetry/metrics.h"
#include "tests/telemetry/fake_catalogue.h"
#include "tests/telemetry/fake_engine.h"
#include "tests/telemetry/scrape.h"

namespace gemmd {
namespace {

EngineStats TwoDevices() {
  EngineStats stats{.jobs = {1, 2},
                    .queued_jobs = {3, 4},
                    .admitted_bytes = {5, 6},
                    .matrices = {7, 8},
                    .matrices_expired = 52,
                    .traffic = {9, 10},
                    .traffic_dropped = 51};
  stats.devices.push_back({.name = "cuda:0",
                           .memory_bytes = {11, 12},
                           .streams = {13, 14},
                           .upload_staging_bytes = {15, 16},
                           .download_staging_bytes = {17, 18},
                           .store_bytes = {19, int64_t{80} << 30},
                           .replicas = {.bytes = 31,
                                        .begun_peer = 32,
                                        .begun_host = 33,
                                        .copied_bytes = 34,
                                        .reused = 35,
                                        .dropped = 36},
                           .queued_jobs = 21,
                           .waiting_flows = 23,
                           .queue_wait_seconds = 1.5,
                           .queue_wait_limit_seconds = 2.5,
                           .driver_allocations = 22,
                           .health = absl::OkStatus()});
  stats.devices.push_back({.name = "cuda:1",
                           .health = absl::UnavailableError("fell off the bus"),
                           .loss = {.hangs = 1, .matrices_lost = 41, .matrices_moved = 42}});
  return stats;
}

TEST(EngineGaugesTest, ShowsEveryBoundedQuantityBesideItsBound) {
  const FakeEngine engine(TwoDevices());
  Metrics metrics(FakeMetricsOptions());
  metrics.Attach(&engine);
  const ParsedScrape scrape = ParseScrape(metrics.Scrape());

  EXPECT_EQ(scrape.at("gemmd_jobs_in_flight"), 1);
  EXPECT_EQ(scrape.at("gemmd_jobs_in_flight_limit"), 2);
  EXPECT_EQ(scrape.at("gemmd_queue_depth"), 3);
  EXPECT_EQ(scrape.at("gemmd_queue_depth_limit"), 4);
  EXPECT_EQ(scrape.at("gemmd_admitted_bytes"), 5);
  EXPECT_EQ(scrape.at("gemmd_admitted_bytes_limit"), 6);
  EXPECT_EQ(scrape.at("gemmd_matrices"), 7);
  EXPECT_EQ(scrape.at("gemmd_matrices_limit"), 8);
  EXPECT_EQ(scrape.at("gemmd_matrices_expired_total"), 52);
  EXPECT_EQ(scrape.at("gemmd_traffic_entries"), 9);
  EXPECT_EQ(scrape.at("gemmd_traffic_entries_limit"), 10);
  EXPECT_EQ(scrape.at("gemmd_traffic_dropped_total"), 51);
  EXPECT_EQ(scrape.types.at("gemmd_traffic_dropped_total"), "counter");

  EXPECT_EQ(scrape.at(R"(gemmd_device_memory_bytes{device="cuda:0"})"), 11);
  EXPECT_EQ(scrape.at(R"(gemmd_device_memory_bytes_limit{device="cuda:0"})"), 12);
  EXPECT_EQ(scrape.at(R"(gemmd_streams_in_use{device="cuda:0"})"), 13);
  EXPECT_EQ(scrape.at(R"(gemmd_streams_in_use_limit{device="cuda:0"})"), 14);
  EXPECT_EQ(scrape.at(R"(gemmd_staging_bytes{device="cuda:0",direction="in"})"), 15);
  EXPECT_EQ(scrape.at(R"(gemmd_staging_bytes_limit{device="cuda:0",direction="in"})"), 16);
  EXPECT_EQ(scrape.at(R"(gemmd_staging_bytes{device="cuda:0",direction="out"})"), 17);
  EXPECT_EQ(scrape.at(R"(gemmd_staging_bytes_limit{device="cuda:0",direction="out"})"), 18);
  EXPECT_EQ(scrape.at(R"(gemmd_store_bytes{device="cuda:0"})"), 19);
  EXPECT_EQ(scrape.at(R"(gemmd_store_bytes_limit{device="cuda:0"})"), double{1 << 30} * 80);
  EXPECT_EQ(scrape.at(R"(gemmd_device_queue_depth{device="cuda:0"})"), 21);
  EXPECT_EQ(scrape.at(R"(gemmd_device_waiting_flows{device="cuda:0"})"), 23);
  EXPECT_EQ(scrape.at(R"(gemmd_queue_wait_estimate_seconds{device="cuda:0"})"), 1.5);
  EXPECT_EQ(scrape.at(R"(gemmd_queue_wait_limit_seconds{device="cuda:0"})"), 2.5);
  EXPECT_EQ(scrape.at(R"(gemmd_driver_allocations_total{device="cuda:0"})"), 22);
  EXPECT_EQ(scrape.types.at("gemmd_driver_allocations_total"), "counter");
  EXPECT_EQ(scrape.at(R"(gemmd_replica_bytes{device="cuda:0"})"), 31);
  EXPECT_EQ(scrape.at(R"(gemmd_replicas_total{device="cuda:0",route="peer"})"), 32);
  EXPECT_EQ(scrape.at(R"(gemmd_replicas_total{device="cuda:0",route="host"})"), 33);
  EXPECT_EQ(scrape.at(R"(gemmd_replica_copied_bytes_total{device="cuda:0"})"), 34);
  EXPECT_EQ(scrape.at(R"(gemmd_replica_reuses_total{device="cuda:0"})"), 35);
  EXPECT_EQ(scrape.at(R"(gemmd_replicas_dropped_total{device="cuda:0"})"), 36);
  metrics.Detach();
}

TEST(EngineGaugesTest, ALostDeviceIsUnhealthyAndTheOthersAreNot) {
  const FakeEngine engine(TwoDevices());
  Metrics metrics(FakeMetricsOptions());
  metrics.Attach(&engine);
  const ParsedScrape scrape = ParseScrape(metrics.Scrape());
  EXPECT_EQ(scrape.at(R"(gemmd_device_healthy{device="cuda:0"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_device_healthy{device="cuda:1"})"), 0);
  EXPECT_EQ(scrape.at(R"(gemmd_device_hangs_total{device="cuda:0"})"), 0);
  EXPECT_EQ(scrape.at(R"(gemmd_device_hangs_total{device="cuda:1"})"), 1);
  EXPECT_EQ(scrape.at(R"(gemmd_matrices_lost_total{device="cuda:1"})"), 41);
  EXPECT_EQ(scrape.at(R"(gemmd_matrices_moved_total{device="cuda:1"})"), 42);
  metrics.Detach();
}

TEST(EngineGaugesTest, ShowsNothingOfAnEngineThatIsNotAttached) {
  Metrics metrics(FakeMetricsOptions());
  EXPECT_FALSE(ParseScrape(metrics.Scrape()).types.contains("gemmd_jobs_in_flight"));
  {
    const FakeEngine engine(TwoDevices());
    metrics.Attach(&engine);
    EXPECT_TRUE(ParseScrape(metrics.Scrape()).types.contains("gemmd_jobs_in_flight"));
    metrics.Detach();
  }
  EXPECT_FALSE(ParseScrape(metrics.Scrape()).types.contains("gemmd_jobs_in_flight"));
}

}  // namespace
}  // namespace gemmd
