#include "server/base/cgroup.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gemmd {
namespace {

constexpr absl::string_view kRoot = "/sys/fs/cgroup";

// The number in a file of one word; nullopt for another word, and where there is no such file.
std::optional<int64_t> NumberIn(std::istream& file) {
  std::string word;
  int64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number)) return std::nullopt;
  return number;
}

std::optional<double> Ratio(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> QuotaOf(const std::string& folder) {
  std::ifstream max(folder + "/cpu.max");
  if (max.is_open()) {
    const std::optional<int64_t> quota = NumberIn(max);
    return Ratio(quota, NumberIn(max));
  }
  std::ifstream quota(folder + "/cpu.cfs_quota_us"), period(folder + "/cpu.cfs_period_us");
  return Ratio(NumberIn(quota), NumberIn(period));
}

}  // namespace

std::vector<std::string> CgroupFolders(absl::string_view controller) {
  // Without their path, too: in a container it may be one of the host.
  std::vector<std::string> own = {absl::StrCat(kRoot, "/", controller), std::string(kRoot)};
  std::ifstream cgroups("/proc/self/cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (std::find(controllers.begin(), controllers.end(), controller) != controllers.end()) {
      own.push_back(absl::StrCat(kRoot, "/", parts[1], parts[2]));
      own.push_back(absl::StrCat(kRoot, "/", controller, parts[2]));
    }
    if (parts[1].empty()) own.push_back(absl::StrCat(kRoot, parts[2]));
  }
  std::vector<std::string> all;
  for (std::string folder : own) {
    for (; folder.size() >= kRoot.size(); folder.resize(folder.rfind('/'))) all.push_back(folder);
  }
  return all;
}

std::optional<double> CpuQuota(const std::vector<std::string>& folders) {
  std::optional<double> least;
  for (const std::string& folder : folders) {
    const std::optional<double> quota = QuotaOf(folder);
    if (quota) least = std::min(least.value_or(*quota), *quota);
  }
  return least;
}

int CpusToUse() {
  const int may_run_on = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::optional<double> quota = CpuQuota(CgroupFolders("cpu"));
  if (!quota) return may_run_on;
  return std::clamp(static_cast<int>(std::ceil(*quota)), 1, may_run_on);
}

}  // namespace gemmd
