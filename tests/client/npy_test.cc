// .npy files, against those that numpy and ml_dtypes wrote (data/make_fixtures.py).

#include "gemmd/client/npy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Fixture(absl::string_view name) {
  return absl::StrCat(GEMMD_TEST_DATA, "/", name, ".npy");
}

std::string Content(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

class NpyTest : public ::testing::Test {
 protected:
  NpyTest() : folder_(absl::StrCat(::testing::TempDir(), "npy_test.", getpid())) {
    (void)mkdir(folder_.c_str(), 0700);
  }
  ~NpyTest() override {
    (void)unlink(path().c_str());
    (void)rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/matrix.npy"; }
  void WriteFile(const std::string& content) const {
    std::ofstream(path(), std::ios::binary) << content;
  }
  std::string folder_;
};

std::vector<double> Quarters() {
  std::vector<double> values;
  for (int i = 0; i < 12; ++i) values.push_back(i / 4.0 - 1);
  return values;
}

std::vector<double> Integers() {
  std::vector<double> values;
  for (int i = 0; i < 12; ++i) values.push_back(i - 5);
  return values;
}

class FixtureTest : public NpyTest, public ::testing::WithParamInterface<DataType> {};

TEST_P(FixtureTest, IsReadAndWrittenAsNumpyDoes) {
  const std::string fixture = Fixture(Name(GetParam()));
  const auto hint = GetParam() == kF8E4M3 ? std::optional(kF8E4M3) : std::nullopt;
  const auto matrix = ReadNpy(fixture, hint);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(ToString(matrix->shape()), absl::StrCat("3x4 ", Name(GetParam()), " row-major"));
  const bool integers = GetParam() == kS8 || GetParam() == kS32;
  EXPECT_EQ(matrix->ToDoubles(), integers ? Integers() : Quarters());
  ASSERT_TRUE(WriteNpy(path(), matrix->view()).ok());
  EXPECT_EQ(Content(path()), Content(fixture));
}

INSTANTIATE_TEST_SUITE_P(Types, FixtureTest,
                         ::testing::Values(kF64, kF32, kF16, kBF16, kF8E4M3, kF8E5M2, kS8, kS32),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_F(NpyTest, BigEndianElementsAreSwapped) {
  for (const DataType type : {kF64, kF32, kF16, kS32}) {
    const std::string fixture = Fixture(absl::StrCat("big_endian_", Name(type)));
    const auto header = StatNpy(fixture);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_TRUE(header->big_endian);
    const auto matrix = ReadNpy(fixture);
    ASSERT_TRUE(matrix.ok()) << matrix.status();
    EXPECT_EQ(matrix->shape().dtype, type);
    EXPECT_EQ(matrix->ToDoubles(), type == kS32 ? Integers() : Quarters());
    // Written little-endian, as all are.
    ASSERT_TRUE(WriteNpy(path(), matrix->view()).ok());
    EXPECT_EQ(Content(path()), Content(Fixture(Name(type))));
  }
}

TEST_F(NpyTest, FortranOrderIsColumnMajor) {
  const auto matrix = ReadNpy(Fixture("fortran"));
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->shape().layout, kColumnMajor);
  EXPECT_EQ(matrix->ToDoubles(), Quarters());
  ASSERT_TRUE(WriteNpy(path(), matrix->view()).ok());
  EXPECT_EQ(Content(path()), Content(Fixture("fortran")));
}

TEST_F(NpyTest, FewerDimensionsAreOneRow) {
  const auto vector = StatNpy(Fixture("vector"));
  ASSERT_TRUE(vector.ok()) << vector.status();
  EXPECT_EQ(ToString(vector->shape), "1x4 f32 row-major");
  EXPECT_EQ(vector->dimensions, 1);
  const auto scalar = ReadNpy(Fixture("scalar"));
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(ToString(scalar->shape()), "1x1 f64 row-major");
  EXPECT_EQ(scalar->Get(0, 0), -1);
}

TEST_F(NpyTest, EveryVersionIsRead) {
  for (int version : {1, 2, 3}) {
    const std::string fixture = Fixture(absl::StrCat("version", version));
    const auto header = StatNpy(fixture);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->major_version, version);
    const auto matrix = ReadNpy(fixture);
    ASSERT_TRUE(matrix.ok()) << matrix.status();
    EXPECT_EQ(matrix->ToDoubles(), Quarters());
  }
}

TEST_F(NpyTest, HintDecidesWhatAnOpaqueTypeIs) {
  const auto hinted = StatNpy(Fixture("e4m3"), kF8E5M2);
  ASSERT_TRUE(hinted.ok()) << hinted.status();
  EXPECT_EQ(hinted->shape.dtype, kF8E5M2);
  EXPECT_EQ(StatNpy(Fixture("bf16"), kF16)->shape.dtype, kF16);
  const absl::Status wide = StatNpy(Fixture("bf16"), kF32).status();
  EXPECT_THAT(std::string(wide.message()),
              HasSubstr("descr is '<V2', which is bf16 and cannot be read as f32"));
  EXPECT_FALSE(StatNpy(Fixture("f32"), kS32).ok());
  EXPECT_TRUE(StatNpy(Fixture("f32"), kF32).ok());
}

// ml_dtypes writes it for e4m3fnuz, e8m0, int4 and others as well.
TEST_F(NpyTest, ATypeThatManyShareIsAskedFor) {
  const absl::Status unsaid = StatNpy(Fixture("e4m3")).status();
  EXPECT_EQ(unsaid.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unsaid.message()),
              HasSubstr("say which it is, e4m3, e5m2 or s8 (--npy-dtype)"));
  for (const DataType type : {kF8E4M3, kF8E5M2, kS8}) {
    const auto said = StatNpy(Fixture("e4m3"), type);
    ASSERT_TRUE(said.ok()) << said.status();
    EXPECT_EQ(said->shape.dtype, type);
  }
}

