#include "server/identity/quotas.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "files/size_text.h"
#include "gemm/quote.h"
#include "server/base/bytes.h"
#include "server/identity/callers.h"
#include "server/identity/lines.h"

namespace gemmd {
namespace {

constexpr absl::string_view kQuotaForm =
    "allowed: NAME, role:ROLE or *, then KEY=VALUE words such as jobs=100, or a comment after #";
constexpr double kLeastWeight = 0.01;
constexpr double kMostWeight = 100;
constexpr int64_t kMostBytes = int64_t{64} << 40;

// A whole number, or a size in bytes.
struct QuotaKey {
  absl::string_view name;
  int64_t CallerQuota::*field;
  bool is_size;
  int64_t least;
  int64_t most;
};
constexpr QuotaKey kQuotaKeys[] = {
    {"jobs", &CallerQuota::jobs, false, 0, 10'000'000},
    {"admitted-bytes", &CallerQuota::admitted_bytes, true, 0, kMostBytes},
    {"matrices", &CallerQuota::matrices, false, 0, 100'000'000},
    {"store-bytes", &CallerQuota::store_bytes, true, 0, kMostBytes},
    {"streams", &CallerQuota::streams, false, 1, 1'000'000},
    // A message of a few megabytes is then made up for within a minute or two.
    {"bytes-per-second", &CallerQuota::bytes_per_second, true, 64 * kKiB, kMostBytes},
};

absl::Status WrongValue(absl::string_view key, absl::string_view value, absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": ", gemm::Quoted(value), "; allowed: ", allowed));
}

absl::Status SetWeight(absl::string_view value, CallerQuota& quota) {
  double weight = 0;
  if (!absl::SimpleAtod(value, &weight) || !(weight >= kLeastWeight && weight <= kMostWeight)) {
    return WrongValue("weight", value,
                      absl::StrCat("a number from ", kLeastWeight, " to ", kMostWeight));
  }
  quota.weight = weight;
  return absl::OkStatus();
}

absl::Status SetBound(const QuotaKey& key, absl::string_view value, CallerQuota& quota) {
  const auto text = [&key](int64_t bound) {
    return key.is_size ? files::FormatSize(static_cast<size_t>(bound)) : absl::StrCat(bound);
  };
  int64_t number = -1;
  if (key.is_size) {
    if (const auto size = files::ParseSize(value)) number = static_cast<int64_t>(*size);
  } else if (!absl::SimpleAtoi(value, &number)) {
    number = -1;
  }
  if (number < key.least || number > key.most) {
    return WrongValue(key.name, value,
                      absl::StrCat(key.is_size ? "a size from " : "a whole number from ",
                                   text(key.least), " to ", text(key.most)));
  }
  quota.*key.field = number;
  return absl::OkStatus();
}

std::string KeyNames() {
  return absl::StrCat(
      absl::StrJoin(kQuotaKeys, ", ",
                    [](std::string* out, const QuotaKey& key) { absl::StrAppend(out, key.name); }),
      ", weight");
}

// One word of a line.
absl::Status SetWord(absl::string_view word, CallerQuota& quota,
                     std::set<absl::string_view>& seen) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(word, absl::MaxSplits('=', 1));
  const auto& [name, value] = parts;
  if (name.size() == word.size()) {
    return absl::InvalidArgumentError(absl::StrCat(gemm::Quoted(word), "; ", kQuotaForm));
  }
  if (!seen.insert(name).second) {
    return absl::InvalidArgumentError(absl::StrCat(gemm::Quoted(name), ": twice in this line"));
  }
  if (name == "weight") return SetWeight(value, quota);
  const auto* const key =
      std::find_if(std::begin(kQuotaKeys), std::end(kQuotaKeys),
                   [name = name](const QuotaKey& one) { return one.name == name; });
  if (key != std::end(kQuotaKeys)) return SetBound(*key, value, quota);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown key ", gemm::Quoted(name), "; allowed: ", KeyNames()));
}

CallerQuotaPtr QuotaFor(const CallerQuota& quota, const std::string& caller) {
  auto own = std::make_shared<CallerQuota>(quota);
  own->caller = caller;
  return own;
}

}  // namespace

absl::StatusOr<Quotas> Quotas::Parse(absl::string_view text) {
  Quotas quotas;
  absl::Status status = ForEachLine(
      text, "quotas", [&quotas](absl::string_view line) { return quotas.AddLine(line); });
  if (!status.ok()) return status;
  // A file without a bound for anybody was more likely cut than meant.
  if (quotas.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("no quota in it; ", kQuotaForm));
  }
  if (status = CheckLastLine(text); !status.ok()) return status;
  return quotas;
}

absl::Status Quotas::AddLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("no KEY=VALUE in it; ", kQuotaForm));
  }
  CallerQuota quota;
  std::set<absl::string_view> seen;
  for (size_t i = 1; i < words.size(); ++i) {
    if (absl::Status status = SetWord(words[i], quota, seen); !status.ok()) return status;
  }
  absl::Status twice = absl::InvalidArgumentError(
      absl::StrCat(gemm::Quoted(words[0]), ": a line before has it, too"));
  absl::string_view role_name = words[0];
  if (words[0] == "*") {
    if (everybody_.has_value()) return twice;
    everybody_ = std::move(quota);
  } else if (absl::ConsumePrefix(&role_name, "role:")) {
    const absl::StatusOr<CallerRole> role = ParseCallerRole(role_name);
    if (!role.ok())
      return absl::InvalidArgumentError(absl::StrCat("role: ", role.status().message()));
    const bool known = std::any_of(roles_.begin(), roles_.end(),
                                   [&role](const auto& one) { return one.first == *role; });
    if (known) return twice;
    roles_.emplace_back(*role, std::move(quota));
  } else {
    if (absl::Status status = CheckCallerName(words[0]); !status.ok()) return status;
    std::string name(words[0]);
    CallerQuotaPtr own = QuotaFor(quota, name);
    if (!callers_.emplace(std::move(name), std::move(own)).second) return twice;
  }
  return absl::OkStatus();
}

std::vector<std::string> Quotas::names() const {
  std::vector<std::string> names;
  for (const auto& [name, quota] : callers_) names.push_back(name);
  return names;
}

CallerQuotaPtr Quotas::Of(const Caller& caller) const {
  if (const auto named = callers_.find(caller.name); named != callers_.end()) return named->second;
  for (const auto& [role, quota] : roles_) {
    if (caller.roles.Has(role)) return QuotaFor(quota, caller.name);
  }
  return QuotaFor(everybody_.value_or(CallerQuota()), caller.name);
}

}  // namespace gemmd
