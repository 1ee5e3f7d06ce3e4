// The catalogue as a whole, and the properties of its rows.
#include "gemm/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace gemm {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

const Kernel& Find(absl::string_view name) { return *FindKernel(name).value(); }

TEST(Catalogue, NamesAreUniqueAndRowsComplete) {
  std::set<std::string> names;
  for (const Kernel* kernel : Catalogue()) {
    const std::string name(kernel->name);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(kernel->family.empty()) << name;
    EXPECT_FALSE(kernel->summary.empty()) << name;
    EXPECT_FALSE(kernel->types.empty()) << name;
    EXPECT_NE(kernel->launch, nullptr) << name;
    EXPECT_LE(kernel->params.size(), kMaxParams) << name;
    // gpu_kernels_test and host_kernels_test run each row many times for it.
    EXPECT_TRUE(kernel->deterministic) << name;
    for (const ParamSpec& param : kernel->params) {
      if (param.default_value == kOwnChoice) {
        EXPECT_GT(param.min, kOwnChoice) << name << " " << param.name;
        continue;
      }
      EXPECT_LE(param.min, param.default_value) << name << " " << param.name;
      EXPECT_LE(param.default_value, param.max) << name << " " << param.name;
    }
  }
  EXPECT_TRUE(names.count("host_openblas"));
  EXPECT_TRUE(names.count("host_reference"));
}

TEST(Catalogue, WhatIsNotDeterministicIsChosenByNameAlone) {
  const Types f32{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
  const Types f64{DType::kF64, DType::kF64, DType::kF64, Compute::kF64};
  for (const bool deterministic : {true, false}) {
    const Kernel kernel{.name = "sums_atomically",
                        .types = absl::MakeConstSpan(&f32, 1),
                        .deterministic = deterministic};
    EXPECT_EQ(MayBeChosen(kernel, f32), deterministic);
    EXPECT_FALSE(MayBeChosen(kernel, f64));
  }
}

// wgmma reads 8-bit operands and TF32 along k alone. A row that multiplies D transposed reads few
// lines of A, which have to lie along k, too. f32x3 has two matrices of every B. On CUDA cores f32
// is read either way, but along k only where a thread has few columns.
TEST(Catalogue, HopperRowsHaveScratchForWhatTheyTranspose) {
  int rows = 0;
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->family != "hopper") continue;
    ++rows;
    const Types& types = kernel->types.front();
    const bool swap = absl::StrContains(kernel->name, "_swap");
    const bool ffma = types.compute == Compute::kF32 && types.a == DType::kF32;
    const bool along_k = SizeOf(types.a) != 2 && !ffma;
    const bool wide = absl::StrContains(kernel->name, "_t8x16");
    for (const int transposes : {0, 1, 2, 3}) {
      const Problem problem = {.m = 48,
                               .n = 80,
                               .k = 112,
                               .types = types,
                               .trans_a = transposes % 2 == 1,
                               .trans_b = transposes / 2 == 1};
      size_t lines = 0;  // of 112 elements, which end on 256 bytes
      if (wide ? !problem.trans_a : problem.trans_a && (swap || along_k)) lines += 48;
      if (types.compute == Compute::kF32x3) {
        lines += 160;
      } else if (problem.trans_b ? wide : along_k) {
        lines += 80;
      }
      // Blocks that share tiles need memory for the accumulators that they leave to others.
      if (absl::StrContains(kernel->name, "_streamk")) {
        EXPECT_GT(WorkspaceBytes(*kernel, problem), lines * 112 * SizeOf(types.a) + (16 << 20));
        continue;
      }
      const size_t bytes = WorkspaceBytes(*kernel, problem);
      EXPECT_EQ(bytes, lines * 112 * SizeOf(types.a))
          << kernel->name << ", transposes " << transposes;
    }
  }
  if (rows == 0) GTEST_SKIP() << "skipped: built without CUDA";
}

// A caller who asks for f32 never gets three products of TF32 numbers.
// Rows of f32 take f32x3, too, and no others do.
TEST(Catalogue, RowsOfF32x3TakeNothingElse) {
  constexpr Types kF32{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
  constexpr Types kF32x3{DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3};
  int rows = 0;
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->target != Target::kCuda || !Takes(*kernel, kF32x3)) continue;
    ++rows;
    const bool of_f32 = kernel->types.front() == kF32;
    EXPECT_EQ(kernel->types.size(), of_f32 ? 2u : 1u) << kernel->name;
    EXPECT_TRUE(MayBeChosen(*kernel, kF32x3)) << kernel->name;
  }
  if (rows == 0) GTEST_SKIP() << "skipped: built without CUDA";
}

