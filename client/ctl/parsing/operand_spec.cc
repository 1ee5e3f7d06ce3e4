#include "client/ctl/parsing/operand_spec.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/ctl/parsing/parse.h"
#include "gemm/quote.h"

namespace gemmd::ctl {
namespace {

constexpr absl::string_view kRandomPrefix = "random:";
constexpr absl::string_view kIdPrefix = "id:";
constexpr absl::string_view kSharedPrefix = "shared:";

// The value, or an error that lists all names of the contract's enum, whose values
// are 1 to `last`.
template <typename Enum>
absl::StatusOr<Enum> Named(absl::string_view text, std::optional<Enum> value,
                           absl::string_view what, int last) {
  if (value.has_value()) return *value;
  std::string names;
  for (int i = 1; i <= last; ++i) {
    absl::StrAppend(&names, i == 1 ? "" : ", ", client::Name(static_cast<Enum>(i)));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not ", what, "; there are ", names));
}

absl::Status InvalidOperand(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("operand '", text, "': ", why));
}

client::Uniform DefaultFor(client::DataType dtype) {
  return dtype == client::kS8 ? kWholeOfS8 : client::Uniform{};
}

// uniform[,LOW,HIGH] or normal[,MEAN,STDDEV]
absl::StatusOr<client::Distribution> ParseDistribution(absl::string_view text,
                                                       client::DataType dtype) {
  if (text == "uniform") return DefaultFor(dtype);
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  double first = 0;
  double second = 1;
  const bool numbers =
      words.size() == 1 || (words.size() == 3 && absl::SimpleAtod(words[1], &first) &&
                            absl::SimpleAtod(words[2], &second));
  if (numbers && words[0] == "uniform" && first < second && std::isfinite(second - first)) {
    return client::Uniform{.low = first, .high = second};
  }
  if (numbers && words[0] == "normal" && std::isfinite(first) && std::isfinite(second) &&
      second > 0) {
    return client::Normal{.mean = first, .stddev = second};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "' is not uniform, uniform,LOW,HIGH with LOW < HIGH, normal, or "
                   "normal,MEAN,STDDEV with STDDEV > 0"));
}

absl::Status ParseGeneratedParts(const std::vector<std::string>& parts,
                                 client::Generated& generated) {
  const std::vector<std::string> dims = absl::StrSplit(parts[0], 'x');
  if (dims.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", parts[0], "' is not ROWSxCOLS such as 512x64"));
  }
  const auto rows = ParseDimension(dims[0]);
  if (!rows.ok()) return rows.status();
  const auto cols = ParseDimension(dims[1]);
  if (!cols.ok()) return cols.status();
  const auto dtype = ParseDataTypeName(parts[1]);
  if (!dtype.ok()) return dtype.status();
  generated.shape = {.rows = *rows, .cols = *cols, .dtype = *dtype};
  generated.distribution = DefaultFor(*dtype);
  if (parts.size() > 2 && !absl::SimpleAtoi(parts[2], &generated.seed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", parts[2], "' is not a seed of 0 to 2^64 - 1"));
  }
  if (parts.size() > 3) {
    const auto distribution = ParseDistribution(parts[3], *dtype);
    if (!distribution.ok()) return distribution.status();
    generated.distribution = *distribution;
  }
  if (parts.size() > 4) {
    const auto layout = ParseLayoutName(parts[4]);
    if (!layout.ok()) return layout.status();
    generated.shape.layout = *layout;
  }
  return absl::OkStatus();
}

absl::StatusOr<OperandSpec> ParseGenerated(absl::string_view text, absl::string_view rest) {
  const std::vector<std::string> parts = absl::StrSplit(rest, ':');
  if (parts.size() < 2 || parts.size() > 5) {
    return InvalidOperand(text, "expected random:ROWSxCOLS:DTYPE[:SEED[:DISTRIBUTION[:LAYOUT]]]");
  }
  client::Generated generated;
  const absl::Status status = ParseGeneratedParts(parts, generated);
  if (!status.ok()) return InvalidOperand(text, status.message());
  return generated;
}

}  // namespace

absl::StatusOr<std::string> ParseNewName(absl::string_view text) {
  constexpr size_t kMostBytes = 128;
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("._/-", c);
  });
  if (plain && text.size() <= kMostBytes) return std::string(text);
  return absl::InvalidArgumentError(
      absl::StrCat(gemm::Quoted(text), " is no name: it must be 1 to ", kMostBytes,
                   " of [A-Za-z0-9._/-], without the @ of an operand"));
}

absl::StatusOr<client::DataType> ParseDataTypeName(absl::string_view text) {
  return Named(text, client::ParseDataType(text), "an element type", client::kS32);
}

absl::StatusOr<client::Layout> ParseLayoutName(absl::string_view text) {
  return Named(text, client::ParseLayout(text), "a layout", client::kColumnMajor);
}

absl::StatusOr<client::Activation> ParseActivationName(absl::string_view text) {
  return Named(text, client::ParseActivation(text), "an activation", client::kLeakyRelu);
}

absl::StatusOr<client::ComputeMode> ParseComputeName(absl::string_view text) {
  return Named(text, client::ParseComputeMode(text), "a compute mode", client::kComputeS32);
}

absl::StatusOr<client::Verify> ParseVerifyName(absl::string_view text) {
  return Named(text, client::ParseVerify(text), "a kind of check", client::kVerifyAlways);
}

absl::StatusOr<client::Resident> ParseResident(absl::string_view text) {
  absl::string_view rest = text;
  const bool by_id = absl::ConsumePrefix(&rest, kIdPrefix);
  const bool shared = !by_id && absl::ConsumePrefix(&rest, kSharedPrefix);
  if (!by_id && !shared) absl::ConsumePrefix(&rest, "@");
  if (rest.empty()) return InvalidOperand(text, "the name or id of the resident matrix is empty");
  if (by_id) return client::Resident::ById(std::string(rest));
  if (!shared) return client::Resident::ByName(std::string(rest));
  // A name has no colon; a caller may have one.
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) {
    return client::Resident::BySharedName(std::string(rest));
  }
  if (colon == 0 || colon + 1 == rest.size()) {
    return InvalidOperand(text, "expected shared:NAME or shared:OWNER:NAME");
  }
  client::Resident resident = client::Resident::BySharedName(std::string(rest.substr(colon + 1)));
  resident.owner = std::string(rest.substr(0, colon));
  return resident;
}

absl::StatusOr<OperandSpec> ParseOperandSpec(absl::string_view text) {
  if (text.empty()) return InvalidOperand(text, absl::StrCat("expected ", kOperandHelp));
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, kRandomPrefix)) return ParseGenerated(text, rest);
  if (absl::StartsWith(text, "@") || absl::StartsWith(text, kIdPrefix) ||
      absl::StartsWith(text, kSharedPrefix)) {
    const auto resident = ParseResident(text);
    if (!resident.ok()) return resident.status();
    return *resident;
  }
  return NpyFile{.path = std::string(text)};
}

}  // namespace gemmd::ctl
