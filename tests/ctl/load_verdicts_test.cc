// What a load test says of objectives, rates and earlier tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <string>

#include "client/ctl/load/compare.h"
#include "client/ctl/load/find_rate.h"
#include "client/ctl/load/histogram.h"
#include "client/ctl/load/load_options.h"
#include "client/ctl/load/series.h"
#include "client/ctl/load/slo.h"
#include "nlohmann/json.hpp"
#include "tests/base/temporary_folder.h"

namespace gemmd::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SeriesTest, AWindowHasWhatEndedInIt) {
  Series series(absl::Seconds(1));
  series.AddSuccess(absl::Milliseconds(300), absl::Milliseconds(2));
  series.AddSuccess(absl::Milliseconds(999), absl::Milliseconds(4));
  series.AddFailure(absl::Milliseconds(2500));
  ASSERT_EQ(series.windows().size(), 3);
  EXPECT_EQ(series.windows()[0].done, 2);
  EXPECT_EQ(series.windows()[1].done, 0);
  EXPECT_EQ(series.windows()[2].failed, 1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(PercentileOf(series.windows()[0], 50)), 2, 0.002);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(PercentileOf(series.windows()[0], 100)), 4, 0.004);
  EXPECT_EQ(PercentileOf(series.windows()[1], 50), absl::ZeroDuration());
}

TEST(SeriesTest, ALongTestHasLongerWindowsAndLosesNothing) {
  Series series(absl::Seconds(1));
  constexpr uint64_t kSeconds = 5 * Series::kMostWindows;
  for (uint64_t i = 0; i < kSeconds; ++i) {
    series.AddSuccess(absl::Seconds(i), absl::Milliseconds(1));
  }
  EXPECT_LE(series.windows().size(), Series::kMostWindows);
  EXPECT_EQ(series.length(), absl::Seconds(8));
  uint64_t done = 0;
  for (const Window& window : series.windows()) done += window.done;
  EXPECT_EQ(done, kSeconds);
  EXPECT_EQ(series.windows()[3].done, 8);
}

Window WithLatencies(std::initializer_list<int> milliseconds) {
  Series series(absl::Hours(1));
  for (const int each : milliseconds) {
    series.AddSuccess(absl::ZeroDuration(), absl::Milliseconds(each));
  }
  return series.windows().front();
}

TEST(SloTest, EachObjectiveIsJudgedByItself) {
  const auto slo = ParseSlo("p50<3ms, p100<3ms,errors<30%,errors<20%,rate>1.9,rate>2");
  ASSERT_TRUE(slo.ok()) << slo.status();
  Window window = WithLatencies({1, 2, 2, 9});
  window.done += 1;
  window.failed += 1;
  std::vector<bool> held;
  for (const Finding& finding : Judge(*slo, window, absl::Seconds(2))) {
    held.push_back(finding.held);
  }
  EXPECT_THAT(held, ElementsAre(true, false, true, false, true, false));
}

TEST(SloTest, NothingHoldsNoBound) {
  const auto slo = ParseSlo("p99<1s,errors<1%,rate>1");
  ASSERT_TRUE(slo.ok());
  for (const Finding& finding : Judge(*slo, Window{}, absl::Seconds(1))) {
    EXPECT_FALSE(finding.held) << finding.objective;
  }
}

TEST(SloTest, RefusesWhatIsNoObjective) {
  for (const char* text : {"", "p99", "p101<1s", "p99<", "p99<0", "errors<1", "errors<0%", "rate>0",
                           "q9<1s", "p99<5ms,", "p99>5ms"}) {
    EXPECT_FALSE(ParseSlo(text).ok()) << text;
  }
  std::string many = "p1<1s";
  for (size_t i = 0; i < kMostObjectives; ++i) many += ",p1<1s";
  EXPECT_THAT(ParseSlo(many).status().message(), HasSubstr("at most 16"));
}

// A server of a known capacity: beyond it a queue grows.
class FakeServer {
 public:
  explicit FakeServer(double capacity) : capacity_(capacity) {}

