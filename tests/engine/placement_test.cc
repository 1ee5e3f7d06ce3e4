// Where a job ends soonest, in tables, and the work that is placed on a device.
#include "server/engine/policy/placement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

absl::Duration Ms(double ms) { return absl::Milliseconds(1) * ms; }

TEST(PlacementTest, AJobGoesWhereItEndsSoonest) {
  struct Device {
    double backlog_ms, copy_ms, run_ms;
    uint64_t missing_bytes;
  };
  struct Case {
    std::string what;
    std::vector<Device> devices;
    std::vector<size_t> order;
  };
  const std::vector<Case> cases = {
      {"an idle holder", {{0, 0, 2, 0}, {0, 5, 2, 100}}, {0, 1}},
      {"a holder that is busy for less than the copy", {{4, 0, 2, 0}, {0, 5, 2, 100}}, {0, 1}},
      {"a holder that is busy for longer", {{6, 0, 2, 0}, {0, 5, 2, 100}}, {1, 0}},
      {"both are: the copy is made meanwhile", {{6, 0, 2, 0}, {5.5, 5, 2, 100}}, {1, 0}},
      {"holders alone", {{3, 0, 2, 0}, {2, 0, 2, 0}, {2.5, 0, 2, 0}}, {1, 2, 0}},
      {"the smaller operand moves", {{0, 9, 2, 900}, {0, 1, 2, 100}}, {1, 0}},
      {"a slower device", {{1, 0, 2, 0}, {0, 0, 4, 0}}, {0, 1}},
      {"nothing is known of the times", {{0, 0, 0, 7}, {0, 0, 0, 3}}, {1, 0}},
      {"equal ones keep their order", {{1, 0, 2, 0}, {1, 0, 2, 0}, {1, 0, 2, 0}}, {0, 1, 2}},
  };
  for (const Case& one : cases) {
    std::vector<Placement> devices;
    for (size_t i = 0; i < one.devices.size(); ++i) {
      const Device& device = one.devices[i];
      devices.push_back({.device_index = i,
                         .backlog = Ms(device.backlog_ms),
                         .copy = Ms(device.copy_ms),
                         .run = Ms(device.run_ms),
                         .missing_bytes = device.missing_bytes});
    }
    RankByEnd(devices);
    std::vector<size_t> order;
    for (const Placement& device : devices) order.push_back(device.device_index);
    EXPECT_EQ(order, one.order) << one.what;
  }
}

class PlacedWorkTest : public ::testing::Test {
 protected:
  TestClock clock_;
  PlacedWork work_;
};

TEST_F(PlacedWorkTest, WorkIsAheadUntilItHasRun) {
  PlacedWork::Share first = work_.Add(Ms(10), /*quick=*/false);
  PlacedWork::Share second = work_.Add(Ms(5), /*quick=*/false);
  clock_.Advance(Ms(3));
  EXPECT_EQ(work_.backlog(false), Ms(15)) << "in transfer";
  first.Begin();
  clock_.Advance(Ms(4));
  EXPECT_EQ(work_.backlog(false), Ms(11));
  clock_.Advance(Ms(20));
  EXPECT_EQ(work_.backlog(false), Ms(14 + 5)) << "late by 14 ms: as much again is expected";
  first.End();
  EXPECT_EQ(work_.backlog(false), Ms(5));
  second = PlacedWork::Share();
  EXPECT_EQ(work_.backlog(false), absl::ZeroDuration()) << "never ran";
}

TEST_F(PlacedWorkTest, JobsThatRunTogetherShareTheTime) {
  PlacedWork::Share first = work_.Add(Ms(10), /*quick=*/false);
  PlacedWork::Share second = work_.Add(Ms(10), /*quick=*/false);
  first.Begin();
  second.Begin();
  clock_.Advance(Ms(12));
  EXPECT_EQ(work_.backlog(false), Ms(8));
  first.End();
  EXPECT_EQ(work_.backlog(false), Ms(8));
  clock_.Advance(Ms(2));
  EXPECT_EQ(work_.backlog(false), Ms(6));
}

TEST_F(PlacedWorkTest, QuickJobsWaitForTheirLikeAlone) {
  const PlacedWork::Share large = work_.Add(Ms(100), /*quick=*/false);
  const PlacedWork::Share quick = work_.Add(Ms(1), /*quick=*/true);
  EXPECT_EQ(work_.backlog(true), Ms(1));
  EXPECT_EQ(work_.backlog(false), Ms(101));
}

TEST_F(PlacedWorkTest, AShareMovesWithItsJob) {
  PlacedWork::Share from = work_.Add(Ms(10), /*quick=*/false);
  from.Begin();
  PlacedWork::Share to = std::move(from);
  clock_.Advance(Ms(4));
  EXPECT_EQ(work_.backlog(false), Ms(6));
  to.End();
  to.End();
  EXPECT_EQ(work_.backlog(false), absl::ZeroDuration());
}

}  // namespace
}  // namespace gemmd
