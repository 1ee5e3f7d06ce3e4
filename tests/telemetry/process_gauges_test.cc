#include "server/telemetry/process_gauges.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace gemmd {
namespace {

TEST(ProcessGaugesTest, ShowsThisProcess) {
  const absl::Time started = absl::UnixEpoch() + absl::Seconds(1700000000);
  std::map<std::string, double> values;
  for (const auto& family : ProcessGauges(started).Collect()) {
    ASSERT_EQ(family.metric.size(), 1) << family.name;
    const bool is_counter = family.type == prometheus::MetricType::Counter;
    values[family.name] =
        is_counter ? family.metric[0].counter.value : family.metric[0].gauge.value;
  }
  EXPECT_EQ(values["process_start_time_seconds"], 1700000000);
  EXPECT_GT(values["process_resident_memory_bytes"], 1e6);
  EXPECT_GE(values["process_virtual_memory_bytes"], values["process_resident_memory_bytes"]);
  EXPECT_GT(values["process_cpu_seconds_total"], 0);
  EXPECT_GE(values["process_open_fds"], 3);
  EXPECT_GE(values["process_max_fds"], values["process_open_fds"]);
}

}  // namespace
}  // namespace gemmd
