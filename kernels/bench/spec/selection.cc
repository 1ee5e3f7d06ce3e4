#include "kernels/bench/spec/selection.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gemm::bench {
namespace {

template <class T>
bool Fits(const std::optional<T>& wanted, T given) {
  return !wanted.has_value() || *wanted == given;
}

absl::StatusOr<TypesPattern> ParsePattern(absl::string_view word) {
  const std::vector<absl::string_view> parts = absl::StrSplit(word, ':');
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("types \"", word, "\": ", why,
                     "; write A:B:D:COMPUTE, such as f16:f16:f16:f32, * for any, and leave out ",
                     "what may be anything"));
  };
  if (parts.size() > 4) return wrong("more than four parts");
  TypesPattern pattern;
  std::optional<DType>* const fields[] = {&pattern.a, &pattern.b, &pattern.d};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "*") continue;
    if (i == 3) {
      pattern.compute = ParseCompute(parts[i]);
      if (!pattern.compute) return wrong(absl::StrCat("\"", parts[i], "\" is no arithmetic"));
    } else {
      std::optional<DType>& field = *fields[i];
      field = ParseDType(parts[i]);
      if (!field) return wrong(absl::StrCat("\"", parts[i], "\" is no element type"));
    }
  }
  return pattern;
}

}  // namespace

std::string TypesName(const Types& types) {
  return absl::StrCat(Name(types.a), ":", Name(types.b), ":", Name(types.d), ":",
                      Name(types.compute));
}

bool TypesPattern::Matches(const Types& types) const {
  return Fits(a, types.a) && Fits(b, types.b) && Fits(d, types.d) && Fits(compute, types.compute);
}

absl::StatusOr<std::vector<TypesPattern>> ParseTypesPatterns(absl::string_view text) {
  std::vector<TypesPattern> patterns;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const absl::StatusOr<TypesPattern> pattern = ParsePattern(word);
    if (!pattern.ok()) return pattern.status();
    patterns.push_back(*pattern);
  }
  return patterns;
}

}  // namespace gemm::bench
