// gemmctl multiply, matrix, kernels, info and version, from the command line to
// files and back.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/ctl/gemmctl_fixture.h"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(GemmctlTest, MultipliesFiles) {
  const std::string a = WriteMatrix("a.npy", {.rows = 2, .cols = 3}, {1, 2, 3, 4, 5, 6});
  const std::string b = WriteMatrix("b.npy", {.rows = 3, .cols = 2}, {1, 0, 0, 1, 2, 2});
  const auto json = GemmctlJson({"multiply", a, b, "-o", Path("c.npy"), "--verify"});
  client::Shape shape;
  EXPECT_THAT(ReadMatrix(Path("c.npy"), &shape), ElementsAre(7, 8, 16, 17));
  EXPECT_EQ(shape, (client::Shape{.rows = 2, .cols = 2}));
  EXPECT_EQ(json["report"]["m"], 2);
  EXPECT_EQ(json["report"]["n"], 2);
  EXPECT_EQ(json["report"]["k"], 3);
  EXPECT_THAT(json["report"]["kernel"].get<std::string>(), StartsWith("host"));
  EXPECT_EQ(json["report"]["result"]["dtype"], "f32");
  EXPECT_EQ(json["report"]["phase_seconds"].size(), 7);
  EXPECT_EQ(json["bytes_sent"], 48);
  EXPECT_EQ(json["bytes_received"], 16);
  EXPECT_EQ(json["output"], Path("c.npy"));
  EXPECT_EQ(json["verification"]["right"], true);
  EXPECT_EQ(json["verification"]["elements_checked"], 4);
}

// The shell has opened the log to be written behind what it has.
TEST_F(GemmctlTest, AResultOnStandardOutputStandsThereAlone) {
  const std::string a = WriteMatrix("a.npy", {.rows = 1, .cols = 1}, {3});
  for (const std::string output : {"/dev/stdout", "-"}) {
    std::ofstream(Path("log")) << "before\n";
    const auto shell = StartShell("\"$@\" >> " + Path("log"), {"multiply", a, a, "-o", output});
    const Ran ran = shell->Wait();
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("kernel "));
    std::ifstream log(Path("log"));
    const std::string text(std::istreambuf_iterator<char>(log), {});
    EXPECT_THAT(text, StartsWith("before\n\x93NUMPY"));
    EXPECT_THAT(text, Not(HasSubstr("kernel ")));
  }
}

