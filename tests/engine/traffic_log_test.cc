// The log of products that are worth tuning: its sums, and the entries that it drops.
#include "server/engine/core/traffic_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gemmd {
namespace {

gemm::TunedProduct WithM(int64_t m) { return gemm::TunedProduct::Of({.m = m, .n = 2, .k = 3}); }

std::vector<int64_t> MsOf(const std::vector<TrafficEntry>& entries) {
  std::vector<int64_t> ms;
  for (const TrafficEntry& entry : entries) ms.push_back(entry.product.m);
  return ms;
}

bool HasM(const std::vector<int64_t>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

TEST(TrafficLog, AddsUpAndPutsTheLongestFirst) {
  TrafficLog log;
  log.Add(WithM(1), 0.5);
  log.Add(WithM(2), 2);
  for (int i = 0; i < 3; ++i) log.Add(WithM(3), 1);
  gemm::TunedProduct transposed = WithM(1);
  transposed.trans_a = true;
  log.Add(transposed, 0.25);
  const std::vector<TrafficEntry> top = log.Top(100);
  EXPECT_THAT(MsOf(top), ::testing::ElementsAre(3, 2, 1, 1));
  EXPECT_EQ(top[0].count, 3);
  EXPECT_EQ(top[0].seconds, 3);
  EXPECT_EQ(top[3].product, transposed);
  EXPECT_THAT(MsOf(log.Top(2)), ::testing::ElementsAre(3, 2));
  EXPECT_EQ(log.held().used, 4);
  EXPECT_EQ(log.held().limit, 1024);
  EXPECT_EQ(log.dropped(), 0);
}

TEST(TrafficLog, WhereItIsFullTheShortGo) {
  TrafficLog log;
  constexpr int64_t kAll = 1024;
  constexpr int64_t kLong = 100;
  for (int64_t m = 1; m <= kAll; ++m) log.Add(WithM(m), m <= kLong ? 1000 : 1);
  for (int64_t m = kAll + 1; m <= 3 * kAll; ++m) log.Add(WithM(m), 1);
  EXPECT_EQ(log.held().used, kAll);
  EXPECT_EQ(log.dropped(), 2 * kAll);
  const std::vector<TrafficEntry> top = log.Top(kAll);
  ASSERT_EQ(top.size(), static_cast<size_t>(kAll));
  // The last one has come in.
  EXPECT_TRUE(HasM(MsOf(top), 3 * kAll));
  for (int64_t i = 0; i < kLong; ++i) EXPECT_EQ(top[i].product.m, i + 1);
  // Each is found again at its place.
  for (const TrafficEntry& entry : top) log.Add(entry.product, 1);
  EXPECT_EQ(log.dropped(), 2 * kAll);
  for (const TrafficEntry& entry : log.Top(kAll)) EXPECT_EQ(entry.count, 2);
  // One that has gone comes in as a new one.
  int64_t gone = kLong + 1;
  while (HasM(MsOf(top), gone)) ++gone;
  log.Add(WithM(gone), 1e6);
  EXPECT_EQ(log.dropped(), 2 * kAll + 1);
  EXPECT_EQ(log.Top(1)[0].product.m, gone);
  EXPECT_EQ(log.Top(1)[0].count, 1);
}

TEST(TrafficLog, LeavesOutWhatNoBenchmarkTakes) {
  TrafficLog log;
  log.Add(WithM(int64_t{1} << 24), 1);
  log.Add(WithM((int64_t{1} << 24) + 1), 1);
  EXPECT_THAT(MsOf(log.Top(10)), ::testing::ElementsAre(int64_t{1} << 24));
}

TEST(TrafficLog, BeginsAnew) {
  TrafficLog log;
  log.Add(WithM(1), 1);
  log.Clear();
  EXPECT_EQ(log.held().used, 0);
  log.Add(WithM(1), 1);
  ASSERT_EQ(log.Top(10).size(), 1u);
  EXPECT_EQ(log.Top(10)[0].count, 1);
}

}  // namespace
}  // namespace gemmd
