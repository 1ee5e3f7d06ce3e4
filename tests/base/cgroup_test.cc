// Quotas of CPUs, as cgroups of both versions have them.
#include "server/base/cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "tests/base/temporary_folder.h"

namespace gemmd {
namespace {

class CpuQuotaTest : public ::testing::Test {
 protected:
  // A cgroup with such files.
  std::string Cgroup(const std::string& name,
                     const std::vector<std::pair<std::string, std::string>>& files) {
    std::filesystem::create_directory(folder_.Path(name));
    for (const auto& [file, text] : files) folder_.Write(name + "/" + file, text);
    return folder_.Path(name);
  }

  const TemporaryFolder folder_;
};

TEST_F(CpuQuotaTest, IsQuotaOverPeriod) {
  EXPECT_EQ(CpuQuota({Cgroup("two", {{"cpu.max", "150000 100000\n"}})}), 1.5);
  EXPECT_EQ(CpuQuota({Cgroup(
                "one", {{"cpu.cfs_quota_us", "50000\n"}, {"cpu.cfs_period_us", "100000\n"}})}),
            0.5);
}

TEST_F(CpuQuotaTest, NothingLimitsWhereThereIsNoQuota) {
  EXPECT_EQ(CpuQuota({Cgroup("two", {{"cpu.max", "max 100000\n"}})}), std::nullopt);
  EXPECT_EQ(
      CpuQuota({Cgroup("one", {{"cpu.cfs_quota_us", "-1\n"}, {"cpu.cfs_period_us", "100000\n"}})}),
      std::nullopt);
  EXPECT_EQ(CpuQuota({folder_.Path("none")}), std::nullopt);
  EXPECT_EQ(CpuQuota({Cgroup("odd", {{"cpu.max", "a b\n"}})}), std::nullopt);
}

TEST_F(CpuQuotaTest, TheLeastOfThemCounts) {
  const std::string inner = Cgroup("inner", {{"cpu.max", "400000 100000\n"}}),
                    outer = Cgroup("outer", {{"cpu.max", "250000 100000\n"}}),
                    all = Cgroup("all", {{"cpu.max", "max 100000\n"}});
  EXPECT_EQ(CpuQuota({inner, outer, all}), 2.5);
}

TEST(CpusToUse, AreSomeOfTheMachines) {
  EXPECT_GE(CpusToUse(), 1);
  EXPECT_LE(CpusToUse(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace gemmd