TEST_F(GemmctlTest, PrintsATableForPeople) {
  const std::string a = WriteMatrix("a.npy", {.rows = 2, .cols = 2}, {1, 2, 3, 4});
  const Ran ran = Gemmctl({"multiply", a, a, "--verify"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, AllOf(HasSubstr("kernel "), HasSubstr("reason "), HasSubstr("2 x 2 x 2"),
                             HasSubstr("2x2 f32"), HasSubstr("queue ms"), HasSubstr("total ms"),
                             HasSubstr("TFLOPS"), HasSubstr("verified    4 elements")));
}

// How much an error has to be to be seen depends on what is known of the operands.
TEST_F(GemmctlTest, VerificationSaysHowMuchItSees) {
  const auto resolution = [this](const std::string& a, const std::string& b) {
    const Ran ran = Gemmctl({"multiply", a, b, "--verify"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran.out;
  };
  const std::string of_a_file =
      WriteMatrix("a.npy", {.rows = 2, .cols = 2}, {0.1F, 0.2F, 0.3F, 0.4F});
  EXPECT_THAT(resolution(of_a_file, of_a_file),
              AllOf(HasSubstr("of a typical element are seen"), HasSubstr("the worst case")));
  EXPECT_THAT(resolution("random:32x32:f32:1:uniform,-1,1", "random:32x32:f32:2:uniform,-1,1"),
              AllOf(HasSubstr("of a typical element are seen"), Not(HasSubstr("the worst case"))));
  const std::string of_integers = WriteMatrix("i.npy", {.rows = 2, .cols = 2}, {1, 2, 3, 4});
  EXPECT_THAT(resolution(of_integers, of_integers), HasSubstr("every error is seen"));
}

// D = leaky_relu(2 A' B + 0.5 C + bias), column-major, from f16 into f32.
TEST_F(GemmctlTest, TakesEveryOptionOfAProduct) {
  const std::string a = WriteMatrix(
      "a.npy", {.rows = 3, .cols = 2, .dtype = client::kF16, .layout = client::kColumnMajor},
      {1, 4, 2, 5, 3, 6});
  const std::string b =
      WriteMatrix("b.npy", {.rows = 2, .cols = 3, .dtype = client::kF16}, {1, 0, 2, 0, 1, 2});
  const std::string c = WriteMatrix("c.npy", {.rows = 2, .cols = 2, .layout = client::kColumnMajor},
                                    {2, -40, 4, -80});
  const std::string bias = WriteMatrix("bias.npy", {.rows = 1, .cols = 2}, {10, -10});
  const auto json = GemmctlJson({"multiply",
                                 a,
                                 b,
                                 "--transpose-a",
                                 "--transpose-b",
                                 "--alpha",
                                 "2",
                                 "--beta",
                                 "0.5",
                                 "--c",
                                 c,
                                 "--bias",
                                 bias,
                                 "--activation",
                                 "leaky_relu",
                                 "--leaky-slope",
                                 "0.25",
                                 "--output-dtype",
                                 "f32",
                                 "--output-layout",
                                 "column",
                                 "--compute",
                                 "f32",
                                 "--family",
                                 "host",
                                 "--check",
                                 "always",
                                 "--timeout",
                                 "30s",
                                 "--deadline",
                                 "60s",
                                 "-o",
                                 Path("d.npy"),
                                 "--verify",
                                 "--verify-samples",
                                 "3"});
  client::Shape shape;
  // A' B' = {7, 8; 16, 17}.
  EXPECT_THAT(ReadMatrix(Path("d.npy"), &shape), ElementsAre(25, -3.5, 44, -4));
  EXPECT_EQ(shape.dtype, client::kF32);
  EXPECT_EQ(shape.layout, client::kColumnMajor);
  EXPECT_EQ(json["report"]["result"]["layout"], "column");
  EXPECT_EQ(json["report"]["compute"], "f32");
  EXPECT_EQ(json["report"]["check"]["result"], "passed");
  EXPECT_EQ(json["report"]["check"]["before_activation"], true);
  EXPECT_GT(json["report"]["check_seconds"], 0);
  EXPECT_EQ(json["verification"]["right"], true);
}

TEST_F(GemmctlTest, MultipliesBatches) {
  const std::vector<std::string> batch = {"multiply",
                                          "random:60x8:f32:1",
                                          "random:8x5:f32:2",
                                          "--bias",
                                          "random:12x5:f32:3",
                                          "--batch",
                                          "12",
                                          "--share",
                                          "b",
                                          "--verify",
                                          "-o",
                                          Path("batch.npy"),
                                          "--verify-samples",
                                          "1000000"};
  const auto json = GemmctlJson(batch);
  EXPECT_EQ(json["report"]["batch_count"], 12);
  EXPECT_EQ(json["report"]["m"], 5);
  EXPECT_EQ(json["report"]["result"]["rows"], 60);
  EXPECT_EQ(json["verification"]["right"], true);
  EXPECT_EQ(json["verification"]["elements_checked"], 60 * 5);
  client::Shape shape;
  EXPECT_EQ(ReadMatrix(Path("batch.npy"), &shape).size(), 60u * 5);
  const Ran table = Gemmctl(batch);
  EXPECT_THAT(table.out, HasSubstr("products"));

  const Ran shared =
      Gemmctl({"multiply", "random:6x8:f32:1", "random:8x5:f32:2", "--batch", "2", "--share", "d"});
  EXPECT_NE(shared.exit_code, 0);
  EXPECT_THAT(shared.err, HasSubstr("'d' is not a, b, c or bias"));
  const Ran rows =
      Gemmctl({"multiply", "random:7x8:f32:1", "random:8x5:f32:2", "--batch", "2", "--share", "b"});
  EXPECT_NE(rows.exit_code, 0);
  EXPECT_THAT(rows.err, HasSubstr("a.shape is 7x8"));
}

TEST_F(GemmctlTest, MultipliesWithBlockScales) {
  std::vector<std::string> product = {"multiply",
                                      "random:200x300:e4m3:1",
                                      "random:300x150:e4m3:2",
                                      "--scales-a",
                                      "random:200x3:f32:3",
                                      "--scales-b",
                                      "random:3x2:f32:4",
                                      "--verify",
                                      "--verify-samples",
                                      "1000000",
                                      "--output-layout",
                                      "column"};
  const auto json = GemmctlJson(product);
  EXPECT_EQ(json["verification"]["right"], true);
  EXPECT_EQ(json["verification"]["elements_checked"], 200 * 150);
  product[6] = "random:3x3:f32:4";
  const Ran refused = Gemmctl(product);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("scales_b is 3x3"));
  const Ran alone = Gemmctl({"multiply", product[1], product[2], "--scales-a", product[4]});
  EXPECT_NE(alone.exit_code, 0);
  EXPECT_THAT(alone.err, HasSubstr("--scales-a requires --scales-b"));
  EXPECT_EQ(GemmctlJson({"kernels", "host_openblas"})["kernels"][0]["block_scales"], true);
  const auto ranked = GemmctlJson(
      {"explain", "-m", "8", "-n", "8", "-k", "8", "--types", "e4m3", "--block-scales"});
  EXPECT_EQ(ranked["kernels"][0]["name"], "host_openblas");
}

// The type that is named is that of the files that leave it open, and of no other.
TEST_F(GemmctlTest, ScalesOfFilesAreF32WhateverTheOperandsAre) {
  const client::DataType fp8 = client::kF8E4M3;
  const std::string a = WriteMatrix("a.npy", {.rows = 1, .cols = 2, .dtype = fp8}, {1, 2});
  const std::string b = WriteMatrix("b.npy", {.rows = 2, .cols = 1, .dtype = fp8}, {3, 4});
  const std::string scales = WriteMatrix("scales.npy", {.rows = 1, .cols = 1}, {0.5});
  const auto json =
      GemmctlJson({"multiply", a, b, "--npy-dtype", "e4m3", "--scales-a", scales, "--scales-b",
                   scales, "--output-dtype", "f32", "-o", Path("d.npy"), "--verify"});
  EXPECT_EQ(json["verification"]["right"], true);
  EXPECT_THAT(ReadMatrix(Path("d.npy")), ElementsAre(2.75));
  const Ran other = Gemmctl({"multiply", a, b, "--npy-dtype", "bf16"});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.err, HasSubstr("cannot be read as bf16"));
}

// In silence, e4m3 was taken: of another type of one byte, a 2 became a 4.
TEST_F(GemmctlTest, AFileThatDoesNotSayItsTypeIsRefused) {
  const std::string e4m3 =
      WriteMatrix("e4m3.npy", {.rows = 1, .cols = 1, .dtype = client::kF8E4M3}, {2});
  const std::string e5m2 =
      WriteMatrix("e5m2.npy", {.rows = 1, .cols = 1, .dtype = client::kF8E5M2}, {3});
  const Ran unsaid = Gemmctl({"multiply", e4m3, e5m2});
  EXPECT_EQ(unsaid.exit_code, 1);
  EXPECT_THAT(unsaid.err, HasSubstr(e4m3 + ": descr is '<V1'"));
  EXPECT_THAT(unsaid.err, HasSubstr("--npy-dtype"));
  EXPECT_EQ(Gemmctl({"matrix", "put", e4m3}).exit_code, 1);
  // And e5m2 stays what its file says.
  GemmctlJson({"multiply", e4m3, e5m2, "--npy-dtype", "e4m3", "--output-dtype", "f32", "-o",
               Path("d.npy")});
  EXPECT_THAT(ReadMatrix(Path("d.npy")), ElementsAre(6));
}

TEST_F(GemmctlTest, AVectorThatDoesNotFitIsExplained) {
  const std::string a = WriteMatrix("a.npy", {.rows = 2, .cols = 4}, std::vector<double>(8, 1));
  const std::string vector = Path("vector.npy");
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }";
  header.resize(118, ' ');
  std::ofstream(vector) << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header
                        << std::string(16, '\0');
  const Ran ran = Gemmctl({"multiply", a, vector});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("vector.npy has one dimension and is read as 1 x 4, which "
                                 "--transpose-b makes 4 x 1"));
  EXPECT_EQ(Gemmctl({"multiply", a, vector, "--transpose-b"}).exit_code, 0);
}

