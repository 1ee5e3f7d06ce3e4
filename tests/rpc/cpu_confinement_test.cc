// The CPUs on which gRPC's threads may run.
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/process/thread_limits.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;

int AllowedCpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

TEST(NeighbourCpus, AreTheBlockAroundTheCurrentOne) {
  EXPECT_THAT(NeighbourCpus({0, 1, 2, 3, 4, 5, 6, 7}, 5, 4), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(NeighbourCpus({0, 1, 2, 3, 4, 5, 6, 7}, 3, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(NeighbourCpus({8, 10, 12}, 12, 2), ElementsAre(10, 12));
}

TEST(NeighbourCpus, AreAllWhereThereAreNoMore) {
  EXPECT_THAT(NeighbourCpus({2, 5}, 5, 4), ElementsAre(2, 5));
  EXPECT_THAT(NeighbourCpus({3}, 3, 1), ElementsAre(3));
}

TEST(CpuConfinement, HoldsForThreadsStartedWithinItAndEnds) {
  const int before = AllowedCpus();
  ASSERT_GT(before, 0);
  {
    const CpuConfinement confinement(1);
    int within = 0;
    std::thread([&within] { within = AllowedCpus(); }).join();
    EXPECT_EQ(within, 1);
  }
  EXPECT_EQ(AllowedCpus(), before);
}

TEST(CpuConfinement, OfNoneChangesNothing) {
  const int before = AllowedCpus();
  const CpuConfinement confinement(0);
  EXPECT_EQ(AllowedCpus(), before);
}

}  // namespace
}  // namespace gemmd
