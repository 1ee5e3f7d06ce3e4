// The catalogue as people see it: families first, types folded, nothing wider
// than the terminal.
#include "client/ctl/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "kernels/bench/report/text_layout.h"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

namespace v1 = ::gemm::v1;

void AddTypes(client::KernelInfo& kernel, client::DataType a, client::DataType b,
              client::DataType output, client::ComputeMode compute = client::kComputeF32) {
  v1::KernelTypes& types = *kernel.add_types();
  types.set_a(a);
  types.set_b(b);
  types.set_output(output);
  types.set_compute(compute);
}

client::KernelInfo Kernel(const std::string& name, const std::string& family) {
  client::KernelInfo kernel;
  kernel.set_name(name);
  kernel.set_family(family);
  kernel.set_summary("4 stages of double k-tiles, fragments replaced at their last use");
  kernel.set_tile_m(128);
  kernel.set_tile_n(256);
  kernel.set_tile_k(64);
  return kernel;
}

// As many and as long as a server with GPUs has them: one family runs, one does
// not, and one takes every type.
Kernels Catalogue() {
  Kernels kernels;
  for (int i = 0; i < 100; ++i) {
    kernels.push_back(Kernel(
        "hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage" + std::to_string(i) + "_dsmem_xor_tn_f32acc",
        "mma"));
    AddTypes(kernels.back(), client::kF16, client::kF16, client::kF16);
    if (i % 2 == 0) AddTypes(kernels.back(), client::kF16, client::kF16, client::kF32);
    kernels.back().add_devices("cuda:0");
    v1::KernelParam& param = *kernels.back().add_params();
    param.set_name("swizzle");
    param.set_summary("columns of tiles that are worked on together");
    param.set_min(0);
    param.set_max(8192);
  }
  kernels.push_back(Kernel("hgemm_sm100", "grouped"));
  AddTypes(kernels.back(), client::kBF16, client::kBF16, client::kBF16);
  kernels.back().set_unavailable_reason(
      "kernel 'hgemm_sm100' needs compute capability 10.0 and the device has 9.0");
  kernels.push_back(Kernel("host_openblas", "host"));
  for (const auto type : {client::kF64, client::kF32, client::kF16, client::kBF16}) {
    AddTypes(kernels.back(), type, type, type);
    if (type == client::kF32) {
      AddTypes(kernels.back(), type, type, type, client::kComputeTF32);
      AddTypes(kernels.back(), type, type, type, client::kComputeF32x3);
    }
    if (type == client::kF16) AddTypes(kernels.back(), type, type, client::kF32);
  }
  for (const auto a : {client::kF8E4M3, client::kF8E5M2}) {
    for (const auto b : {client::kF8E4M3, client::kF8E5M2}) {
      for (const auto output : {client::kF16, client::kBF16, client::kF32}) {
        AddTypes(kernels.back(), a, b, output);
      }
    }
  }
  kernels.back().add_devices("host:0");
  return kernels;
}

size_t WidestLine(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, gemm::bench::TextWidth(line));
  }
  return widest;
}

size_t LineCount(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(CatalogueTest, TypesAreFolded) {
  EXPECT_EQ(TypesText({Catalogue().back()}),
            "f64,f32,bf16 f32/tf32 f32/f32x3 f16>f16,f32 "
            "e4m3,e4m3*e5m2,e5m2*e4m3,e5m2>f16,bf16,f32");
  EXPECT_EQ(TypesText({}), "");
}

TEST(CatalogueTest, NamesAFamilyAKernelOrAPattern) {
  const Kernels all = Catalogue();
  EXPECT_THAT(KernelsNamed(all, ""), SizeIs(102));
  EXPECT_THAT(KernelsNamed(all, "mma"), SizeIs(100));
  EXPECT_THAT(KernelsNamed(all, "host_openblas"), SizeIs(1));
  EXPECT_THAT(KernelsNamed(all, "*_stage1?_*"), SizeIs(10));
  EXPECT_THAT(KernelsNamed(all, "*"), SizeIs(102));
  EXPECT_THAT(KernelsNamed(all, "nothing"), SizeIs(0));
}

TEST(CatalogueTest, FamiliesFitAnyTerminalAndAScreen) {
  for (const size_t width : {80, 120}) {
    std::ostringstream out;
    PrintFamilies(out, Catalogue(), width);
    EXPECT_LE(WidestLine(out.str()), width) << out.str();
    EXPECT_LE(LineCount(out.str()), 24u) << out.str();
    EXPECT_THAT(out.str(), AllOf(HasSubstr("FAMILY"), HasSubstr("mma          100       100"),
                                 HasSubstr("1 kernel on no device of this server"),
                                 HasSubstr("102 kernels in 3 families")));
  }
}

// As of a build for GPUs on a machine that has none: the reasons differ in the kernel's name alone.
TEST(CatalogueTest, OneReasonOfManyKernelsIsOneLine) {
  Kernels kernels;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "hgemm_" + std::to_string(i);
    kernels.push_back(Kernel(name, "mma"));
    kernels.back().set_unavailable_reason("kernel " + name +
                                          " needs a CUDA device; this is a host device");
  }
  for (const auto print : {&PrintFamilies, &PrintKernels}) {
    std::ostringstream out;
    print(out, kernels, 0);
    EXPECT_THAT(out.str(),
                HasSubstr("300 kernels on no device of this server: needs a CUDA device; "
                          "this is a host device\n"));
    EXPECT_THAT(out.str(), Not(HasSubstr("1 kernel on no device")));
  }
}

TEST(CatalogueTest, AFamilyFitsAndSaysOnceWhatItsKernelsShare) {
  for (const size_t width : {80, 120}) {
    std::ostringstream out;
    PrintKernels(out, KernelsNamed(Catalogue(), "mma"), width);
    EXPECT_LE(WidestLine(out.str()), width) << out.str();
    EXPECT_THAT(out.str(), AllOf(HasSubstr("TILE     128x256x64"),
                                 HasSubstr("PARAMS   swizzle=0..8192"), HasSubstr("f16>f16,f32")));
    // A line a kernel, whatever the width.
    EXPECT_LE(LineCount(out.str()), 110u);
  }
}

TEST(CatalogueTest, AKernelSaysWhetherItsResultsAreTheSame) {
  const auto shown = [](bool deterministic) {
    client::KernelInfo kernel = Kernel("sgemm", "simt");
    kernel.set_deterministic(deterministic);
    std::ostringstream out;
    PrintKernel(out, kernel, 120);
    return out.str();
  };
  EXPECT_THAT(shown(true), HasSubstr("the same bits from run to run"));
  EXPECT_THAT(shown(false), HasSubstr("may differ in their last bits from run to run"));
}

TEST(CatalogueTest, AKernelFitsAndIsShownInFull) {
  for (const size_t width : {80, 120}) {
    std::ostringstream out;
    PrintKernel(out, Catalogue().front(), width);
    EXPECT_LE(WidestLine(out.str()), width) << out.str();
    EXPECT_THAT(out.str(),
                AllOf(HasSubstr("what it is"), HasSubstr("param swizzle"),
                      HasSubstr("columns of tiles"), HasSubstr("may differ"), HasSubstr("cuda:0")));
  }
  std::ostringstream out;
  PrintKernel(out, KernelsNamed(Catalogue(), "hgemm_sm100").front(), 80);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("none: kernel 'hgemm_sm100'"), Not(HasSubstr("param"))));
}

}  // namespace
}  // namespace gemmd::ctl