// Each has one type in ml_dtypes.
TEST_F(NpyTest, ATypeThatIsSaidStays) {
  EXPECT_EQ(StatNpy(Fixture("e5m2"))->shape.dtype, kF8E5M2);
  EXPECT_THAT(std::string(StatNpy(Fixture("e5m2"), kF8E4M3).status().message()),
              HasSubstr("which is e5m2 and cannot be read as e4m3"));
}

TEST_F(NpyTest, AnArchiveIsNamed) {
  WriteFile("PK\x03\x04 and the rest of a .npz");
  EXPECT_THAT(std::string(ReadNpy(path()).status().message()), HasSubstr("a .npz archive"));
}

TEST_F(NpyTest, ErrorsNameTheFileAndWhatIsAllowed) {
  const auto message = [](absl::string_view name) {
    const absl::Status status = ReadNpy(Fixture(name)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), StartsWith(Fixture(name)));
    return std::string(status.message());
  };
  EXPECT_THAT(message("cube"), HasSubstr("3 dimensions; it must have at most 2"));
  EXPECT_THAT(message("complex"), HasSubstr("'<c8'; it must be one of <f8, <f4"));
  EXPECT_EQ(ReadNpy("/nowhere/a.npy").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadNpy("/tmp").status().message()), HasSubstr("not a regular file"));
}

TEST_F(NpyTest, FileMustBeAsLongAsItsHeaderSays) {
  const std::string content = Content(Fixture("f32"));
  WriteFile(content.substr(0, content.size() - 1));
  EXPECT_THAT(std::string(ReadNpy(path()).status().message()),
              HasSubstr("the file has 175 bytes; its header (3x4 f32 row-major) asks for 176"));
  WriteFile(content + "x");
  EXPECT_EQ(ReadNpy(path()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(NpyTest, WriteFailsWithThePath) {
  const auto matrix = HostMatrix::FromDoubles({.rows = 1, .cols = 1}, {1});
  ASSERT_TRUE(matrix.ok());
  const absl::Status status = WriteNpy("/nowhere/out.npy", matrix->view());
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), StartsWith("/nowhere/out.npy"));
}

// A version 1.0 file with this dictionary.
std::string WithDictionary(const std::string& dictionary) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dictionary.size() & 0xff);
  bytes += static_cast<char>(dictionary.size() >> 8);
  return bytes + dictionary;
}

TEST(NpyHeader, AcceptsAnySpelling) {
  const auto header =
      ReadNpyHeader(WithDictionary("{ \"shape\":(7,2) ,'fortran_order':True,'descr' : '<f8'}\n"));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(ToString(header->shape), "7x2 f64 column-major");
}