TEST_F(GemmctlTest, MultipliesGroups) {
  const std::vector<std::string> group = {
      "multiply",        "random:60x8:f32:1", "random:40x5:f32:2",
      "--bias",          "random:5x5:f32:3",  "--group-m",
      "7,0,40,12,1",     "--verify",          "-o",
      Path("group.npy"), "--verify-samples",  "1000000"};
  const auto json = GemmctlJson(group);
  EXPECT_EQ(json["report"]["group_count"], 5);
  EXPECT_EQ(json["report"]["m"], 60);
  EXPECT_EQ(json["report"]["k"], 8);
  EXPECT_EQ(json["report"]["result"]["rows"], 60);
  EXPECT_EQ(json["verification"]["right"], true);
  EXPECT_EQ(json["verification"]["elements_checked"], 60 * 5);
  EXPECT_THAT(Gemmctl(group).out, HasSubstr("5, a group"));

  const auto by_k =
      GemmctlJson({"multiply", "random:60x8:f32:1", "random:60x5:f32:2", "--transpose-a",
                   "--group-k", "0,50,10", "--verify", "--verify-samples", "1000000"});
  EXPECT_EQ(by_k["report"]["k"], 60);
  EXPECT_EQ(by_k["report"]["result"]["rows"], 24);
  EXPECT_EQ(by_k["verification"]["right"], true);
  EXPECT_EQ(by_k["verification"]["elements_checked"], 24 * 5);

  const auto by_n =
      GemmctlJson({"multiply", "random:6x8:f32:1", "random:30x8:f32:2", "--transpose-b",
                   "--output-layout", "column", "--share", "a", "--bias", "random:1x30:f32:3",
                   "--group-n", "20,0,10", "--verify", "--verify-samples", "1000000"});
  EXPECT_EQ(by_n["report"]["n"], 30);
  EXPECT_EQ(by_n["verification"]["right"], true);
  EXPECT_EQ(by_n["verification"]["elements_checked"], 6 * 30);
}

