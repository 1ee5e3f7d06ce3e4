// Words of the command line become values, or an error that names the word.
#include "client/ctl/parsing/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/ctl/parsing/operand_spec.h"

namespace gemmd::ctl {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ParseTest, Durations) {
  EXPECT_EQ(*ParseDuration("250ms"), absl::Milliseconds(250));
  EXPECT_EQ(*ParseDuration("1.5s"), absl::Milliseconds(1500));
  EXPECT_EQ(*ParseDuration("2m30s"), absl::Seconds(150));
  EXPECT_EQ(*ParseDuration("3"), absl::Seconds(3));
  for (const char* bad : {"", "0", "0s", "-1s", "nan", "ten", "5 parsecs"}) {
    EXPECT_THAT(Message(ParseDuration(bad).status()), HasSubstr(std::string("'") + bad + "'"))
        << bad;
  }
}

TEST(ParseTest, Sizes) {
  EXPECT_EQ(*ParseSize("4096"), 4096);
  EXPECT_EQ(*ParseSize("64KiB"), 65536);
  EXPECT_EQ(*ParseSize("1.5 MiB"), 1572864);
  EXPECT_EQ(*ParseSize("2GB"), 2'000'000'000);
  EXPECT_EQ(*ParseSize("12B"), 12);
  EXPECT_EQ(*ParseSize(" 1TiB "), 1LL << 40);
  for (const char* bad : {"", "B", "0", "-4KiB", "1QiB", "nan", "1e30", "1e3", "0.3KiB"}) {
    EXPECT_THAT(Message(ParseSize(bad).status()), HasSubstr("is not a size")) << bad;
  }
}

TEST(ParseTest, ProductShapes) {
  const auto shape = ParseProductShape("512x64x7");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->m, 512);
  EXPECT_EQ(shape->n, 64);
  EXPECT_EQ(shape->k, 7);
  const auto cube = ParseProductShape("16");
  ASSERT_TRUE(cube.ok()) << cube.status();
  EXPECT_EQ(cube->m * 10000 + cube->n * 100 + cube->k, 161616);
  EXPECT_FALSE(ParseProductShape("").ok());
  EXPECT_THAT(Message(ParseProductShape("512x64").status()), HasSubstr("'512x64'"));
  EXPECT_THAT(Message(ParseProductShape("512x0x7").status()), HasSubstr("'0' is not a dimension"));
  EXPECT_FALSE(ParseProductShape("1x2x3x4").ok());
  EXPECT_FALSE(ParseProductShape("1x2x-3").ok());
  EXPECT_FALSE(ParseProductShape("1x2x99999999999999").ok());
}

TEST(ParseTest, Weights) {
  EXPECT_EQ(ParseWeighted("512x512x512=3")->value, "512x512x512");
  EXPECT_EQ(ParseWeighted("512x512x512=3")->weight, 3);
  EXPECT_EQ(ParseWeighted("auto")->weight, 1);
  EXPECT_THAT(Message(ParseWeighted("auto=0").status()), HasSubstr("'0' is not a weight of 1 to"));
  EXPECT_FALSE(ParseWeighted("auto=1001").ok());
  EXPECT_FALSE(ParseWeighted("=3").ok());
}

TEST(ParseTest, LaunchParams) {
  EXPECT_EQ(*ParseParam("split_k=4"), (std::pair<std::string, int64_t>{"split_k", 4}));
  EXPECT_THAT(Message(ParseParam("split_k").status()), HasSubstr("name=integer"));
  EXPECT_FALSE(ParseParam("=4").ok());
  EXPECT_FALSE(ParseParam("split_k=four").ok());
}

