// Which kernels gemmctl tune measures, by the rankings of the server.
#include "client/ctl/tune/candidates.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace gemmd::ctl {
namespace {

using Estimate = std::pair<std::string, double>;  // seconds; 0: none

::gemm::v1::RankKernelsResponse Ranking(const std::vector<Estimate>& kernels) {
  ::gemm::v1::RankKernelsResponse ranking;
  for (const auto& [name, seconds] : kernels) {
    ::gemm::v1::RankedKernel& kernel = *ranking.add_kernels();
    kernel.set_name(name);
    kernel.set_estimated_seconds(seconds);
  }
  return ranking;
}

TEST(Candidates, OfTheEstimatedTheBestAreMeasuredAndOfTheOthersAll) {
  Candidates candidates(2);
  // The choice comes first, whatever its estimate.
  candidates.Add(Ranking({{"slow", 9}, {"fast", 1}, {"next", 2}, {"late", 3}, {"library", 0}}));
  EXPECT_FALSE(candidates.LeavesOut("fast"));
  EXPECT_FALSE(candidates.LeavesOut("next"));
  EXPECT_TRUE(candidates.LeavesOut("late"));
  EXPECT_TRUE(candidates.LeavesOut("slow"));
  EXPECT_FALSE(candidates.LeavesOut("library"));
  EXPECT_FALSE(candidates.LeavesOut("in no ranking"));
}

TEST(Candidates, OneThatIsGoodForOtherTypesIsMeasured) {
  Candidates candidates(1);
  candidates.Add(Ranking({{"x", 1}, {"y", 2}, {"z", 3}}));
  candidates.Add(Ranking({{"y", 1}, {"x", 2}, {"z", 3}}));
  EXPECT_FALSE(candidates.LeavesOut("x"));
  EXPECT_FALSE(candidates.LeavesOut("y"));
  EXPECT_TRUE(candidates.LeavesOut("z"));
}

// Its estimate is of its first algorithm.
TEST(Candidates, ALibrarysKernelsAreMeasuredWhateverTheirEstimate) {
  ::gemm::v1::RankKernelsResponse ranking =
      Ranking({{"fast", 1}, {"late", 2}, {"cublaslt_f16", 9}});
  ranking.mutable_kernels(2)->set_family("cublaslt");
  Candidates candidates(1);
  candidates.Add(ranking);
  EXPECT_TRUE(candidates.LeavesOut("late"));
  EXPECT_FALSE(candidates.LeavesOut("cublaslt_f16"));
}

}  // namespace
}  // namespace gemmd::ctl