// Their bytes are the same in either order, and a file names one of them.
TEST_F(GemmctlTest, TakesAMatrixOfOneLineInEitherOrder) {
  const std::string a = WriteMatrix("a.npy", {.rows = 2, .cols = 3}, {1, 2, 3, 4, 5, 6});
  const std::string b = WriteMatrix("b.npy", {.rows = 3, .cols = 1}, {1, 0, 1});
  const std::string c = WriteMatrix("c.npy", {.rows = 2, .cols = 1}, {10, 20});
  const auto json = GemmctlJson({"multiply", a, b, "--c", c, "--beta", "1", "--output-layout",
                                 "column", "-o", Path("d.npy"), "--verify"});
  EXPECT_EQ(json["verification"]["right"], true);
  EXPECT_THAT(ReadMatrix(Path("d.npy")), ElementsAre(14, 30));
  const std::string row = WriteMatrix("row.npy", {.rows = 1, .cols = 2}, {3, 4});
  GemmctlJson({"multiply", row, c, "--transpose-a", "--transpose-b", "--group-m", "2", "-o",
               Path("e.npy"), "--verify"});
  EXPECT_THAT(ReadMatrix(Path("e.npy")), ElementsAre(30, 60, 40, 80));
}

TEST_F(GemmctlTest, GroupsThatDoNotFitAreRefused) {
  const auto refused = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"multiply", "random:6x8:f32:1", "random:16x5:f32:2"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = Gemmctl(words);
    EXPECT_NE(ran.exit_code, 0);
    return ran.err;
  };
  EXPECT_THAT(refused({"--group-m", "4,3"}), HasSubstr("a.shape is 6x8 f32 row-major; it must be"));
  EXPECT_THAT(refused({"--group-m", "4,-2"}), HasSubstr("'4,-2' is not a list of numbers"));
  EXPECT_THAT(refused({"--group-m", "4,,2"}), HasSubstr("is not a list of numbers"));
  EXPECT_THAT(refused({"--group-m", "4,2", "--batch", "2"}), HasSubstr("excludes"));
  EXPECT_THAT(refused({"--group-m", "4,2", "--group-k", "4,2"}), HasSubstr("excludes"));
  EXPECT_THAT(refused({"--group-m", "0,0"}),
              HasSubstr("the m of all products of the group is 0; their sum must be at least 1"));
  const Ran right =
      Gemmctl({"multiply", "random:6x8:f32:1", "random:16x5:f32:2", "--group-m", "4,2"});
  EXPECT_EQ(right.exit_code, 0) << right.err;
}

