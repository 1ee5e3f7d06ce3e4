#include "server/rpc/codec/vocabulary.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "google/protobuf/generated_enum_reflection.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

template <typename Proto, typename Ours>
struct Pair {
  Proto proto;
  Ours ours;
};

constexpr Pair<v1::DataType, gemm::DType> kTypes[] = {
    {v1::DATA_TYPE_F64, gemm::DType::kF64},     {v1::DATA_TYPE_F32, gemm::DType::kF32},
    {v1::DATA_TYPE_F16, gemm::DType::kF16},     {v1::DATA_TYPE_BF16, gemm::DType::kBF16},
    {v1::DATA_TYPE_F8E4M3, gemm::DType::kE4M3}, {v1::DATA_TYPE_F8E5M2, gemm::DType::kE5M2},
    {v1::DATA_TYPE_S8, gemm::DType::kS8},       {v1::DATA_TYPE_S32, gemm::DType::kS32},
};
constexpr Pair<v1::ComputeMode, gemm::Compute> kModes[] = {
    {v1::COMPUTE_MODE_F64, gemm::Compute::kF64},     {v1::COMPUTE_MODE_F32, gemm::Compute::kF32},
    {v1::COMPUTE_MODE_TF32, gemm::Compute::kTF32},   {v1::COMPUTE_MODE_F16, gemm::Compute::kF16},
    {v1::COMPUTE_MODE_F32X3, gemm::Compute::kF32x3}, {v1::COMPUTE_MODE_S32, gemm::Compute::kS32},
};
constexpr Pair<v1::Activation, gemm::Activation> kActivations[] = {
    {v1::ACTIVATION_UNSPECIFIED, gemm::Activation::kNone},
    {v1::ACTIVATION_NONE, gemm::Activation::kNone},
    {v1::ACTIVATION_RELU, gemm::Activation::kRelu},
    {v1::ACTIVATION_GELU, gemm::Activation::kGelu},
    {v1::ACTIVATION_LEAKY_RELU, gemm::Activation::kLeakyRelu},
};
constexpr Pair<v1::Layout, bool> kLayouts[] = {
    {v1::LAYOUT_UNSPECIFIED, false},
    {v1::LAYOUT_ROW_MAJOR, false},
    {v1::LAYOUT_COLUMN_MAJOR, true},
};
constexpr Pair<v1::Verify, Verify> kVerify[] = {
    {v1::VERIFY_OFF, Verify::kOff},
    {v1::VERIFY_UNSPECIFIED, Verify::kOff},
    {v1::VERIFY_SAMPLED, Verify::kSampled},
    {v1::VERIFY_ALWAYS, Verify::kAlways},
};
// A lost product has no report.
constexpr Pair<v1::CheckResult, CheckResult> kCheckResults[] = {
    {v1::CHECK_RESULT_PASSED, CheckResult::kPassed},
    {v1::CHECK_RESULT_PARTIAL, CheckResult::kPartial},
    {v1::CHECK_RESULT_UNUSUAL, CheckResult::kUnusual},
    {v1::CHECK_RESULT_SUSPECT, CheckResult::kSuspect},
    {v1::CHECK_RESULT_WRONG, CheckResult::kWrong},
};
constexpr Pair<v1::ChoiceRule, ChoiceRule> kChoiceRules[] = {
    {v1::CHOICE_RULE_UNSPECIFIED, ChoiceRule::kNone},
    {v1::CHOICE_RULE_REQUEST, ChoiceRule::kRequest},
    {v1::CHOICE_RULE_RANK, ChoiceRule::kRank},
    {v1::CHOICE_RULE_TABLE_EXACT, ChoiceRule::kTableExact},
    {v1::CHOICE_RULE_TABLE_NEAR, ChoiceRule::kTableNear},
    {v1::CHOICE_RULE_CHECK, ChoiceRule::kCheck},
    {v1::CHOICE_RULE_ESTIMATE, ChoiceRule::kEstimate},
};
constexpr Pair<v1::OperandRole, Role> kProtoRoles[] = {
    {v1::OPERAND_ROLE_A, Role::kA},
    {v1::OPERAND_ROLE_B, Role::kB},
    {v1::OPERAND_ROLE_C, Role::kC},
    {v1::OPERAND_ROLE_BIAS, Role::kBias},
    {v1::OPERAND_ROLE_SCALES_A, Role::kScalesA},
    {v1::OPERAND_ROLE_SCALES_B, Role::kScalesB},
};

template <typename Proto, typename Ours, size_t kCount>
absl::StatusOr<Ours> Find(const Pair<Proto, Ours> (&table)[kCount], int value,
                          absl::string_view field) {
  for (const Pair<Proto, Ours>& row : table) {
    if (row.proto == value) return row.ours;
  }
  const google::protobuf::EnumDescriptor* type = google::protobuf::GetEnumDescriptor<Proto>();
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0) names.push_back(type->value(i)->name());
  }
  return FieldError(field, absl::StrCat(value == 0 ? "not set" : absl::StrCat(value),
                                        "; give one of ", absl::StrJoin(names, ", ")));
}

// As Find, with nullopt for unspecified.
template <typename Proto, typename Ours, size_t kCount>
absl::StatusOr<std::optional<Ours>> FindOptional(const Pair<Proto, Ours> (&table)[kCount],
                                                 int value, absl::string_view field) {
  if (value == 0) return std::optional<Ours>();
  absl::StatusOr<Ours> found = Find(table, value, field);
  if (!found.ok()) return found.status();
  return std::optional<Ours>(*found);
}

template <typename Proto, typename Ours, size_t kCount>
Proto FindProto(const Pair<Proto, Ours> (&table)[kCount], Ours ours) {
  for (const Pair<Proto, Ours>& row : table) {
    if (row.ours == ours) return row.proto;
  }
  return Proto{};
}

}  // namespace

v1::DataType ToProto(gemm::DType type) { return FindProto(kTypes, type); }
v1::ComputeMode ToProto(gemm::Compute compute) { return FindProto(kModes, compute); }
v1::Layout ToProtoLayout(bool column_major) {
  return column_major ? v1::LAYOUT_COLUMN_MAJOR : v1::LAYOUT_ROW_MAJOR;
}
v1::Verify ToProto(Verify verify) { return FindProto(kVerify, verify); }
v1::OperandRole ToProto(Role role) { return FindProto(kProtoRoles, role); }
v1::CheckResult ToProto(CheckResult result) { return FindProto(kCheckResults, result); }
v1::ChoiceRule ToProto(ChoiceRule rule) { return FindProto(kChoiceRules, rule); }

absl::StatusOr<gemm::DType> ParseDataType(int value, absl::string_view field) {
  return Find(kTypes, value, field);
}
absl::StatusOr<std::optional<gemm::DType>> ParseOptionalDataType(int value,
                                                                 absl::string_view field) {
  return FindOptional(kTypes, value, field);
}
absl::StatusOr<std::optional<gemm::Compute>> ParseComputeMode(int value, absl::string_view field) {
  return FindOptional(kModes, value, field);
}
absl::StatusOr<gemm::Activation> ParseActivation(int value, absl::string_view field) {
  return Find(kActivations, value, field);
}
absl::StatusOr<bool> ParseColumnMajor(int layout, absl::string_view field) {
  return Find(kLayouts, layout, field);
}
absl::StatusOr<Verify> ParseVerify(int value, absl::string_view field) {
  return Find(kVerify, value, field);
}
absl::StatusOr<Role> ParseRole(int value, absl::string_view field) {
  return Find(kProtoRoles, value, field);
}

}  // namespace gemmd
