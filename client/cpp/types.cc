#include "gemmd/client/types.h"

#include <utility>

#include "absl/types/span.h"

namespace gemmd::client {
namespace {

template <typename E>
using Names = absl::Span<const std::pair<E, absl::string_view>>;

constexpr std::pair<DataType, absl::string_view> kDataTypes[] = {
    {kF64, "f64"},     {kF32, "f32"},     {kF16, "f16"}, {kBF16, "bf16"},
    {kF8E4M3, "e4m3"}, {kF8E5M2, "e5m2"}, {kS8, "s8"},   {kS32, "s32"},
};
constexpr std::pair<Layout, absl::string_view> kLayouts[] = {
    {kRowMajor, "row"},
    {kColumnMajor, "column"},
};
constexpr std::pair<Activation, absl::string_view> kActivations[] = {
    {kNoActivation, "none"},
    {kRelu, "relu"},
    {kGelu, "gelu"},
    {kLeakyRelu, "leaky_relu"},
};
constexpr std::pair<ComputeMode, absl::string_view> kComputeModes[] = {
    {kDefaultCompute, "default"}, {kComputeF64, "f64"}, {kComputeF32, "f32"},
    {kComputeTF32, "tf32"},       {kComputeF16, "f16"}, {kComputeF32x3, "f32x3"},
    {kComputeS32, "s32"},
};

constexpr std::pair<Verify, absl::string_view> kVerify[] = {
    {kVerifyOff, "off"},
    {kVerifySampled, "sampled"},
    {kVerifyAlways, "always"},
};
constexpr std::pair<CheckResult, absl::string_view> kCheckResults[] = {
    {::gemm::v1::CHECK_RESULT_UNSPECIFIED, "not checked"},
    {::gemm::v1::CHECK_RESULT_PASSED, "passed"},
    {::gemm::v1::CHECK_RESULT_PARTIAL, "partial"},
    {::gemm::v1::CHECK_RESULT_UNUSUAL, "unusual"},
    {::gemm::v1::CHECK_RESULT_SUSPECT, "suspect"},
    {::gemm::v1::CHECK_RESULT_WRONG, "wrong"},
};

template <typename E>
absl::string_view NameIn(Names<E> names, E value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return "?";
}

template <typename E>
std::optional<E> FindIn(Names<E> names, absl::string_view wanted) {
  for (const auto& [value, name] : names) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

}  // namespace

size_t SizeOf(DataType type) {
  switch (type) {
    case kF64:
      return 8;
    case kF32:
    case kS32:
      return 4;
    case kF16:
    case kBF16:
      return 2;
    case kF8E4M3:
    case kF8E5M2:
    case kS8:
      return 1;
    default:
      return 0;
  }
}

absl::string_view Name(DataType type) { return NameIn<DataType>(kDataTypes, type); }
absl::string_view Name(Layout layout) { return NameIn<Layout>(kLayouts, layout); }
absl::string_view Name(Activation activation) {
  return NameIn<Activation>(kActivations, activation);
}
absl::string_view Name(ComputeMode compute) { return NameIn<ComputeMode>(kComputeModes, compute); }
absl::string_view Name(Verify verify) { return NameIn<Verify>(kVerify, verify); }
absl::string_view Name(CheckResult result) { return NameIn<CheckResult>(kCheckResults, result); }

std::optional<DataType> ParseDataType(absl::string_view name) {
  return FindIn<DataType>(kDataTypes, name);
}
std::optional<Layout> ParseLayout(absl::string_view name) { return FindIn<Layout>(kLayouts, name); }
std::optional<Activation> ParseActivation(absl::string_view name) {
  return FindIn<Activation>(kActivations, name);
}
std::optional<ComputeMode> ParseComputeMode(absl::string_view name) {
  return FindIn<ComputeMode>(kComputeModes, name);
}

std::optional<Verify> ParseVerify(absl::string_view name) { return FindIn<Verify>(kVerify, name); }

}  // namespace gemmd::client