TEST_F(GemmctlTest, ShowsTheServersCheck) {
  const Ran ran =
      Gemmctl({"multiply", "random:20x30:f32:1", "random:30x20:f32:2", "--check", "always"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("of the bound"));
  EXPECT_THAT(ran.out, Not(HasSubstr("verified")));
  const Ran wrong = Gemmctl({"multiply", "a.npy", "b.npy", "--check", "yes"});
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_THAT(wrong.err, HasSubstr("off, sampled, always"));
}

TEST_F(GemmctlTest, KeepsResultsAndUsesThemByNameAndId) {
  const auto put = GemmctlJson(
      {"matrix", "put", "random:64x32:f64:5:normal", "--name", "x/left", "--ttl", "10m"});
  EXPECT_EQ(put["matrix"]["name"], "x/left");
  EXPECT_EQ(put["matrix"]["shape"]["rows"], 64);
  EXPECT_EQ(put["matrix"]["bytes"], 64 * 32 * 8);
  EXPECT_TRUE(put["matrix"].contains("expires"));
  const auto product = GemmctlJson({"multiply", "@x/left", "random:32x16:f64:6", "--keep-name",
                                    "x/product", "--no-stream", "--verify"});
  EXPECT_EQ(product["kept"]["name"], "x/product");
  EXPECT_EQ(product["bytes_received"], 0);
  EXPECT_EQ(product["verification"]["right"], true);
  EXPECT_EQ(product["verification"]["elements_checked"], 64 * 16);
  const std::string id = "id:" + product["kept"]["id"].get<std::string>();

  const auto listed = GemmctlJson({"matrix", "list", "x/"});
  EXPECT_EQ(listed["matrices"].size(), 2);
  EXPECT_EQ(GemmctlJson({"matrix", "list", "y/"})["matrices"].size(), 0);
  GemmctlJson({"matrix", "get", "@x/left", "-o", Path("left.npy")});
  GemmctlJson({"matrix", "get", id, "-o", Path("product.npy")});
  const std::vector<double> left = ReadMatrix(Path("left.npy"));
  EXPECT_EQ(left.size(), 64 * 32);

  // What was downloaded goes up again and gives the same product.
  GemmctlJson({"multiply", Path("left.npy"), "random:32x16:f64:6", "-o", Path("again.npy")});
  EXPECT_EQ(ReadMatrix(Path("again.npy")), ReadMatrix(Path("product.npy")));

  // --release takes the operand away.
  GemmctlJson({"multiply", "@x/left", "random:32x16:f64:6", "--release"});
  const Ran gone = Gemmctl({"matrix", "rm", "@x/left", id});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.err, AllOf(StartsWith("gemmctl: NOT_FOUND: "), HasSubstr("x/left")));
  EXPECT_THAT(gone.out, HasSubstr("x/product"));
  EXPECT_EQ(GemmctlJson({"matrix", "list"})["matrices"].size(), 0);
}

