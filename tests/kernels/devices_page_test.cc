// The table of kernels in docs/supported-devices.md is that of the catalogue.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gemm/catalogue.h"
#include "gemm/kernel.h"

namespace gemm {
namespace {

struct Row {
  const char* device;
  DeviceCaps caps;
};

// The code is that of the release build's list of architectures, but in the last row.
const Row kRows[] = {
    {"8.0, 8.6", {Target::kCuda, 80, DeviceCode::kAny}},
    {"8.9", {Target::kCuda, 89, DeviceCode::kSm89}},
    {"9.0, with code for sm_90a", {Target::kCuda, 90, DeviceCode::kSm90a}},
    {"10.0 and up, from PTX for compute_90", {Target::kCuda, 100, DeviceCode::kSm89}},
    {"9.0, from PTX for compute_80 alone", {Target::kCuda, 90, DeviceCode::kAny}},
};

TEST(DevicesPageTest, TheTableIsThatOfTheCatalogue) {
  std::vector<absl::string_view> families;
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->target == Target::kCuda &&
        (families.empty() || families.back() != kernel->family)) {
      families.push_back(kernel->family);
    }
  }
  if (families.empty()) GTEST_SKIP() << "skipped: built without CUDA, so without its kernels";
  std::string table = "| device |", line = "\n| --- |";
  for (const absl::string_view family : families) {
    absl::StrAppend(&table, " ", family, " |");
    absl::StrAppend(&line, " ---: |");
  }
  absl::StrAppend(&table, line, "\n");
  for (const Row& row : kRows) {
    absl::StrAppend(&table, "| ", row.device, " |");
    for (const absl::string_view family : families) {
      int runs = 0;
      for (const Kernel* kernel : Catalogue()) {
        if (kernel->family == family && CheckDevice(*kernel, row.caps).ok()) ++runs;
      }
      absl::StrAppend(&table, " ", runs, " |");
    }
    absl::StrAppend(&table, "\n");
  }
  std::ifstream file(GEMM_DEVICES_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(absl::StrContains(page, "<!-- table -->\n" + table + "<!-- end of the table -->"))
      << table;
}

}  // namespace
}  // namespace gemm
