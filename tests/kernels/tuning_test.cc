// Tuning tables: their text, their bounds, and how they are merged.
#include "gemm/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemm/catalogue.h"
#include "tests/kernels/cuda_kernels.h"

namespace gemm {
namespace {

using ::testing::HasSubstr;

constexpr char kHead[] = "gemmd tuning table 1\nmachine driver=580.1 cuda=13.0 library=13.1.0 ";
constexpr char kProduct[] =
    "types=f16:f16:f16:f32 layout=nt epilogue=plain shape=4096x512x64 seconds=0.0001 "
    "kernel=cublaslt_f16";

std::string Table(absl::string_view lines) {
  return absl::StrCat(kHead, "device=NVIDIA H200\n", lines, "\n");
}

std::string Refusal(absl::string_view text) {
  const auto table = ParseTuningTable(text, "h200.tune");
  EXPECT_TRUE(absl::IsInvalidArgument(table.status())) << table.status();
  return std::string(table.status().message());
}

TunedProduct Product(int64_t m) {
  return {.a = DType::kF32,
          .b = DType::kF32,
          .d = DType::kF32,
          .compute = Compute::kF32,
          .m = m,
          .n = 1,
          .k = 1};
}

TEST(TuningTable, ALineIsReadFieldByField) {
  const auto table =
      ParseTuningTable(Table(absl::StrCat("# measured by hand\n", kProduct, " algorithm=3")), "t");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 1u);
  const auto& [machine, products] = *table->entries().begin();
  EXPECT_EQ(machine.device, "NVIDIA H200");
  EXPECT_EQ(machine.driver, "580.1");
  EXPECT_EQ(machine.cuda, "13.0");
  EXPECT_EQ(machine.library, "13.1.0");
  const auto& [product, choice] = *products.begin();
  EXPECT_EQ(product.types(), (Types{DType::kF16, DType::kF16, DType::kF16, Compute::kF32}));
  EXPECT_FALSE(product.trans_a);
  EXPECT_TRUE(product.trans_b);
  EXPECT_EQ(product.epilogue, EpilogueClass::kPlain);
  EXPECT_EQ(product.m, 4096);
  EXPECT_EQ(product.n, 512);
  EXPECT_EQ(product.k, 64);
  EXPECT_EQ(choice, (TunedChoice{"cublaslt_f16", {{"algorithm", 3}}, 0.0001}));
}

TEST(TuningTable, ItsTextIsReadAsTheSameTable) {
  TuningTable table;
  const Machine host{.device = "Some CPU @ 2.00GHz", .library = "0.3.21"};
  TunedProduct full = Product(7);
  full.epilogue = EpilogueClass::kFull;
  full.trans_a = true;
  ASSERT_TRUE(table.Put(host, Product(5), {"host_openblas", {}, 1.25e-6}).ok());
  ASSERT_TRUE(table.Put(host, full, {"host_reference", {{"x", -1}, {"y", 2}}, 3}).ok());
  ASSERT_TRUE(table.Put({.device = "B"}, Product(5), {"host_openblas", {}, 1}).ok());
  const auto read = ParseTuningTable(FormatTuningTable(table), "t");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->entries(), table.entries());
}

TEST(TuningTable, ALaterTableWinsForTheSameProductAlone) {
  TuningTable first, later;
  const Machine one{.device = "A", .driver = "1"}, other{.device = "A", .driver = "2"};
  ASSERT_TRUE(first.Put(one, Product(1), {"old", {}, 1}).ok());
  ASSERT_TRUE(first.Put(one, Product(2), {"kept", {}, 1}).ok());
  ASSERT_TRUE(later.Put(one, Product(1), {"new", {}, 9}).ok());
  ASSERT_TRUE(later.Put(other, Product(2), {"elsewhere", {}, 1}).ok());
  ASSERT_TRUE(first.Merge(later).ok());
  EXPECT_EQ(first.size(), 3u);
  EXPECT_EQ(first.entries().at(one).at(Product(1)).kernel, "new");
  EXPECT_EQ(first.entries().at(one).at(Product(2)).kernel, "kept");
  EXPECT_EQ(first.entries().at(other).at(Product(2)).kernel, "elsewhere");
}

TEST(TuningTable, HasABoundOnItsEntries) {
  TuningTable table;
  for (size_t i = 1; i <= kMaxTuningEntries; ++i) {
    ASSERT_TRUE(table.Put({.device = "A"}, Product(static_cast<int64_t>(i)), {"x", {}, 1}).ok());
  }
  EXPECT_TRUE(
      absl::IsResourceExhausted(table.Put({.device = "A"}, Product(1 << 20), {"x", {}, 1})));
  EXPECT_TRUE(table.Put({.device = "A"}, Product(1), {"y", {}, 1}).ok()) << "one that it has";
}

struct WrongLine {
  const char* name;
  std::string line;
  const char* message;
};

class WrongTuningLine : public ::testing::TestWithParam<WrongLine> {};

TEST_P(WrongTuningLine, NamesTheLineTheFieldTheValueAndWhatIsAllowed) {
  const std::string refusal = Refusal(Table(absl::StrCat(kProduct, "\n", GetParam().line)));
  EXPECT_THAT(refusal, HasSubstr("h200.tune line 4: "));
  EXPECT_THAT(refusal, HasSubstr(GetParam().message));
}

