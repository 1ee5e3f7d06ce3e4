#include "client/ctl/load/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/load/histogram.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

constexpr int kDraws = 2000;
constexpr uint64_t kDrawSeed = 1;
constexpr double kTail = 0.025;  // on each side of the interval

constexpr size_t kFigures = 5;
constexpr std::array<const char*, kFigures> kFigureNames = {"p50", "p90", "p99", "mean", "rate"};
// Of the percentiles, which come first.
constexpr std::array<double, 3> kShares = {0.5, 0.9, 0.99};
constexpr size_t kMean = 3, kRate = 4;
using Figures = std::array<double, kFigures>;

// A test in blocks of one length, as rows of counts over the latencies that it has.
class Blocks {
 public:
  // The last window is left out, since the test ended within it.
  explicit Blocks(const Series& series) {
    const size_t windows = series.windows().size() - std::min<size_t>(series.windows().size(), 1);
    const size_t each = std::max<size_t>(1, (windows + kMostBlocks - 1) / kMostBlocks);
    seconds_ = absl::ToDoubleSeconds(series.length()) * static_cast<double>(each);
    std::map<int64_t, size_t> columns;
    std::vector<Window> merged;
    for (size_t begin = 0; begin + each <= windows; begin += each) {
      Window& block = merged.emplace_back();
      for (size_t i = begin; i < begin + each; ++i) block.Merge(series.windows()[i]);
      for (const auto& [bucket, count] : block.latencies) columns[bucket] = 0;
    }
    for (auto& [bucket, column] : columns) {
      column = latencies_.size();
      latencies_.push_back(static_cast<double>(Histogram::HighestOf(bucket)) * 1e-9);
    }
    for (const Window& block : merged) {
      std::vector<double>& counts = counts_.emplace_back(latencies_.size());
      for (const auto& [bucket, count] : block.latencies) {
        counts[columns[bucket]] = static_cast<double>(count);
      }
      succeeded_.push_back(static_cast<double>(block.done - block.failed));
    }
  }

  size_t size() const { return counts_.size(); }
  bool empty() const { return latencies_.empty(); }

  // The figures of the blocks with these numbers together.
  Figures Of(const std::vector<size_t>& drawn) const {
    std::vector<double> sum(latencies_.size());
    double succeeded = 0;
    for (const size_t block : drawn) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += counts_[block][i];
      succeeded += succeeded_[block];
    }
    double count = 0, total = 0;
    for (size_t i = 0; i < sum.size(); ++i) {
      count += sum[i];
      total += sum[i] * latencies_[i];
    }
    Figures figures{};
    for (size_t figure = 0; figure < kShares.size(); ++figure) {
      const double share = kShares[figure];
      double seen = 0;
      for (size_t i = 0; i < sum.size() && seen < share * count; ++i) {
        seen += sum[i];
        figures[figure] = latencies_[i];
      }
    }
    figures[kMean] = total / std::max(count, 1.0);
    figures[kRate] = succeeded / (seconds_ * static_cast<double>(drawn.size()));
    return figures;
  }

  Figures All() const {
    std::vector<size_t> every(size());
    for (size_t i = 0; i < every.size(); ++i) every[i] = i;
    return Of(every);
  }

  Figures Draw(std::mt19937_64& random) const {
    std::vector<size_t> drawn(size());
    for (size_t& block : drawn) block = random() % size();
    return Of(drawn);
  }

 private:
  double seconds_ = 0;             // of a block
  std::vector<double> latencies_;  // in seconds, ascending
  std::vector<std::vector<double>> counts_;
  std::vector<double> succeeded_;
};

absl::Status CheckBlocks(const Blocks& blocks, const char* which) {
  if (blocks.size() >= kFewestBlocks && !blocks.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the ", which, " test has ", blocks.size(), " whole windows, or no latency; at least ",
      kFewestBlocks, " are needed to compare: use a longer --duration"));
}

absl::Status NoSeries(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", path, "' is no file of gemmctl loadtest --json: ", why));
}

