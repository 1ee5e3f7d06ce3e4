// The names that the catalogue has promised: clients rely on them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gemm/catalogue.h"

namespace gemm {
namespace {

using ::testing::IsEmpty;

// One name a line.
std::vector<std::string> PromisedNames() {
  std::ifstream file(GEMM_KERNEL_NAMES);
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) names.push_back(line);
  return names;
}

TEST(KernelNames, AreAllInTheCatalogue) {
  const std::vector<std::string> names = PromisedNames();
  ASSERT_EQ(names.size(), 185u) << "names in " << GEMM_KERNEL_NAMES;
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (!FindKernel(name).ok()) missing.push_back(name);
  }
  EXPECT_THAT(missing, IsEmpty()) << missing.size() << " of " << names.size() << " are missing";
}

}  // namespace
}  // namespace gemm