std::string With(const std::string& from, const std::string& to) {
  std::string line = kProduct;
  return line.replace(line.find(from), from.size(), to);
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongTuningLine,
    ::testing::Values(
        WrongLine{"Types", With("f16:f16:f16:f32", "f16:f16:f17:f32"),
                  "types is \"f16:f16:f17:f32\"; it must be A:B:D:COMPUTE"},
        WrongLine{"Layout", With("=nt", "=nx"), "layout is \"nx\"; it must be nn, nt, tn or tt"},
        WrongLine{"Epilogue", With("plain", "relu"), "epilogue is \"relu\"; it must be plain or"},
        WrongLine{"Zero", With("4096x512", "0x512"), "shape is \"0x512x64\"; it must be MxNxK"},
        WrongLine{"Huge", With("4096x512", "2147483649x512"), "each 1 to 2147483648"},
        WrongLine{"TwoSizes", With("4096x512x64", "4096x512"), "shape is \"4096x512\""},
        WrongLine{"NoTime", With("0.0001", "0"), "seconds is \"0\"; it must be a number above 0"},
        WrongLine{"NaN", With("0.0001", "nan"), "seconds is \"nan\""},
        WrongLine{"Kernel", With("=cublaslt_f16", "=a-b"),
                  "kernel is \"a-b\"; it must be 1 to 128"},
        WrongLine{"NoKernel", With(" kernel=cublaslt_f16", ""), "kernel is missing"},
        WrongLine{"Order", With("layout=nt ", ""), "field 2 is \"epilogue\"; it must be layout"},
        WrongLine{"NoField", "hello", "\"hello\" is no field; write NAME=VALUE"},
        WrongLine{"Param", absl::StrCat(kProduct, " swizzle=x"), "swizzle is \"x\"; it must be a"},
        WrongLine{"Twice", absl::StrCat(kProduct, " a=1 a=2"), "a is given twice"},
        WrongLine{"Params", absl::StrCat(kProduct, " a=1 b=1 c=1 d=1 e=1"), "more than 4 launch"},
        WrongLine{"Device", "machine driver=1", "device is missing"},
        WrongLine{"Machine", "machine gpu=1 device=x", "no field \"gpu\" of a machine"},
        WrongLine{"Long", std::string(kMaxTuningLineBytes + 1, '#'), "it may have up to 1024"}),
    [](const auto& info) { return info.param.name; });

TEST(TuningTable, NeedsItsFirstLineAndAMachine) {
  EXPECT_THAT(Refusal(kProduct), HasSubstr("line 1: the first line is"));
  EXPECT_THAT(Refusal("# empty\n"), HasSubstr("no tuning table"));
  EXPECT_THAT(Refusal(absl::StrCat("gemmd tuning table 1\n", kProduct)),
              HasSubstr("line 2: a product before the first machine"));
  EXPECT_THAT(Refusal(std::string(kMaxTuningBytes + 1, '\n')), HasSubstr("has up to 8388608"));
}

TEST(EpilogueClassOf, IsFullWithAnythingAfterTheProduct) {
  EXPECT_EQ(EpilogueClassOf({}), EpilogueClass::kPlain);
  EXPECT_EQ(EpilogueClassOf({.alpha = 2}), EpilogueClass::kPlain);
  EXPECT_EQ(EpilogueClassOf({.beta = 1}), EpilogueClass::kFull);
  EXPECT_EQ(EpilogueClassOf({.bias = BiasAxis::kRows}), EpilogueClass::kFull);
  EXPECT_EQ(EpilogueClassOf({.activation = Activation::kRelu}), EpilogueClass::kFull);
}

struct Shipped {
  const char* name;
  size_t entries;
};

constexpr Shipped kShipped[] = {{"nvidia-h200", 837}, {"nvidia-h100", 831}};

absl::StatusOr<TuningTable> Read(const Shipped& shipped) {
  std::ifstream file(absl::StrCat(GEMM_SHIPPED_TABLES, "/", shipped.name, ".tune"));
  std::stringstream text;
  text << file.rdbuf();
  return ParseTuningTable(text.str(), shipped.name);
}

TEST(TuningTable, ShippedOnesAreRead) {
  for (const Shipped& shipped : kShipped) {
    SCOPED_TRACE(shipped.name);
    const auto table = Read(shipped);
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(table->size(), shipped.entries);
  }
}

using ShippedTuningTable = testing::CudaKernels;

// With CUDA in the build, every kernel of a table is one of the catalogue's, and takes the
// product and the parameters.
TEST_F(ShippedTuningTable, FitsTheCatalogue) {
  for (const Shipped& shipped : kShipped) {
    SCOPED_TRACE(shipped.name);
    const auto table = Read(shipped);
    ASSERT_TRUE(table.ok()) << table.status();
    for (const auto& [machine, products] : table->entries()) {
      for (const auto& [product, choice] : products) {
        const auto kernel = FindKernel(choice.kernel);
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        EXPECT_TRUE(Takes(**kernel, product.types())) << choice.kernel;
        EXPECT_TRUE(ResolveParams(**kernel, choice.params).ok()) << choice.kernel;
      }
    }
  }
}

}  // namespace
}  // namespace gemm