TEST_F(GemmctlTest, ReplacesAndRemovesByVersion) {
  const auto put = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"matrix", "put", "random:4x4:f32", "--name", "w"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto version_of = [](const auto& json) {
    return std::to_string(json.template get<uint64_t>());
  };
  const std::string first =
      version_of(GemmctlJson(put({"--replace", "--if-version", "0"}))["matrix"]["version"]);
  EXPECT_THAT(Gemmctl(put({})).err, StartsWith("gemmctl: ALREADY_EXISTS: "));
  const Ran stale = Gemmctl(put({"--replace", "--if-version", "7"}));
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_THAT(stale.err, AllOf(StartsWith("gemmctl: ABORTED: "), HasSubstr("is 7, but"),
                               HasSubstr("version " + first)));
  EXPECT_EQ(Gemmctl(put({"--if-version", "7"})).exit_code, 2) << "it needs --replace";
  const std::string second =
      version_of(GemmctlJson({"multiply", "@w", "@w", "--keep-name", "w", "--keep-replace",
                              "--keep-if-version", first, "--no-stream"})["kept"]["version"]);
  EXPECT_EQ(version_of(GemmctlJson({"matrix", "list"})["matrices"][0]["version"]), second);
  const auto wide = StartShell("COLUMNS=200 exec \"$@\"", {"matrix", "list"})->Wait();
  EXPECT_THAT(wide.out, AllOf(HasSubstr("VERSION"), HasSubstr(second)));
  GemmctlJson({"matrix", "get", "@w", "-o", Path("w.npy")});

  const Ran kept = Gemmctl({"matrix", "rm", "@w", "--if-version", first});
  EXPECT_THAT(kept.err, AllOf(StartsWith("gemmctl: ABORTED: version is " + first),
                              HasSubstr("has version " + second)));
  EXPECT_EQ(Gemmctl({"matrix", "rm", "@w", "@v", "--if-version", second}).exit_code, 2);
  GemmctlJson({"matrix", "rm", "@w", "--if-version", second});
  EXPECT_EQ(GemmctlJson({"matrix", "list"})["matrices"].size(), 0);
}

// It may not look at the matrix, so its shape is not known here.
TEST_F(GemmctlTest, WhoMayOnlyMultiplyMultipliesASharedMatrix) {
  std::ofstream callers(Path("callers"));
  for (const auto& [name, roles] : {std::pair{"owner", "call,matrices"}, {"user", "call"}}) {
    const auto made = GemmctlJson({"token", name, "--roles", roles});
    callers << made["line"].get<std::string>() << '\n';
    std::ofstream(Path(name)) << made["token"].get<std::string>() << '\n';
    std::filesystem::permissions(Path(name), std::filesystem::perms::owner_read);
  }
  callers.close();
  const auto server =
      StartServer("shared", {"--metrics-address=", "--callers-file=" + Path("callers")});
  const auto as = [&](const char* name, std::vector<std::string> words) {
    words.insert(words.begin(), {"--address", AddressOf("shared"), "--token-file", Path(name)});
    return Gemmctl(std::move(words));
  };
  const std::string a = WriteMatrix("a.npy", {.rows = 2, .cols = 2}, {1, 2, 3, 4});
  const Ran put = as("owner", {"matrix", "put", a, "--name", "weights", "--shared"});
  ASSERT_EQ(put.exit_code, 0) << put.err;
  const Ran ran = as("user", {"multiply", a, "shared:weights", "-o", Path("d.npy")});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ReadMatrix(Path("d.npy")), ElementsAre(7, 10, 15, 22));
  const Ran verified = as("user", {"multiply", a, "shared:weights", "--verify"});
  EXPECT_EQ(verified.exit_code, 1) << "it may not read the elements";
  EXPECT_THAT(verified.err, HasSubstr("PERMISSION_DENIED"));
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait().exit_code, 0);
}

TEST_F(GemmctlTest, UploadsFilesOfEveryTypeUnchanged) {
  for (const client::DataType type : {client::kF64, client::kF32, client::kF16, client::kBF16}) {
    const std::string name(client::Name(type));
    const std::string file = WriteMatrix(name + ".npy", {.rows = 2, .cols = 3, .dtype = type},
                                         {0.5, -1, 2, 3.5, 0, -0.25});
    GemmctlJson({"matrix", "put", file, "--name", name});
    GemmctlJson({"matrix", "get", "@" + name, "-o", Path("back.npy")});
    client::Shape shape;
    EXPECT_THAT(ReadMatrix(Path("back.npy"), &shape), ElementsAre(0.5, -1, 2, 3.5, 0, -0.25));
    EXPECT_EQ(shape.dtype, type);
  }
}

