#include "server/rpc/inference/tensors.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

struct TypeRow {
  gemm::DType type;
  absl::string_view name;  // that no other type has
  absl::string_view datatype;
  inference::DataType config;
};

constexpr absl::string_view kBytesOfFp8 = "UINT8";

constexpr TypeRow kTypeRows[] = {
    {gemm::DType::kF64, "FP64", "FP64", inference::TYPE_FP64},
    {gemm::DType::kF32, "FP32", "FP32", inference::TYPE_FP32},
    {gemm::DType::kF16, "FP16", "FP16", inference::TYPE_FP16},
    {gemm::DType::kBF16, "BF16", "BF16", inference::TYPE_BF16},
    {gemm::DType::kE4M3, "E4M3", kBytesOfFp8, inference::TYPE_UINT8},
    {gemm::DType::kE5M2, "E5M2", kBytesOfFp8, inference::TYPE_UINT8},
    {gemm::DType::kS8, "INT8", "INT8", inference::TYPE_INT8},
    {gemm::DType::kS32, "INT32", "INT32", inference::TYPE_INT32},
};

const TypeRow& RowOf(gemm::DType type) {
  for (const TypeRow& row : kTypeRows) {
    if (row.type == type) return row;
  }
  return kTypeRows[0];
}

// Elements of one field, each as an `Element`.
template <typename Element, typename Field>
absl::StatusOr<std::string> PackField(const Field& elements, absl::string_view field) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(elements.size()) * sizeof(Element));
  for (const auto value : elements) {
    const auto element = static_cast<Element>(value);
    if constexpr (std::numeric_limits<Element>::is_integer) {
      if (element != value) {
        return FieldError(field, absl::StrCat(value, "; elements are from ",
                                              int64_t{std::numeric_limits<Element>::min()}, " to ",
                                              int64_t{std::numeric_limits<Element>::max()}));
      }
    }
    bytes.append(reinterpret_cast<const char*>(&element), sizeof(Element));
  }
  return bytes;
}

int CountElements(const inference::InferTensorContents& contents) {
  return contents.bool_contents_size() + contents.int_contents_size() +
         contents.int64_contents_size() + contents.uint_contents_size() +
         contents.uint64_contents_size() + contents.fp32_contents_size() +
         contents.fp64_contents_size() + contents.bytes_contents_size();
}

template <typename Element, typename Field>
absl::StatusOr<std::string> PackOnly(const inference::InferTensorContents& contents,
                                     const Field& elements, absl::string_view name,
                                     absl::string_view field) {
  if (CountElements(contents) != elements.size()) {
    return FieldError(field, absl::StrCat("its elements belong into ", name, " alone"));
  }
  return PackField<Element>(elements, absl::StrCat(field, ".", name));
}

}  // namespace

absl::string_view DatatypeName(gemm::DType type) { return RowOf(type).datatype; }
inference::DataType ConfigType(gemm::DType type) { return RowOf(type).config; }

absl::StatusOr<gemm::DType> ParseTypeName(absl::string_view name, absl::string_view field) {
  for (const TypeRow& row : kTypeRows) {
    if (row.name == name) return row.type;
  }
  return FieldError(field,
                    absl::StrCat(gemm::Quoted(name),
                                 "; allowed: FP64, FP32, FP16, BF16, E4M3, E5M2, INT8, INT32"));
}

absl::StatusOr<gemm::DType> ParseDatatype(absl::string_view datatype, absl::string_view fp8,
                                          absl::string_view field, absl::string_view parameter) {
  if (datatype == kBytesOfFp8) {
    if (fp8 == "E4M3") return gemm::DType::kE4M3;
    if (fp8 == "E5M2") return gemm::DType::kE5M2;
    return FieldError(absl::StrCat("parameters.", parameter),
                      absl::StrCat(fp8.empty() ? "not set" : gemm::Quoted(fp8),
                                   "; bytes of UINT8 are E4M3 or E5M2: say which"));
  }
  if (!fp8.empty()) {
    return FieldError(
        absl::StrCat("parameters.", parameter),
        absl::StrCat("set for an input of ", gemm::Quoted(datatype), "; it is for UINT8"));
  }
  for (const TypeRow& row : kTypeRows) {
    if (row.datatype == datatype) return row.type;
  }
  return FieldError(field, absl::StrCat(gemm::Quoted(datatype),
                                        "; allowed: FP64, FP32, FP16, BF16, UINT8, INT8"));
}

absl::StatusOr<std::string> PackContents(const inference::InferTensorContents& contents,
                                         gemm::DType type, absl::string_view field) {
  switch (type) {
    case gemm::DType::kF64:
      return PackOnly<double>(contents, contents.fp64_contents(), "fp64_contents", field);
    case gemm::DType::kF32:
      return PackOnly<float>(contents, contents.fp32_contents(), "fp32_contents", field);
    case gemm::DType::kS8:
      return PackOnly<int8_t>(contents, contents.int_contents(), "int_contents", field);
    case gemm::DType::kS32:
      return PackOnly<int32_t>(contents, contents.int_contents(), "int_contents", field);
    case gemm::DType::kE4M3:
    case gemm::DType::kE5M2:
      return PackOnly<uint8_t>(contents, contents.uint_contents(), "uint_contents", field);
    case gemm::DType::kF16:
    case gemm::DType::kBF16:
      break;
  }
  return FieldError(field, absl::StrCat("set for ", DatatypeName(type),
                                        ", which it has no field for: use raw_input_contents"));
}

}  // namespace gemmd