  TrialParts Run(double rate) {
    ++trials;
    Series series(absl::Seconds(1));
    const double growth = std::max(0.0, rate / capacity_ - 1);
    for (int second = 0; second < 6; ++second) {
      series.AddSuccess(absl::Seconds(second),
                        absl::Milliseconds(5) + absl::Seconds(second * growth));
      if (trials == paused_trial) series.AddSuccess(absl::Seconds(second), absl::Seconds(3));
    }
    return PartsOf(series, absl::Seconds(6));
  }

  int trials = 0;
  int paused_trial = 0;

 private:
  const double capacity_;
};

TEST(FindRateTest, FindsTheCapacityFromBothSides) {
  const auto slo = ParseSlo("p99<25ms");
  for (const double first : {1.0, 123.0, 90'000.0}) {
    FakeServer server(200);
    const RateSearch search = FindRate(*slo, first, [&](double rate) { return server.Run(rate); });
    EXPECT_NEAR(search.highest, 200, 0.03 * 200) << first;
    ASSERT_TRUE(search.lowest_broken.has_value());
    EXPECT_LE(*search.lowest_broken, search.highest * kRatePrecision);
  }
}

TEST(FindRateTest, APauseOfTheMachineIsTriedAgain) {
  const auto slo = ParseSlo("p99<25ms");
  for (int paused = 1; paused < 12; ++paused) {
    FakeServer server(200);
    server.paused_trial = paused;
    const RateSearch search = FindRate(*slo, 50, [&](double rate) { return server.Run(rate); });
    EXPECT_NEAR(search.highest, 200, 0.03 * 200) << paused;
  }
}

TEST(FindRateTest, SaysWhereNoRateHoldsAndWhereAllDo) {
  const auto never = ParseSlo("p50<1ms");
  FakeServer slow(200);
  const RateSearch none = FindRate(*never, 10, [&](double rate) { return slow.Run(rate); });
  EXPECT_EQ(none.highest, 0);
  EXPECT_LE(slow.trials, static_cast<int>(kMostTrials));
  const auto always = ParseSlo("p50<1h");
  FakeServer fast(1e12);
  const RateSearch every = FindRate(*always, 10, [&](double rate) { return fast.Run(rate); });
  EXPECT_EQ(every.highest, 1e6);
  EXPECT_FALSE(every.lowest_broken.has_value());
}

TEST(FindRateTest, AStopEndsTheSearch) {
  const auto slo = ParseSlo("p99<25ms");
  const RateSearch search = FindRate(*slo, 10, [](double) { return TrialParts{}; });
  EXPECT_TRUE(search.trials.empty());
}

// Latencies around `milliseconds` whose level wanders within a run, as those of a queue do.
Series Wandering(double milliseconds, uint64_t seed, double spread = 0.02) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Series series;
  double level = 0;
  for (int window = 0; window < 41; ++window) {
    level = 0.5 * level + spread * normal(random);
    for (int i = 0; i < 50; ++i) {
      series.AddSuccess(series.length() * window + absl::Milliseconds(1),
                        absl::Milliseconds(milliseconds * (1 + level + spread * normal(random))));
    }
  }
  return series;
}

CompareVerdict ByMedian(const Series& before, const Series& after) {
  const auto rows = Compare(before, after, 0.05);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows->front().verdict;
}

TEST(CompareTest, ARepetitionIsTheSameAndTenPercentIsSeen) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Series before = Wandering(10, seed);
    EXPECT_EQ(ByMedian(before, Wandering(10, 100 + seed)), CompareVerdict::kSame) << seed;
    EXPECT_EQ(ByMedian(before, Wandering(11, 200 + seed)), CompareVerdict::kSlower) << seed;
    EXPECT_EQ(ByMedian(before, Wandering(9, 300 + seed)), CompareVerdict::kFaster) << seed;
  }
}

// The interval of independent latencies with this spread would be far narrower.
TEST(CompareTest, TheIntervalKnowsThatNeighboursAreAlike) {
  const auto rows = Compare(Wandering(10, 1, 0.1), Wandering(10, 2, 0.1), 0.05);
  ASSERT_TRUE(rows.ok());
  const double of_median = 1.25 * 0.15 / std::sqrt(2000.0);
  const double independent = 2 * 1.96 * std::sqrt(2.0) * of_median;
  EXPECT_GT(rows->front().high - rows->front().low, 3 * independent);
}