TEST(OperandSpecTest, FilesAndResidentMatrices) {
  EXPECT_EQ(std::get<NpyFile>(*ParseOperandSpec("dir/a.npy")).path, "dir/a.npy");
  EXPECT_EQ(std::get<client::Resident>(*ParseOperandSpec("@weights/1")).name, "weights/1");
  EXPECT_EQ(std::get<client::Resident>(*ParseOperandSpec("id:m-7")).id, "m-7");
  EXPECT_EQ(ParseResident("weights")->name, "weights");
  EXPECT_EQ(ParseResident("id:m-7")->id, "m-7");
  EXPECT_EQ(ParseResident("shared:w")->name, "w");
  EXPECT_TRUE(ParseResident("shared:w")->shared);
  EXPECT_FALSE(ParseResident("@w")->shared);
  EXPECT_FALSE(ParseResident("shared:w")->owner.has_value());
  EXPECT_EQ(ParseResident("shared:CN=a:b:dir/w")->name, "dir/w");
  EXPECT_EQ(ParseResident("shared:CN=a:b:dir/w")->owner, "CN=a:b");
  EXPECT_TRUE(ParseResident("shared:alice:w")->shared);
  EXPECT_FALSE(ParseResident("shared::w").ok());
  EXPECT_FALSE(ParseResident("shared:alice:").ok());
  EXPECT_THAT(Message(ParseOperandSpec("@").status()), HasSubstr("is empty"));
  EXPECT_THAT(Message(ParseOperandSpec("").status()), HasSubstr("FILE.npy"));
}

TEST(OperandSpecTest, GeneratedMatrices) {
  const auto spec = ParseOperandSpec("random:512x64:bf16:42:normal,1,0.5:column");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto& generated = std::get<client::Generated>(*spec);
  EXPECT_EQ(generated.shape,
            (client::Shape{
                .rows = 512, .cols = 64, .dtype = client::kBF16, .layout = client::kColumnMajor}));
  EXPECT_EQ(generated.seed, 42);
  EXPECT_EQ(std::get<client::Normal>(generated.distribution).mean, 1);
  EXPECT_EQ(std::get<client::Normal>(generated.distribution).stddev, 0.5);
}

TEST(OperandSpecTest, AGeneratedMatrixIsUniformFromSeedZeroByDefault) {
  const auto spec = ParseOperandSpec("random:3x4:f32");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto& generated = std::get<client::Generated>(*spec);
  EXPECT_EQ(generated.shape, (client::Shape{.rows = 3, .cols = 4}));
  EXPECT_EQ(generated.seed, 0);
  EXPECT_EQ(std::get<client::Uniform>(generated.distribution).low, 0);
  EXPECT_EQ(std::get<client::Uniform>(generated.distribution).high, 1);
}

TEST(OperandSpecTest, AnS8MatrixIsDrawnFromTheWholeRangeByDefault) {
  for (const char* text : {"random:3x4:s8", "random:3x4:s8:7", "random:3x4:s8:7:uniform",
                           "random:3x4:s8:7:uniform:column"}) {
    const auto spec = ParseOperandSpec(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const auto& generated = std::get<client::Generated>(*spec);
    EXPECT_EQ(std::get<client::Uniform>(generated.distribution).low, -128) << text;
    EXPECT_EQ(std::get<client::Uniform>(generated.distribution).high, 128) << text;
  }
  const auto asked = ParseOperandSpec("random:3x4:s8:7:uniform,-1,2");
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(std::get<client::Uniform>(std::get<client::Generated>(*asked).distribution).high, 2);
}

TEST(OperandSpecTest, EveryWordOfAGeneratedMatrixIsChecked) {
  const auto error = [](const char* text) { return Message(ParseOperandSpec(text).status()); };
  EXPECT_THAT(error("random:3x4"), HasSubstr("expected random:ROWSxCOLS:DTYPE"));
  EXPECT_THAT(error("random:3:f32"), HasSubstr("'3' is not ROWSxCOLS"));
  EXPECT_THAT(error("random:0x4:f32"), HasSubstr("'0' is not a dimension of 1 to"));
  EXPECT_THAT(error("random:3x4:f33"), HasSubstr("'f33' is not an element type; there are f64"));
  EXPECT_THAT(error("random:3x4:f32:-1"), HasSubstr("'-1' is not a seed"));
  EXPECT_THAT(error("random:3x4:f32:1:cauchy"), HasSubstr("'cauchy' is not uniform"));
  EXPECT_THAT(error("random:3x4:f32:1:uniform,2,1"), HasSubstr("LOW < HIGH"));
  EXPECT_THAT(error("random:3x4:f32:1:normal,0,0"), HasSubstr("STDDEV > 0"));
  EXPECT_THAT(error("random:3x4:f32:1:normal,0"), HasSubstr("'normal,0' is not"));
  EXPECT_THAT(error("random:3x4:f32:1:uniform:diagonal"),
              HasSubstr("'diagonal' is not a layout; there are row, column"));
}

}  // namespace
}  // namespace gemmd::ctl
