#include "tests/telemetry/scrape.h"

#include <cctype>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

bool IsName(absl::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != ':') return false;
  }
  return true;
}

bool IsType(absl::string_view text) {
  return text == "counter" || text == "gauge" || text == "histogram" || text == "summary";
}

// The family of a sample: a histogram's and a summary's parts belong to the
// name they extend.
std::string FamilyOf(const ParsedScrape& scrape, const std::string& name) {
  for (const char* suffix : {"_bucket", "_count", "_sum"}) {
    if (!absl::EndsWith(name, suffix)) continue;
    const std::string base(absl::StripSuffix(name, suffix));
    const auto type = scrape.types.find(base);
    if (type != scrape.types.end() && (type->second == "histogram" || type->second == "summary")) {
      return base;
    }
  }
  return name;
}

// Labels of a series in the order of their names. The values of this server
// hold no comma, quote or backslash.
std::string SortLabels(absl::string_view labels) {
  std::set<std::string> sorted;
  for (const absl::string_view label : absl::StrSplit(labels, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(label, absl::MaxSplits('=', 1));
    absl::string_view value = parts.second;
    EXPECT_TRUE(IsName(parts.first) && absl::ConsumePrefix(&value, "\"") &&
                absl::ConsumeSuffix(&value, "\"") && !absl::StrContains(value, '"'))
        << "malformed label: " << label;
    EXPECT_TRUE(sorted.insert(std::string(label)).second) << "twice: " << label;
  }
  return absl::StrJoin(sorted, ",");
}

void ParseSample(const std::string& line, ParsedScrape& scrape) {
  // Label values may have spaces.
  const size_t space = line.rfind(' ');
  double value = 0;
  ASSERT_TRUE(space != std::string::npos && absl::SimpleAtod(line.substr(space + 1), &value))
      << "malformed: " << line;
  const std::pair<absl::string_view, absl::string_view> series_parts =
      absl::StrSplit(absl::string_view(line).substr(0, space), absl::MaxSplits('{', 1));
  std::string series(series_parts.first);
  ASSERT_TRUE(IsName(series)) << "malformed: " << line;
  const std::string family = FamilyOf(scrape, series);
  EXPECT_TRUE(scrape.types.contains(family)) << "no TYPE before " << line;
  EXPECT_TRUE(scrape.helps.contains(family)) << "no HELP before " << line;
  if (absl::string_view labels = series_parts.second; !labels.empty()) {
    ASSERT_TRUE(absl::ConsumeSuffix(&labels, "}")) << "malformed: " << line;
    series += "{" + SortLabels(labels) + "}";
  }
  EXPECT_TRUE(scrape.samples.emplace(series, value).second) << "twice: " << series;
}

// "# HELP name text" or "# TYPE name type".
void ParseComment(const std::string& line, ParsedScrape& scrape) {
  const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 3));
  ASSERT_TRUE(parts.size() == 4 && parts[0] == "#" && IsName(parts[2])) << "malformed: " << line;
  if (parts[1] == "HELP") {
    EXPECT_TRUE(scrape.helps.emplace(parts[2], parts[3]).second) << "twice: " << line;
  } else {
    ASSERT_TRUE(parts[1] == "TYPE" && IsType(parts[3])) << "malformed: " << line;
    EXPECT_TRUE(scrape.types.emplace(parts[2], parts[3]).second) << "twice: " << line;
  }
}

}  // namespace

double ParsedScrape::at(const std::string& series) const {
  const auto found = samples.find(series);
  if (found != samples.end()) return found->second;
  ADD_FAILURE() << "no sample of " << series;
  return std::numeric_limits<double>::quiet_NaN();
}

std::set<std::string> ParsedScrape::LabelValues(const std::string& name,
                                                const std::string& label) const {
  std::set<std::string> values;
  for (const auto& [series, value] : samples) {
    absl::string_view labels = series;
    if (!absl::ConsumePrefix(&labels, name + "{")) continue;
    absl::ConsumeSuffix(&labels, "}");
    for (absl::string_view each : absl::StrSplit(labels, ',')) {
      if (!absl::ConsumePrefix(&each, label + "=\"")) continue;
      absl::ConsumeSuffix(&each, "\"");
      values.emplace(each);
    }
  }
  return values;
}

ParsedScrape ParseScrape(const std::string& text) {
  ParsedScrape scrape;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (line.empty()) continue;
    if (line[0] == '#') {
      ParseComment(line, scrape);
    } else {
      ParseSample(line, scrape);
    }
  }
  return scrape;
}

}  // namespace gemmd