TEST(Catalogue, FamiliesAreThoseOfTheRowsInOrder) {
  size_t at = 0;
  for (const Kernel* kernel : Catalogue()) {
    while (at < Families().size() && Families()[at] != kernel->family) ++at;
    ASSERT_LT(at, Families().size()) << kernel->name << " breaks the order of families";
  }
  EXPECT_EQ(at + 1, Families().size());
}

TEST(Catalogue, FindsByNameAndSuggestsTheNearest) {
  EXPECT_EQ(Find("host_openblas").name, "host_openblas");
  const auto missing = FindKernel("host_openblass");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(missing.status()), HasSubstr("\"host_openblass\""));
  EXPECT_THAT(Message(missing.status()), HasSubstr("nearest are host_openblas"));
  EXPECT_EQ(FindKernel("").status().code(), absl::StatusCode::kNotFound);
}

TEST(Catalogue, NearestNamesAreOrderedAndBounded) {
  EXPECT_EQ(NearestNames("host_referenc", 1), std::vector<absl::string_view>{"host_reference"});
  EXPECT_EQ(NearestNames("x", 1000).size(), Catalogue().size());
  EXPECT_TRUE(NearestNames("x", 0).empty());
  EXPECT_EQ(NearestNames(std::string(100000, 'x'), 2).size(), 2u);
}

// The types that the server takes.
std::vector<Types> PromisedTypes() {
  std::vector<Types> types = {
      {DType::kF64, DType::kF64, DType::kF64, Compute::kF64},
      {DType::kF32, DType::kF32, DType::kF32, Compute::kF32},
      {DType::kF32, DType::kF32, DType::kF32, Compute::kTF32},
      {DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3},
      {DType::kF16, DType::kF16, DType::kF16, Compute::kF32},
      {DType::kF16, DType::kF16, DType::kF16, Compute::kF16},
      {DType::kF16, DType::kF16, DType::kF32, Compute::kF32},
      {DType::kBF16, DType::kBF16, DType::kBF16, Compute::kF32},
      {DType::kBF16, DType::kBF16, DType::kF32, Compute::kF32},
  };
  for (const DType d : {DType::kS32, DType::kF32, DType::kF16, DType::kBF16}) {
    types.push_back({DType::kS8, DType::kS8, d, Compute::kS32});
  }
  for (const DType a : {DType::kE4M3, DType::kE5M2}) {
    for (const DType b : {DType::kE4M3, DType::kE5M2}) {
      for (const DType d : {DType::kF16, DType::kBF16, DType::kF32}) {
        types.push_back({a, b, d, Compute::kF32});
      }
    }
  }
  return types;
}

TEST(Catalogue, EveryPromisedTypeHasItsRowsOnTheHost) {
  for (const char* name : {"host_openblas", "host_reference"}) {
    EXPECT_THAT(std::vector<Types>(Find(name).types.begin(), Find(name).types.end()),
                ::testing::UnorderedElementsAreArray(PromisedTypes()))
        << name;
  }
}

// A product can then be checked wherever it was computed.
TEST(Catalogue, TheHostTakesWhateverAnyRowTakes) {
  for (const Kernel* kernel : Catalogue()) {
    for (const Types& types : kernel->types) {
      EXPECT_TRUE(CheckTypes(Find("host_reference"), types).ok()) << kernel->name;
    }
  }
}

TEST(Catalogue, HostPrefersOpenblas) {
  EXPECT_GT(Find("host_openblas").auto_rank, Find("host_reference").auto_rank);
}

constexpr ParamSpec kParams[] = {{"swizzle", "stride along n", 0, 4096, 2048},
                                 {"group_m", "rows of a group", 1, 64, 8}};
constexpr Types kAnyTypes[] = {{DType::kF32, DType::kF32, DType::kF32, Compute::kF32}};

Kernel WithParams() {
  Kernel kernel;
  kernel.name = "grouped";
  kernel.types = kAnyTypes;
  kernel.params = kParams;
  return kernel;
}

TEST(ResolveParams, TakesDefaultsAndOverrides) {
  EXPECT_EQ(ResolveParams(WithParams(), {}).value(), (LaunchParams{2048, 8, 0, 0}));
  EXPECT_EQ(ResolveParams(WithParams(), {{"group_m", 64}}).value(), (LaunchParams{2048, 64, 0, 0}));
}

