#include "server/engine/device/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace gemmd {
namespace {

using ::testing::ElementsAre;

constexpr size_t kBlock = 64;

class StagingPoolTest : public ::testing::Test {
 protected:
  StagingBlock Take() {
    StagingBlock taken;
    pool_.Acquire([&](StagingBlock block) { taken = std::move(block); });
    EXPECT_TRUE(taken);
    return taken;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(3 * kBlock);
  StagingPool pool_{memory_.data(), kBlock, 3};
};

TEST_F(StagingPoolTest, HandsOutEveryBlockOnce) {
  const StagingBlock a = Take(), b = Take(), c = Take();
  const std::set<std::byte*> blocks = {a.data(), b.data(), c.data()};
  EXPECT_THAT(blocks,
              ElementsAre(memory_.data(), memory_.data() + kBlock, memory_.data() + 2 * kBlock));
  EXPECT_EQ(pool_.used_blocks(), 3u);
}

TEST_F(StagingPoolTest, BlocksComeBackOnDestructionResetAndAssignment) {
  {
    StagingBlock a = Take();
    const StagingBlock b = Take();
    EXPECT_EQ(pool_.used_blocks(), 2u);
    a.Reset();
    EXPECT_FALSE(a);
    EXPECT_EQ(pool_.used_blocks(), 1u);
    a = Take();
    a = Take();
    EXPECT_EQ(pool_.used_blocks(), 2u);
  }
  EXPECT_EQ(pool_.used_blocks(), 0u);
}

TEST_F(StagingPoolTest, WaitersAreServedInTheOrderTheyCame) {
  std::vector<StagingBlock> held;
  for (int i = 0; i < 3; ++i) held.push_back(Take());
  std::vector<int> order;
  std::array<StagingBlock, 5> got;
  for (int i = 0; i < 5; ++i) {
    pool_.Acquire([&, i](StagingBlock block) {
      order.push_back(i);
      got[i] = std::move(block);
    });
  }
  EXPECT_TRUE(order.empty());
  held.pop_back();
  EXPECT_THAT(order, ElementsAre(0));
  held.clear();
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  got[1].Reset();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
  got[0].Reset();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(StagingPoolTest, WhoIsNextIsServedBeforeOthersInTheOrderTheyCame) {
  std::vector<StagingBlock> held;
  for (int i = 0; i < 3; ++i) held.push_back(Take());
  std::vector<int> order;
  const auto wait = [&](int who, StagingPool::Turn turn) {
    return pool_.Acquire([&order, who](StagingBlock) { order.push_back(who); }, turn);
  };
  wait(0, StagingPool::Turn::kLast);
  wait(1, StagingPool::Turn::kNext);
  const StagingPool::Place gone = wait(2, StagingPool::Turn::kNext);
  wait(3, StagingPool::Turn::kNext);
  wait(4, StagingPool::Turn::kLast);
  pool_.Withdraw(gone);
  held.pop_back();
  EXPECT_THAT(order, ElementsAre(1, 3, 0, 4));
}

TEST_F(StagingPoolTest, AWaiterThatDropsItsBlockPassesItOn) {
  std::vector<StagingBlock> held;
  for (int i = 0; i < 3; ++i) held.push_back(Take());
  std::vector<int> order;
  StagingBlock last;
  pool_.Acquire([&](StagingBlock) { order.push_back(0); });
  pool_.Acquire([&](StagingBlock) { order.push_back(1); });
  pool_.Acquire([&](StagingBlock block) {
    order.push_back(2);
    last = std::move(block);
  });
  held.pop_back();
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_TRUE(last);
}

TEST_F(StagingPoolTest, TryAcquireTakesWhatIsFreeAndNeverWaits) {
  std::vector<StagingBlock> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(pool_.TryAcquire());
    EXPECT_TRUE(held.back());
  }
  EXPECT_FALSE(pool_.TryAcquire());
  held.pop_back();
  EXPECT_TRUE(pool_.TryAcquire());
}

// Far deeper than a stack would bear, if each hand-out nested in the last.
TEST_F(StagingPoolTest, AMillionWaitersThatDropTheirBlocksDoNotNest) {
  std::vector<StagingBlock> held;
  for (int i = 0; i < 3; ++i) held.push_back(Take());
  int served = 0;
  for (int i = 0; i < 1'000'000; ++i) pool_.Acquire([&](StagingBlock) { ++served; });
  held.pop_back();
  EXPECT_EQ(served, 1'000'000);
  EXPECT_EQ(pool_.used_blocks(), 2u);
}

TEST_F(StagingPoolTest, AChainOfWaitersThatAskAgainDoesNotNest) {
  int served = 0;
  int depth = 0;
  std::function<void()> ask = [&] {
    pool_.Acquire([&](StagingBlock) {
      EXPECT_EQ(++depth, 1);
      if (++served < 1'000'000) ask();
      --depth;
    });
  };
  ask();
  EXPECT_EQ(served, 1'000'000);
  EXPECT_EQ(pool_.used_blocks(), 0u);
}

TEST_F(StagingPoolTest, AWaiterMayUseThePoolAndAnotherPool) {
  std::vector<std::byte> memory(kBlock);
  StagingPool other(memory.data(), kBlock, 1);
  StagingBlock from_other;
  size_t used_inside = 0;
  pool_.Acquire([&](StagingBlock) {
    used_inside = pool_.used_blocks();
    other.Acquire([&](StagingBlock block) { from_other = std::move(block); });
    EXPECT_TRUE(from_other) << "another pool is served at once";
  });
  EXPECT_EQ(used_inside, 1u);
  EXPECT_EQ(other.used_blocks(), 1u);
}

TEST_F(StagingPoolTest, ManyThreadsShareFewBlocks) {
  constexpr int kThreads = 8;
  constexpr int kTurns = 2000;
  std::atomic<int> outstanding{0};
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kTurns; ++i) {
        pool_.Acquire([&, keep = random() % 2 == 0](StagingBlock block) {
          EXPECT_LE(outstanding.fetch_add(1) + 1, 3);
          block.data()[0] = std::byte{1};  // a block in two hands is a data race
          if (keep) std::this_thread::yield();
          outstanding.fetch_sub(1);
          served.fetch_add(1);
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served.load(), kThreads * kTurns);
  EXPECT_EQ(pool_.used_blocks(), 0u);
}

// A pool of 32 blocks: two are for prompt receivers alone.
class StagingShareTest : public ::testing::Test {
 protected:
  // Asks until the receiver has its share; how many blocks it got.
  size_t TakeAll(ReceiverId receiver) {
    size_t taken = 0;
    while (StagingBlock block = pool_.TryAcquire(receiver)) {
      held_.push_back(std::move(block));
      ++taken;
    }
    return taken;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(32 * kBlock);
  StagingPool pool_{memory_.data(), kBlock, 32};
  std::vector<StagingBlock> held_;
};

TEST_F(StagingShareTest, AReceiverThatLetsNothingGoGetsTwoBlocks) {
  EXPECT_EQ(TakeAll(NewReceiver()), 2u);
  EXPECT_EQ(TakeAll(NewReceiver()), 2u);
}

TEST_F(StagingShareTest, ItsWindowGrowsAsItLetsBlocksGoUpToAShareOfWhatIsFree) {
  const ReceiverId receiver = NewReceiver();
  EXPECT_EQ(TakeAll(receiver), 2u);
  held_.erase(held_.begin());
  EXPECT_EQ(TakeAll(receiver), 2u);
  for (int i = 0; i < 100; ++i) {
    held_.erase(held_.begin());
    TakeAll(receiver);
  }
  EXPECT_EQ(held_.size(), 6u) << "a quarter of the 24 that are free beside the reserve";
}

TEST_F(StagingShareTest, ManyThatLetNothingGoLeaveTheReserveToPromptOnes) {
  for (int i = 0; i < 100; ++i) TakeAll(NewReceiver());
  EXPECT_EQ(pool_.used_blocks(), 30u);
  EXPECT_EQ(TakeAll(kPromptReceiver), 2u);
}

TEST_F(StagingShareTest, OneWithItsShareWaitsForItsOwnBlocksAndOthersPassIt) {
  const ReceiverId full = NewReceiver();
  TakeAll(full);
  bool served = false;
  StagingBlock got;
  pool_.Acquire(full, [&](StagingBlock block) {
    served = true;
    got = std::move(block);
  });
  EXPECT_FALSE(served);
  EXPECT_FALSE(pool_.scarce()) << "what it waits for is its own";
  StagingBlock other;
  pool_.Acquire(NewReceiver(), [&](StagingBlock block) { other = std::move(block); });
  EXPECT_TRUE(other);
  other.Reset();
  EXPECT_FALSE(served);
  held_.pop_back();
  EXPECT_TRUE(served);
}

TEST_F(StagingShareTest, AWithdrawnWaiterIsGoneAndNeverCalled) {
  TakeAll(kPromptReceiver);
  for (const ReceiverId receiver : {kPromptReceiver, NewReceiver()}) {
    auto held = std::make_shared<int>();
    const std::weak_ptr<int> watched = held;
    const StagingPool::Place place = pool_.Acquire(
        receiver, [held = std::move(held)](StagingBlock) { ADD_FAILURE() << "called"; });
    EXPECT_FALSE(watched.expired());
    pool_.Withdraw(place);
    EXPECT_TRUE(watched.expired());
  }
  EXPECT_FALSE(pool_.scarce()) << "nobody waits any more";
  held_.clear();
  EXPECT_EQ(pool_.used_blocks(), 0u);
}

TEST_F(StagingShareTest, WithdrawingOneThatWasServedChangesNothing) {
  const ReceiverId receiver = NewReceiver();
  StagingBlock first, second;
  const StagingPool::Place place =
      pool_.Acquire(receiver, [&](StagingBlock block) { first = std::move(block); });
  TakeAll(receiver);
  pool_.Acquire(receiver, [&](StagingBlock block) { second = std::move(block); });
  pool_.Withdraw(place);
  pool_.Withdraw({});
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
  first.Reset();
  EXPECT_TRUE(second);
}

TEST_F(StagingShareTest, TheWaitersOfAReceiverAreServedInOrderAsItsBlocksCome) {
  const ReceiverId receiver = NewReceiver();
  TakeAll(receiver);
  std::vector<int> served;
  for (int i = 0; i < 4; ++i) {
    pool_.Acquire(receiver, [&, i](StagingBlock) { served.push_back(i); });
  }
  EXPECT_THAT(served, ElementsAre());
  held_.pop_back();  // and each that is served gives its block back at once
  EXPECT_THAT(served, ElementsAre(0, 1, 2, 3));
}

TEST_F(StagingShareTest, ScarceOnceSomebodyWaitsForOthers) {
  for (int i = 0; i < 100; ++i) TakeAll(NewReceiver());
  EXPECT_FALSE(pool_.scarce());
  StagingBlock got;
  pool_.Acquire(NewReceiver(), [&](StagingBlock block) { got = std::move(block); });
  EXPECT_FALSE(got);
  EXPECT_TRUE(pool_.scarce());
  held_.clear();
  EXPECT_TRUE(got);
  EXPECT_FALSE(pool_.scarce());
}

// Blocks go back on other threads than those that waited for them.
TEST_F(StagingPoolTest, BlocksMayBeGivenBackByAnyThread) {
  constexpr int kTurns = 3000;
  Mutex mutex;
  CondVar changed;
  std::vector<StagingBlock> ready;
  int received = 0;
  std::thread consumer([&] {
    for (int taken = 0; taken < kTurns;) {
      std::vector<StagingBlock> batch;
      {
        MutexLock lock(mutex);
        while (ready.empty()) changed.Wait(mutex);
        batch.swap(ready);
      }
      taken += static_cast<int>(batch.size());
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    pool_.Acquire([&](StagingBlock block) {
      MutexLock lock(mutex);
      ready.push_back(std::move(block));
      ++received;
      changed.NotifyOne();
    });
  }
  consumer.join();
  MutexLock lock(mutex);
  EXPECT_EQ(received, kTurns);
  EXPECT_EQ(pool_.used_blocks(), 0u);
}

}  // namespace
}  // namespace gemmd