TEST_F(GemmctlTest, SplitsLargeMatricesOverChannels) {
  const auto json =
      GemmctlJson({"multiply", "random:300x700:f32:1", "random:700x2000:f32:2", "--transport",
                   "striped", "--channels", "3", "-o", Path("big.npy"), "--verify"});
  EXPECT_EQ(json["transport"], "striped");
  EXPECT_EQ(json["bytes_received"], 300 * 2000 * 4);
  EXPECT_EQ(json["verification"]["right"], true);
  EXPECT_EQ(GemmctlJson({"matrix", "list"})["matrices"].size(), 0);
}

TEST_F(GemmctlTest, SendsRowsWhileRowsOfTheResultCome) {
  const std::string a =
      WriteMatrix("a.npy", {.rows = 300, .cols = 2}, std::vector<double>(600, 0.5));
  const std::string b = WriteMatrix("b.npy", {.rows = 2, .cols = 3}, {1, 2, 3, 4, 5, 6});
  for (const auto& [kernel, transport] :
       {std::pair("host_reference", "row-blocks"), {"host_openblas", "striped"}}) {
    const auto json = GemmctlJson({"multiply", a, b, "--transport", "row-blocks", "--kernel",
                                   kernel, "-o", Path("d.npy"), "--verify"});
    EXPECT_EQ(json["transport"], transport);
    EXPECT_EQ(json["report"]["m"], 300);
    EXPECT_EQ(json["verification"]["right"], true);
  }
  EXPECT_EQ(GemmctlJson({"kernels", "host_reference"})["kernels"][0]["row_blocks"], true);
}

TEST_F(GemmctlTest, FailuresHaveTheCodeAndTheSentenceOnStderr) {
  const std::string a = WriteMatrix("a.npy", {.rows = 2, .cols = 3}, {1, 2, 3, 4, 5, 6});
  std::ofstream(Path("not.npy")) << "not a matrix";
  struct Case {
    std::vector<std::string> arguments;
    std::string code;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {{"multiply", Path("missing.npy"), a}, "NOT_FOUND", "missing.npy"},
      {{"multiply", Path("not.npy"), a}, "INVALID_ARGUMENT", "not.npy"},
      {{"multiply", a, a}, "INVALID_ARGUMENT", "3"},
      {{"multiply", "@nobody", a}, "NOT_FOUND", "nobody"},
      {{"multiply", a, a, "--transpose-b", "--kernel", "host_openblaz"},
       "NOT_FOUND",
       "host_openblas"},
      {{"multiply", a, a, "--transpose-b", "--kernel", "host_openblas", "--param", "x=1"},
       "INVALID_ARGUMENT",
       "x"},
      {{"matrix", "get", "id:nothing", "-o", Path("x.npy")}, "NOT_FOUND", "nothing"},
      {{"matrix", "put", "random:4x4:f32", "--ca", Path("none"), "--name", "a"},
       "INVALID_ARGUMENT",
       "--ca is '" + Path("none") + "', which cannot be read"},
      {{"multiply", a, a, "--transpose-b", "-o", "/no/such/place/c.npy"}, "", "/no/such/place"},
      {{"--address", "unix:" + Path("nobody.sock"), "--deadline", "1s", "info"}, "", "nobody.sock"},
  };
  for (const Case& test : cases) {
    const Ran ran = Gemmctl(test.arguments);
    EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, StartsWith("gemmctl: " + test.code));
    EXPECT_THAT(ran.err, HasSubstr(test.sentence));
  }
}

