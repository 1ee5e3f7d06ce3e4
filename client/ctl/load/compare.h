// Compares a load test with an earlier one.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/ctl/context.h"
#include "client/ctl/load/series.h"

namespace gemmd::ctl {

enum class CompareVerdict { kFaster, kSlower, kSame, kUnclear };
const char* Name(CompareVerdict verdict);

// A figure of both tests. The ratio is new to old; its interval has 95% confidence.
struct Comparison {
  std::string figure;  // "p50", "p90", "p99", "mean" or "rate"
  double before = 0;   // seconds, or requests per second
  double after = 0;
  double ratio = 1, low = 1, high = 1;
  CompareVerdict verdict = CompareVerdict::kUnclear;
};

// The interval comes from a bootstrap over blocks of time. Latencies of one run depend on their
// neighbours: requests queue behind each other, and a pause hits many at once. A draw of single
// requests would take them for independent, and its intervals would be far too narrow. So each test
// is cut into at most kMostBlocks blocks of consecutive windows, and blocks are drawn with
// replacement (E. Carlstein, "The Use of Subseries Values for Estimating the Variance", Annals of
// Statistics 1986). The interval is the percentile interval of B. Efron.
//
// The verdict is "the same" where the whole interval lies within `tolerance` of 1. It is "faster"
// or "slower" where the interval lies on one side of 1. Else it is "unclear": a longer test may
// tell.
inline constexpr size_t kMostBlocks = 20;
inline constexpr size_t kFewestBlocks = 8;

// Every figure. FAILED_PRECONDITION where a test has fewer than kFewestBlocks windows with
// latencies.
absl::StatusOr<std::vector<Comparison>> Compare(const Series& before, const Series& after,
                                                double tolerance);

// The verdict on a ratio of times from its interval.
CompareVerdict VerdictOf(double low, double high, double tolerance);

Json ToJson(const Series& series);
// The series of a document that `gemmctl loadtest --json` wrote.
absl::StatusOr<Series> SeriesFromFile(const std::string& path);

}  // namespace gemmd::ctl
