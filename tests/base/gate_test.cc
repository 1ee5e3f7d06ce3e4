#include "server/base/gate.h"

#include <gtest/gtest.h>

#include <memory>

namespace gemmd {
namespace {

TEST(ListenerGate, LetsCallsInUntilItIsClosed) {
  ListenerGate gate;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(gate.Enter());
    gate.Leave();
  }
  gate.Close([] {});
  EXPECT_FALSE(gate.Enter());
}

TEST(ListenerGate, MakesTheLastCallAtOnceWhereNoneIsUnderWay) {
  ListenerGate gate;
  EXPECT_TRUE(gate.Enter());
  gate.Leave();
  int last = 0;
  gate.Close([&last] { ++last; });
  EXPECT_EQ(last, 1);
}

TEST(ListenerGate, MakesTheLastCallWhenTheOneUnderWayLeaves) {
  ListenerGate gate;
  ASSERT_TRUE(gate.Enter());
  int last = 0;
  gate.Close([&last] { ++last; });
  EXPECT_EQ(last, 0) << "two calls at a time";
  EXPECT_FALSE(gate.Enter()) << "a call after the close";
  gate.Leave();
  EXPECT_EQ(last, 1);
}

TEST(ListenerGate, OnlyTheFirstCloseCounts) {
  ListenerGate gate;
  int first = 0;
  int second = 0;
  ASSERT_TRUE(gate.Enter());
  gate.Close([&first] { ++first; });
  gate.Close([&second] { ++second; });
  gate.Leave();
  gate.Close([&second] { ++second; });
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
}

// With its lock held these would never return.
TEST(ListenerGate, TheLastCallMayUseTheGate) {
  for (const bool inside : {false, true}) {
    ListenerGate gate;
    bool entered = true;
    if (inside) {
      ASSERT_TRUE(gate.Enter());
    }
    gate.Close([&] {
      entered = gate.Enter();
      gate.Close([] {});
    });
    if (inside) gate.Leave();
    EXPECT_FALSE(entered);
  }
}

TEST(ListenerGate, KeepsNothingOfTheLastCall) {
  ListenerGate gate;
  auto owned = std::make_shared<int>();
  ASSERT_TRUE(gate.Enter());
  gate.Close([owned] {});
  EXPECT_EQ(owned.use_count(), 2);
  gate.Leave();
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace gemmd
