// The contract's enumerations under shorter names, and their names in text.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"
#include "gemm/v1/gemm.pb.h"

namespace gemmd::client {

// The contract's messages that are part of this library's interface: the reports of
// a server, and the request of a benchmark, which has no payload.
using ::gemm::v1::BenchmarkEnd;
using ::gemm::v1::BenchmarkRequest;
using ::gemm::v1::BenchmarkResponse;
using ::gemm::v1::GetServerInfoResponse;
using ::gemm::v1::KernelInfo;
using ::gemm::v1::ListTrafficResponse;
using ::gemm::v1::MatrixInfo;
using ::gemm::v1::ProductReport;
using ::gemm::v1::RankKernelsRequest;
using ::gemm::v1::RankKernelsResponse;
using ::gemm::v1::ReloadTuningResponse;
using ServerInfo = GetServerInfoResponse;

using DataType = ::gemm::v1::DataType;
inline constexpr DataType kF64 = ::gemm::v1::DATA_TYPE_F64;
inline constexpr DataType kF32 = ::gemm::v1::DATA_TYPE_F32;
inline constexpr DataType kF16 = ::gemm::v1::DATA_TYPE_F16;
inline constexpr DataType kBF16 = ::gemm::v1::DATA_TYPE_BF16;
inline constexpr DataType kF8E4M3 = ::gemm::v1::DATA_TYPE_F8E4M3;
inline constexpr DataType kF8E5M2 = ::gemm::v1::DATA_TYPE_F8E5M2;
inline constexpr DataType kS8 = ::gemm::v1::DATA_TYPE_S8;
inline constexpr DataType kS32 = ::gemm::v1::DATA_TYPE_S32;

using Layout = ::gemm::v1::Layout;
inline constexpr Layout kRowMajor = ::gemm::v1::LAYOUT_ROW_MAJOR;
inline constexpr Layout kColumnMajor = ::gemm::v1::LAYOUT_COLUMN_MAJOR;

using Activation = ::gemm::v1::Activation;
inline constexpr Activation kNoActivation = ::gemm::v1::ACTIVATION_NONE;
inline constexpr Activation kRelu = ::gemm::v1::ACTIVATION_RELU;
inline constexpr Activation kGelu = ::gemm::v1::ACTIVATION_GELU;
inline constexpr Activation kLeakyRelu = ::gemm::v1::ACTIVATION_LEAKY_RELU;

using ComputeMode = ::gemm::v1::ComputeMode;
// f64 for f64 operands, s32 for s8 ones, f32 for all others.
inline constexpr ComputeMode kDefaultCompute = ::gemm::v1::COMPUTE_MODE_UNSPECIFIED;
inline constexpr ComputeMode kComputeF64 = ::gemm::v1::COMPUTE_MODE_F64;
inline constexpr ComputeMode kComputeF32 = ::gemm::v1::COMPUTE_MODE_F32;
inline constexpr ComputeMode kComputeTF32 = ::gemm::v1::COMPUTE_MODE_TF32;
inline constexpr ComputeMode kComputeF16 = ::gemm::v1::COMPUTE_MODE_F16;
inline constexpr ComputeMode kComputeF32x3 = ::gemm::v1::COMPUTE_MODE_F32X3;
inline constexpr ComputeMode kComputeS32 = ::gemm::v1::COMPUTE_MODE_S32;

// Whether the server checks a product before it delivers it (ProductReport::check).
using Verify = ::gemm::v1::Verify;
inline constexpr Verify kVerifyByPolicy = ::gemm::v1::VERIFY_UNSPECIFIED;
inline constexpr Verify kVerifyOff = ::gemm::v1::VERIFY_OFF;  // the same
inline constexpr Verify kVerifySampled = ::gemm::v1::VERIFY_SAMPLED;
inline constexpr Verify kVerifyAlways = ::gemm::v1::VERIFY_ALWAYS;

using CheckResult = ::gemm::v1::CheckResult;

// Bytes of one element; 0 for a type that is not in the contract.
size_t SizeOf(DataType type);

// Lower-case names: "f64", "f32", "f16", "bf16", "e4m3", "e5m2", "s8", "s32";
// "row", "column"; "none", "relu", "gelu", "leaky_relu"; "default", "f64",
// "f32", "tf32", "f16", "f32x3", "s32"; "off", "sampled", "always"; "not checked", "passed",
// "partial", "unusual", "suspect", "wrong". "?" for a value that is not in the contract.
absl::string_view Name(DataType type);
absl::string_view Name(Layout layout);
absl::string_view Name(Activation activation);
absl::string_view Name(ComputeMode compute);
absl::string_view Name(Verify verify);
absl::string_view Name(CheckResult result);

// The inverse of Name; accepts exactly those names. A result is only read.
std::optional<DataType> ParseDataType(absl::string_view name);
std::optional<Layout> ParseLayout(absl::string_view name);
std::optional<Activation> ParseActivation(absl::string_view name);
std::optional<ComputeMode> ParseComputeMode(absl::string_view name);
std::optional<Verify> ParseVerify(absl::string_view name);

}  // namespace gemmd::client