absl::StatusOr<Series> SeriesOf(const std::string& path, const Json& json) {
  const Json* const found = [&]() -> const Json* {
    if (!json.is_object() || !json.contains("result")) return nullptr;
    const Json& result = json["result"];
    return result.is_object() && result.contains("series") ? &result["series"] : nullptr;
  }();
  if (found == nullptr || !found->is_object()) return NoSeries(path, "no result.series");
  const double seconds = found->value("window_seconds", 0.0);
  const Json windows = found->value("windows", Json::array());
  if (!(seconds > 0) || !windows.is_array() || windows.size() > Series::kMostWindows) {
    return NoSeries(path, "wrong windows");
  }
  Series series(absl::Seconds(seconds));
  for (const Json& each : windows) {
    if (!each.is_object()) return NoSeries(path, "wrong windows");
    Window window{.done = each.value("done", uint64_t{0}),
                  .failed = each.value("failed", uint64_t{0})};
    const std::string latencies = each.value("latency_buckets", "");
    for (const absl::string_view word : absl::StrSplit(latencies, ' ', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, ':');
      int64_t bucket = 0;
      uint64_t count = 0;
      if (!absl::SimpleAtoi(parts.first, &bucket) || !absl::SimpleAtoi(parts.second, &count) ||
          bucket < 0 || bucket > Histogram::BucketOf(Histogram::kMaxNanoseconds)) {
        return NoSeries(path, "wrong latency_buckets");
      }
      window.latencies[bucket] += count;
    }
    series.Append(std::move(window));
  }
  return series;
}

}  // namespace

const char* Name(CompareVerdict verdict) {
  switch (verdict) {
    case CompareVerdict::kFaster:
      return "faster";
    case CompareVerdict::kSlower:
      return "slower";
    case CompareVerdict::kSame:
      return "the same";
    case CompareVerdict::kUnclear:
      break;
  }
  return "unclear";
}

CompareVerdict VerdictOf(double low, double high, double tolerance) {
  if (low >= 1 / (1 + tolerance) && high <= 1 + tolerance) return CompareVerdict::kSame;
  if (low > 1) return CompareVerdict::kSlower;
  if (high < 1) return CompareVerdict::kFaster;
  return CompareVerdict::kUnclear;
}

absl::StatusOr<std::vector<Comparison>> Compare(const Series& before, const Series& after,
                                                double tolerance) {
  const Blocks old_blocks(before), new_blocks(after);
  absl::Status enough = CheckBlocks(old_blocks, "earlier");
  if (enough.ok()) enough = CheckBlocks(new_blocks, "new");
  if (!enough.ok()) return enough;
  const Figures old_figures = old_blocks.All(), new_figures = new_blocks.All();
  std::mt19937_64 random(kDrawSeed);
  std::array<std::vector<double>, kFigures> ratios;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Figures of_old = old_blocks.Draw(random), of_new = new_blocks.Draw(random);
    for (size_t i = 0; i < kFigures; ++i)
      ratios[i].push_back(of_new[i] / std::max(of_old[i], 1e-12));
  }
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < kFigures; ++i) {
    std::sort(ratios[i].begin(), ratios[i].end());
    const auto at = [&](double share) {
      return ratios[i][static_cast<size_t>(share * (kDraws - 1))];
    };
    Comparison row{.figure = kFigureNames[i],
                   .before = old_figures[i],
                   .after = new_figures[i],
                   .ratio = new_figures[i] / std::max(old_figures[i], 1e-12),
                   .low = at(kTail),
                   .high = at(1 - kTail)};
    // More requests per second are faster.
    row.verdict = i == kRate ? VerdictOf(1 / std::max(row.high, 1e-12),
                                         1 / std::max(row.low, 1e-12), tolerance)
                             : VerdictOf(row.low, row.high, tolerance);
    comparisons.push_back(std::move(row));
  }
  return comparisons;
}

Json ToJson(const Series& series) {
  Json windows = Json::array();
  for (const Window& window : series.windows()) {
    std::string latencies;
    for (const auto& [bucket, count] : window.latencies) {
      absl::StrAppend(&latencies, latencies.empty() ? "" : " ", bucket, ":", count);
    }
    windows.push_back(
        {{"done", window.done}, {"failed", window.failed}, {"latency_buckets", latencies}});
  }
  return {{"window_seconds", absl::ToDoubleSeconds(series.length())}, {"windows", windows}};
}

absl::StatusOr<Series> SeriesFromFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("'", path, "' cannot be read"));
  const Json json = Json::parse(file, nullptr, false);
  if (json.is_discarded()) return NoSeries(path, "not JSON");
  try {
    return SeriesOf(path, json);
  } catch (const Json::exception& error) {
    return NoSeries(path, error.what());
  }
}

}  // namespace gemmd::ctl