TEST(CompareTest, TheVerdictFollowsTheInterval) {
  EXPECT_EQ(VerdictOf(0.97, 1.04, 0.05), CompareVerdict::kSame);
  EXPECT_EQ(VerdictOf(1.01, 1.04, 0.05), CompareVerdict::kSame);
  EXPECT_EQ(VerdictOf(1.01, 1.06, 0.05), CompareVerdict::kSlower);
  EXPECT_EQ(VerdictOf(0.90, 0.99, 0.05), CompareVerdict::kFaster);
  EXPECT_EQ(VerdictOf(0.90, 1.10, 0.05), CompareVerdict::kUnclear);
}

TEST(CompareTest, MoreRequestsPerSecondAreFaster) {
  Series few, many;
  for (int window = 0; window < 20; ++window) {
    for (int i = 0; i < 200; ++i) {
      if (i % 2 == 0) few.AddSuccess(few.length() * window, absl::Milliseconds(1));
      many.AddSuccess(many.length() * window, absl::Milliseconds(1));
    }
  }
  const auto rows = Compare(few, many, 0.05);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->back().figure, "rate");
  EXPECT_NEAR(rows->back().ratio, 2, 1e-9);
  EXPECT_EQ(rows->back().verdict, CompareVerdict::kFaster);
  EXPECT_EQ(rows->front().verdict, CompareVerdict::kSame);
}

TEST(CompareTest, AShortTestIsRefused) {
  Series brief;
  brief.AddSuccess(absl::Seconds(0), absl::Milliseconds(1));
  const auto rows = Compare(brief, Wandering(10, 1), 0.05);
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(rows.status().message(), HasSubstr("the earlier test has"));
}

TEST(CompareTest, AFileHasTheSeriesThatWasWritten) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("old.json");
  const Series series = Wandering(10, 1);
  std::ofstream(path) << Json{{"result", {{"series", ToJson(series)}}}};
  const auto read = SeriesFromFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), ToJson(series));
}

TEST(CompareTest, OtherFilesAreRefusedByName) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("old.json");
  EXPECT_EQ(SeriesFromFile(path).status().code(), absl::StatusCode::kNotFound);
  for (
      const char* text :
      {"", "[]", "{}", R"({"result": 3})", R"({"result": {"series": {}}})",
       R"({"result": {"series": {"window_seconds": "1", "windows": []}}})",
       R"({"result": {"series": {"window_seconds": 1, "windows": [3]}}})",
       R"({"result": {"series": {"window_seconds": 1, "windows": [{"done": "x"}]}}})",
       R"({"result": {"series": {"window_seconds": 1, "windows": [{"latency_buckets": "-1:2"}]}}})"}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_THAT(SeriesFromFile(path).status().message(), HasSubstr("old.json")) << text;
  }
}

TEST(LoadOptionsTest, ASweepDoublesUpToItsEnd) {
  EXPECT_THAT(*ParseSweep("concurrency=1..8"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(*ParseSweep("concurrency=3..20"), ElementsAre(3, 6, 12, 20));
  EXPECT_THAT(*ParseSweep("concurrency=4..4"), ElementsAre(4));
  for (const char* text : {"", "1..4", "concurrency=0..4", "concurrency=4..1",
                           "concurrency=1..9999", "concurrency=1", "concurrency=1..2..3"}) {
    EXPECT_FALSE(ParseSweep(text).ok()) << text;
  }
}

TEST(LoadOptionsTest, RefusesOptionsThatDoNotGoTogether) {
  const std::vector<Objective> slo = *ParseSlo("p99<1s");
  EXPECT_TRUE(CheckOptions({.slo = slo, .find_rate = true}).ok());
  EXPECT_FALSE(CheckOptions({.find_rate = true}).ok());
  EXPECT_FALSE(CheckOptions({.requests = 5, .slo = slo, .find_rate = true}).ok());
  EXPECT_FALSE(CheckOptions({.concurrency = 2, .sweep = {1, 2}}).ok());
  EXPECT_FALSE(CheckOptions({.rate = 2, .sweep = {1, 2}}).ok());
  EXPECT_FALSE(CheckOptions({.sweep = {1, 2}, .compare = "old.json"}).ok());
  EXPECT_FALSE(CheckOptions({.arrivals = Arrivals::kPoisson}).ok());
}

}  // namespace
}  // namespace gemmd::ctl
