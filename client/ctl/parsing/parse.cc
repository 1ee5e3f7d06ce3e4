#include "client/ctl/parsing/parse.h"

#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "files/size_text.h"

namespace gemmd::ctl {
namespace {

constexpr int64_t kMaxDimension = int64_t{1} << 40;
constexpr int kMaxWeight = 1000;

absl::Status Invalid(absl::string_view text, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not ", wanted));
}

absl::StatusOr<uint64_t> ParseWhole(absl::string_view text, uint64_t least,
                                    absl::string_view what) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < least) return Invalid(text, what);
  return value;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  absl::Duration duration;
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &duration)) {
    return Invalid(text, "a duration such as 250ms, 1.5s or 2m30s");
  }
  if (std::isnan(seconds) || duration <= absl::ZeroDuration()) {
    return Invalid(text, "a duration above 0, such as 250ms, 1.5s or 2m30s");
  }
  return duration;
}

absl::StatusOr<uint64_t> ParseSize(absl::string_view text) {
  const std::optional<size_t> size = files::ParseSize(text);
  if (size.value_or(0) > 0) return *size;
  return Invalid(text, "a size of at least 1 byte, such as 4096, 64KiB, 1MiB or 2GB");
}

absl::StatusOr<double> ParseNumber(absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) return Invalid(text, "a number such as 2, -0.5 or 1e-3");
  return value;
}

absl::StatusOr<double> ParseFraction(absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !(value >= 0 && value <= 1)) {
    return Invalid(text, "a fraction of 0 to 1, such as 0.01");
  }
  return value;
}

absl::StatusOr<uint64_t> ParseCount(absl::string_view text) {
  return ParseWhole(text, 1, "a whole number of at least 1");
}

absl::StatusOr<uint64_t> ParseSeed(absl::string_view text) {
  return ParseWhole(text, 0, "a seed of 0 to 2^64 - 1");
}

absl::StatusOr<uint64_t> ParseVersion(absl::string_view text) {
  return ParseWhole(text, 0, "a version, a whole number of 0 to 2^64 - 1");
}

absl::StatusOr<int64_t> ParseDimension(absl::string_view text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 1 || value > kMaxDimension) {
    return Invalid(text, "a dimension of 1 to 2^40");
  }
  return value;
}

absl::StatusOr<std::vector<int64_t>> ParseExtents(absl::string_view text) {
  std::vector<int64_t> extents;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    int64_t extent = 0;
    if (!absl::SimpleAtoi(word, &extent) || extent < 0 || extent > kMaxDimension) {
      return Invalid(text, "a list of numbers of 0 to 2^40, such as 512,0,37");
    }
    extents.push_back(extent);
  }
  return extents;
}

absl::StatusOr<ProductShape> ParseProductShape(absl::string_view text) {
  std::vector<std::string> parts = absl::StrSplit(text, 'x');
  if (parts.size() == 1) parts.resize(3, parts.front());
  if (parts.size() != 3) {
    return Invalid(text, "a shape MxNxK such as 512x512x64, or one number for a cube");
  }
  std::array<int64_t, 3> dims{};
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto dim = ParseDimension(parts[i]);
    if (!dim.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape '", text, "': ", dim.status().message()));
    }
    dims[i] = *dim;
  }
  return ProductShape{.m = dims[0], .n = dims[1], .k = dims[2]};
}

absl::StatusOr<Weighted> ParseWeighted(absl::string_view text) {
  const size_t equals = text.rfind('=');
  Weighted parsed{.value = std::string(text.substr(0, equals))};
  if (equals != absl::string_view::npos &&
      (!absl::SimpleAtoi(text.substr(equals + 1), &parsed.weight) || parsed.weight < 1 ||
       parsed.weight > kMaxWeight)) {
    return Invalid(text.substr(equals + 1), absl::StrCat("a weight of 1 to ", kMaxWeight));
  }
  if (parsed.value.empty()) return Invalid(text, "value or value=weight");
  return parsed;
}

absl::StatusOr<std::pair<std::string, int64_t>> ParseParam(absl::string_view text) {
  const size_t equals = text.find('=');
  int64_t value = 0;
  if (equals == absl::string_view::npos || equals == 0 ||
      !absl::SimpleAtoi(text.substr(equals + 1), &value)) {
    return Invalid(text, "a launch parameter name=integer such as split_k=4");
  }
  return std::make_pair(std::string(text.substr(0, equals)), value);
}

}  // namespace gemmd::ctl