TEST(NpyHeader, AnOrderLeftOutIsThatOfThisMachine) {
  for (const std::string descr : {"=f4", "f4", "|f4", "<f4", ">f4", ">i1", "=V2", "V2", "f1"}) {
    const auto header = ReadNpyHeader(WithDictionary(
        absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (2, 3)}")));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->big_endian, descr == ">f4") << descr;
    EXPECT_EQ(header->descr, descr);
  }
}

struct BadHeader {
  std::string dictionary;
  std::string message;
};

TEST(NpyHeader, RefusesBadDictionaries) {
  const std::string good = "'descr': '<f4', 'fortran_order': False, ";
  const BadHeader rows[] = {
      {"", "where '{' belongs"},
      {"{", "where a quoted string belongs"},
      {"{'descr", "a string without an end"},
      {"{'descr': '<f4', 'fortran_order': False}", "lacks shape"},
      {"{" + good + "'shape': (2, 3), 'more': 1}", "has the key 'more'"},
      {"{" + good + "'shape': (2, 3)} x", "after its dictionary"},
      {"{" + good + "'shape': (2, -3)}", "where a number of at least 0 belongs"},
      {"{" + good + "'shape': (02, 3)}", "where a number of at least 0 belongs"},
      {"{" + good + "'shape': (2, 0)}", "shape.cols is 0; it must be at least 1"},
      {"{" + good + "'shape': (2, 3}", "where ')' belongs"},
      {"{" + good + "'shape': (99999999999999999999, 1)}", "above 2^63 - 1"},
      {"{" + good + "'shape': (4294967296, 4294967296)}", "below 2^62 bytes"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 1)}", "it must be True or False"},
      {"{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,)}",
       "descr is '[(\\'a\\', \\'<f4\\'), (\\'b\\', \\'<f4\\')]', a structured type; it must be one "
       "of"},
      {"{'descr': u'<f4', 'fortran_order': False, 'shape': (1,)}",
       "descr is 'u\\'<f4\\''; it must be one of <f8"},
      {"{'descr': 7}", "descr is '7'; it must be one of"},
      {"{'descr': ", "descr is ''; it must be one of"},
      {"{'descr': ]", "descr is ']'; it must be one of"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "descr is '|O'; it must be"},
      {"{'descr': '>V2', 'fortran_order': False, 'shape': (1,)}", "'>V2', which is big-endian"},
      {"{'descr': 'float32', 'fortran_order': False, 'shape': (1,)}", "descr is 'float32'"},
      {"{'descr': '<<f4', 'fortran_order': False, 'shape': (1,)}", "descr is '<<f4'"},
      {"{'descr': '<', 'fortran_order': False, 'shape': (1,)}", "descr is '<'; it must be"},
      {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "descr is ''; it must be"},
  };
  for (const BadHeader& row : rows) {
    const absl::Status status = ReadNpyHeader(WithDictionary(row.dictionary)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.dictionary;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.message)) << row.dictionary;
  }
}

TEST(NpyHeader, RefusesBadPrefixes) {
  const auto message = [](const std::string& bytes) {
    return std::string(ReadNpyHeader(bytes).status().message());
  };
  EXPECT_THAT(message(""), HasSubstr("not a .npy file"));
  EXPECT_THAT(message("PK\x03\x04 and so on"), HasSubstr("not a .npy file"));
  EXPECT_THAT(message(std::string("\x93NUMPY\x04\x00\x00\x00", 10)), HasSubstr("version 4.0"));
  EXPECT_THAT(message(std::string("\x93NUMPY\x01\x00\x10", 9)), HasSubstr("ends inside"));
  EXPECT_THAT(message(std::string("\x93NUMPY\x01\x00\x10\x00{", 11)), HasSubstr("ends inside"));
  EXPECT_THAT(message(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
              HasSubstr("the header has 4294967295 bytes"));
}

TEST(NpyHeader, EveryCutOfAGoodHeaderIsRefusedOrTheSame) {
  const auto whole = EncodeNpyHeader({.rows = 12, .cols = 34, .dtype = kBF16});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->size() % 64, 0u);
  for (size_t length = 0; length < whole->size(); ++length) {
    EXPECT_FALSE(ReadNpyHeader(absl::string_view(whole->data(), length)).ok()) << length;
  }
  const auto header = ReadNpyHeader(*whole);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->data_offset, whole->size());
}

}  // namespace
}  // namespace gemmd::client