TEST_F(GemmctlTest, ListsKernels) {
  const auto all = GemmctlJson({"kernels"})["kernels"];
  const auto available = GemmctlJson({"kernels", "--available"})["kernels"];
  ASSERT_GT(available.size(), 0);
  EXPECT_LE(available.size(), all.size());
  for (const auto& kernel : available) EXPECT_GT(kernel["devices"].size(), 0) << kernel;
  for (const auto& kernel : GemmctlJson({"kernels", "--family", "host"})["kernels"]) {
    EXPECT_EQ(kernel["family"], "host");
  }
  const Ran families = Gemmctl({"kernels", "--available"});
  EXPECT_THAT(families.out,
              AllOf(StartsWith("FAMILY"), HasSubstr("host"), HasSubstr("kernels in 1 family")));
  const Ran family = Gemmctl({"kernels", "host"});
  EXPECT_THAT(family.out, AllOf(HasSubstr("NAME"), HasSubstr("host_openblas\n"),
                                HasSubstr("FAMILY   host"), HasSubstr("f64,f32")));
  const Ran kernel = Gemmctl({"kernels", "host_openblas"});
  EXPECT_THAT(kernel.out, AllOf(StartsWith("name          host_openblas\n"),
                                HasSubstr("devices       host:0"), HasSubstr("results")));
  EXPECT_EQ(GemmctlJson({"kernels", "host_open*"})["kernels"].size(), 1);
  const Ran none = Gemmctl({"kernels", "hots"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, AllOf(StartsWith("gemmctl: NOT_FOUND: "), HasSubstr("'hots'"),
                              HasSubstr("its families are ")));
}

TEST_F(GemmctlTest, EveryTableAndHelpFitsTheTerminal) {
  const std::string name(128, 'n');
  GemmctlJson({"matrix", "put", "random:4x4:f32", "--name", name, "--ttl", "10m"});
  const std::vector<std::vector<std::string>> commands = {
      {"--help"},
      {"multiply", "--help"},
      {"bench", "--help"},
      {"loadtest", "--help"},
      {"explain", "--help"},
      {"tune", "--help"},
      {"kernels", "--help"},
      {"kernels"},
      {"kernels", "host"},
      {"kernels", "host_openblas"},
      {"info"},
      {"version"},
      {"matrix", "list"},
      {"multiply", "@" + name, "@" + name, "--verify"},
      {"bench", "--list-suites"},
      {"bench", "--shape", "8,24x16x8", "--family", "host", "--iterations", "2"},
      {"explain", "-m", "4096", "-n", "4096", "-k", "512"},
      {"tune", "--shapes", "8,24x16x8", "--rounds", "1", "-o", Path("width.tune")},
      {"loadtest", "--requests", "2", "--warmup", "0", "--shape", "8x8x8"},
  };
  for (const size_t width : {80, 120}) {
    for (const auto& words : commands) {
      const auto process = StartShell("COLUMNS=" + std::to_string(width) + " exec \"$@\"", words);
      const Ran ran = process->Wait();
      EXPECT_EQ(ran.exit_code, 0) << ran.err;
      std::istringstream lines(ran.out);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), width) << words[0] << ": " << line;
      }
    }
  }
}

TEST_F(GemmctlTest, ShowsTheServer) {
  const auto info = GemmctlJson({"info"});
  EXPECT_FALSE(info["version"].get<std::string>().empty());
  ASSERT_EQ(info["devices"].size(), 1);
  EXPECT_EQ(info["devices"][0]["name"], "host:0");
  EXPECT_EQ(info["devices"][0]["healthy"], true);
  EXPECT_GT(info["limits"]["max_message_bytes"], 0);
  EXPECT_EQ(info["load"]["matrices"], 0);
  EXPECT_EQ(info["load"]["matrices_expired"], 0);
  EXPECT_EQ(info["limits"]["unnamed_ttl_seconds"], 3600);
  EXPECT_EQ(info["verify"], "off");
  EXPECT_EQ(info["limits"]["benchmark_seconds"], 600);
  EXPECT_EQ(info["load"]["benchmark_running"], false);
  const Ran table = Gemmctl({"info"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("host:0"), HasSubstr("healthy"), HasSubstr("store"),
                               HasSubstr("none runs; at most 10m and 4.00 GiB")));

  const auto version = GemmctlJson({"version"});
  EXPECT_EQ(version["client"], GEMMCTL_VERSION);
  EXPECT_EQ(version["server"]["version"], info["version"]);
  const auto alone =
      GemmctlJson({"version", "--address", "unix:" + Path("nobody.sock"), "--deadline", "300ms"});
  EXPECT_EQ(alone["client"], GEMMCTL_VERSION);
  EXPECT_TRUE(alone["server"].is_null());
}

}  // namespace
}  // namespace gemmd::ctl