TEST(ResolveParams, NamesTheParameterTheValueAndTheRange) {
  const auto unknown = ResolveParams(WithParams(), {{"grup_m", 4}});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(unknown.status()),
            "kernel grouped has no launch parameter \"grup_m\"; it has swizzle, group_m");
  const auto high = ResolveParams(WithParams(), {{"group_m", 65}});
  EXPECT_EQ(high.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(high.status()),
            "launch parameter group_m of kernel grouped is 65; it must be 1 to 64");
  EXPECT_FALSE(ResolveParams(WithParams(), {{"swizzle", -1}}).ok());
  const auto none = ResolveParams(Find("host_openblas"), {{"swizzle", 1}});
  EXPECT_EQ(Message(none.status()),
            "kernel host_openblas has no launch parameters; got \"swizzle\"");
}

TEST(CheckDevice, SaysWhatTheKernelNeeds) {
  Kernel hopper = WithParams();
  hopper.capability = {90, 90};
  EXPECT_TRUE(CheckDevice(hopper, {Target::kCuda, 90}).ok());
  const absl::Status older = CheckDevice(hopper, {Target::kCuda, 86});
  EXPECT_EQ(older.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(older),
            "kernel grouped needs CUDA compute capability 9.0 exactly; this device has 8.6");
  EXPECT_FALSE(CheckDevice(hopper, {Target::kCuda, 100}).ok());
  hopper.capability = {80};
  EXPECT_TRUE(CheckDevice(hopper, {Target::kCuda, 120}).ok());
  EXPECT_THAT(Message(CheckDevice(hopper, {Target::kCuda, 75})), HasSubstr("8.0 or higher"));
  EXPECT_THAT(Message(CheckDevice(hopper, {Target::kHost, 0})), HasSubstr("needs a CUDA device"));
  EXPECT_TRUE(CheckDevice(Find("host_openblas"), {Target::kHost, 0}).ok());
  EXPECT_FALSE(CheckDevice(Find("host_openblas"), {Target::kCuda, 90}).ok());
}

// A GPU of 9.0 takes code for sm_90, which has no wgmma, and PTX for sm_80, which has no fp8.
TEST(CheckDevice, SaysWhatTheKernelWasNotCompiledFor) {
  Kernel hopper = WithParams(), fp8 = WithParams();
  hopper.capability = {90, 90};
  hopper.code = DeviceCode::kSm90a;
  fp8.capability = {89};
  fp8.code = DeviceCode::kSm89;
  const auto with = [](DeviceCode code) {
    return DeviceCaps{.target = Target::kCuda, .capability = 90, .code = code};
  };
  EXPECT_TRUE(RunsOn(hopper, with(DeviceCode::kSm90a)));
  EXPECT_FALSE(RunsOn(hopper, with(DeviceCode::kSm89)));
  EXPECT_TRUE(RunsOn(fp8, with(DeviceCode::kSm89)));
  EXPECT_FALSE(RunsOn(fp8, with(DeviceCode::kAny)));
  EXPECT_TRUE(RunsOn(WithParams(), with(DeviceCode::kAny)));
  const absl::Status missing = CheckDevice(hopper, with(DeviceCode::kSm89));
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(missing),
            "kernel grouped was not compiled for sm_90a, which it needs; what this build has for "
            "the device was compiled for sm_89 or higher (CMAKE_CUDA_ARCHITECTURES)");
  EXPECT_TRUE(CheckDevice(hopper, with(DeviceCode::kSm90a)).ok());
  // A feature that the device itself lacks is named first.
  EXPECT_THAT(Message(CheckDevice(hopper, {Target::kCuda, 80, DeviceCode::kAny})),
              HasSubstr("needs CUDA compute capability 9.0 exactly"));
}

// These rows have no body on architectures that lack something; every other row has one everywhere.
TEST(Catalogue, RowsSayWhichCodeTheyNeed) {
  for (const Kernel* kernel : Catalogue()) {
    const bool fp8 = kernel->family == "grouped" && SizeOf(kernel->types[0].a) == 1;
    EXPECT_EQ(kernel->code, kernel->family == "hopper" ? DeviceCode::kSm90a
                            : fp8                      ? DeviceCode::kSm89
                                                       : DeviceCode::kAny)
        << kernel->name;
  }
}

TEST(CheckTypes, ListsWhatTheKernelTakes) {
  const absl::Status status =
      CheckTypes(WithParams(), {DType::kF16, DType::kBF16, DType::kF32, Compute::kTF32});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "kernel grouped does not take (a f16, b bf16, output f32, compute tf32); it takes "
            "(a f32, b f32, output f32, compute f32)");
}

}  // namespace
}  // namespace gemm
