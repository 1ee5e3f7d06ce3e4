// The store's replicas: who holds them, and which make way.
#include <gmock/gmock.h>

#include "tests/engine/store_fixture.h"

namespace gemmd {
namespace {

// A copy whose course the test decides.
class FakeReplica final : public Replica {
 public:
  explicit FakeReplica(CopyRoute route = CopyRoute::kPeer) : route_(route) {}
  const std::shared_ptr<MatrixMemory>& memory() const override { return memory_; }
  CopyRoute route() const override { return route_; }
  void Await(absl::AnyInvocable<void(absl::Status)> done) override { done(absl::OkStatus()); }
  void Abort() override { ++aborted; }
  uint64_t missing_bytes() const override { return is_complete ? 0 : 1; }
  bool complete() const override { return is_complete; }
  bool failed() const override { return has_failed; }

  bool is_complete = true;
  bool has_failed = false;
  int aborted = 0;

 private:
  const CopyRoute route_;
  const std::shared_ptr<MatrixMemory> memory_;
};

// Matrices on device 0, replicas on device 1.
class StoreReplicasTest : public StoreTest {
 protected:
  ReplicaPin Add(const MatrixPin& pin, uint64_t bytes,
                 std::shared_ptr<FakeReplica> replica = std::make_shared<FakeReplica>()) {
    absl::StatusOr<StoreReservation> room = store_.ReserveReplica(1, bytes);
    EXPECT_TRUE(room.ok()) << room.status();
    return store_.AddReplica(pin, *std::move(room), std::move(replica));
  }
  ReplicaStats stats() { return store_.replica_stats(1); }
};

TEST_F(StoreReplicasTest, ThereIsNoneBeforeOneWasAdded) {
  const MatrixPin pin = Pin(Put(0, 10));
  EXPECT_FALSE(HasReplica(pin, 1));
  EXPECT_FALSE(store_.PinReplica(pin, 1));
}

TEST_F(StoreReplicasTest, WhatADeviceLacksOfAMatrix) {
  const MatrixPin pin = Pin(Put(0, 10));
  const auto replica = std::make_shared<FakeReplica>();
  replica->is_complete = false;
  const ReplicaPin held = Add(pin, 30, replica);
  EXPECT_EQ(store_.MissingBytes(pin, 0), 0u);
  EXPECT_EQ(store_.MissingBytes(pin, 1), 1u) << "under way";
  EXPECT_EQ(store_.MissingBytes(pin, 2), kShape.pitched_bytes());
  devices_[0]->health = absl::UnavailableError("lost");
  EXPECT_EQ(store_.MissingBytes(pin, 1), std::nullopt) << "never to be complete";
  EXPECT_EQ(store_.MissingBytes(pin, 2), std::nullopt);
  replica->is_complete = true;
  EXPECT_EQ(store_.MissingBytes(pin, 1), 0u);
}

TEST_F(StoreReplicasTest, AnAddedOneIsFoundOnItsDeviceAlone) {
  const MatrixPin pin = Pin(Put(0, 10));
  const auto replica = std::make_shared<FakeReplica>();
  const ReplicaPin first = Add(pin, 30, replica);
  EXPECT_EQ(first.replica(), replica);
  EXPECT_FALSE(first.reused());
  EXPECT_TRUE(HasReplica(pin, 1));
  const ReplicaPin second = store_.PinReplica(pin, 1);
  EXPECT_EQ(second.replica(), replica);
  EXPECT_TRUE(second.reused());
}

TEST_F(StoreReplicasTest, RoomForOneCountsItsBytesAndNoMatrix) {
  absl::StatusOr<StoreReservation> room = store_.ReserveReplica(1, 300);
  ASSERT_TRUE(room.ok());
  EXPECT_EQ(store_.used_bytes(1), 300u);
  EXPECT_EQ(stats().bytes, 300);
  EXPECT_EQ(store_.count(), 0);
  *room = StoreReservation();
  EXPECT_EQ(store_.used_bytes(1), 0u);
  EXPECT_EQ(stats().bytes, 0);
  EXPECT_EQ(store_.ReserveReplica(1, kQuota + 1).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(StoreReplicasTest, OfTwoAddedTheFirstStaysAndTheSecondsRoomIsReturned) {
  const MatrixPin pin = Pin(Put(0, 10));
  const auto first = std::make_shared<FakeReplica>();
  const auto second = std::make_shared<FakeReplica>();
  const ReplicaPin one = Add(pin, 30, first);
  const ReplicaPin two = Add(pin, 30, second);
  EXPECT_EQ(two.replica(), first);
  EXPECT_TRUE(two.reused());
  EXPECT_EQ(second.use_count(), 1);
  EXPECT_EQ(store_.used_bytes(1), 30u);
  EXPECT_EQ(stats().begun_peer, 1);
}

TEST_F(StoreReplicasTest, OneWithoutUsersIsIdleAndStays) {
  const MatrixPin pin = Pin(Put(0, 10));
  const auto replica = std::make_shared<FakeReplica>();
  ReplicaPin first = Add(pin, 30, replica);
  ReplicaPin second = store_.PinReplica(pin, 1);
  first = ReplicaPin();
  EXPECT_EQ(store_.idle_replica_bytes(1), 0u) << "it has a user";
  second = ReplicaPin();
  EXPECT_EQ(store_.idle_replica_bytes(1), 30u);
  EXPECT_EQ(store_.used_bytes(1), 30u);
  EXPECT_EQ(replica->aborted, 0);
  const ReplicaPin again = store_.PinReplica(pin, 1);
  EXPECT_TRUE(again);
  EXPECT_EQ(store_.idle_replica_bytes(1), 0u);
}

TEST_F(StoreReplicasTest, OneThatIsNotCompleteIsAbandonedWithItsLastUser) {
  const MatrixPin pin = Pin(Put(0, 10));
  const auto replica = std::make_shared<FakeReplica>();
  replica->is_complete = false;
  ReplicaPin first = Add(pin, 30, replica);
  ReplicaPin second = store_.PinReplica(pin, 1);
  first = ReplicaPin();
  EXPECT_EQ(replica->aborted, 0);
  second = ReplicaPin();
  EXPECT_EQ(replica->aborted, 1);
  EXPECT_FALSE(HasReplica(pin, 1));
  EXPECT_EQ(replica.use_count(), 1);
  EXPECT_EQ(store_.used_bytes(1), 0u);
}

TEST_F(StoreReplicasTest, AFailedOneMakesWayForTheNext) {
  const MatrixPin pin = Pin(Put(0, 10));
  const auto failed = std::make_shared<FakeReplica>();
  ReplicaPin user = Add(pin, 30, failed);
  failed->is_complete = false;
  failed->has_failed = true;
  EXPECT_FALSE(HasReplica(pin, 1));
  EXPECT_FALSE(store_.PinReplica(pin, 1));
  const auto next = std::make_shared<FakeReplica>();
  const ReplicaPin again = Add(pin, 30, next);
  EXPECT_EQ(again.replica(), next);
  user = ReplicaPin();
  EXPECT_TRUE(HasReplica(pin, 1)) << "the failed one's user took the new one away";
  EXPECT_EQ(store_.used_bytes(1), 30u);
}

TEST_F(StoreReplicasTest, TheLeastRecentlyUsedIdleOnesMakeRoom) {
  const MatrixPin a = Pin(Put(0, 10));
  const MatrixPin b = Pin(Put(0, 10));
  const MatrixPin c = Pin(Put(0, 10));
  for (const MatrixPin* pin : {&a, &b, &c}) Add(*pin, 300);
  (void)store_.PinReplica(a, 1);  // used again: now b is the oldest
  const StoreReservation room = Reserve(1, 400);
  EXPECT_TRUE(HasReplica(a, 1));
  EXPECT_FALSE(HasReplica(b, 1));
  EXPECT_TRUE(HasReplica(c, 1)) << "one was enough";
  EXPECT_EQ(store_.used_bytes(1), 1000u);
  EXPECT_EQ(stats().dropped, 1);
  EXPECT_EQ(stats().bytes, 600);
}

TEST_F(StoreReplicasTest, OnesInUseDoNotMakeRoom) {
  const MatrixPin a = Pin(Put(0, 10));
  const MatrixPin b = Pin(Put(0, 10));
  const ReplicaPin used = Add(a, 500);
  Add(b, 300);
  EXPECT_EQ(store_.Reserve(1, 501, {}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(HasReplica(b, 1)) << "dropped in vain";
  const StoreReservation room = Reserve(1, 500);
  EXPECT_FALSE(HasReplica(b, 1));
}

TEST_F(StoreReplicasTest, AnIdleOneIsDroppedOnRequest) {
  const MatrixPin pin = Pin(Put(0, 10));
  EXPECT_FALSE(store_.DropIdleReplica(1));
  {
    const ReplicaPin used = Add(pin, 30);
    EXPECT_FALSE(store_.DropIdleReplica(1));
  }
  EXPECT_FALSE(store_.DropIdleReplica(0)) << "it lies on the other device";
  EXPECT_TRUE(store_.DropIdleReplica(1));
  EXPECT_EQ(store_.used_bytes(1), 0u);
  EXPECT_EQ(store_.idle_replica_bytes(1), 0u);
  EXPECT_FALSE(store_.DropIdleReplica(1));
}

TEST_F(StoreReplicasTest, ADeletedMatrixTakesItsIdleOnesWithIt) {
  const std::string id = Put(0, 10);
  Add(Pin(id), 30);
  ASSERT_TRUE(store_.Delete({.id = id}).ok());
  EXPECT_EQ(store_.used_bytes(1), 0u);
  EXPECT_EQ(store_.idle_replica_bytes(1), 0u);
  EXPECT_EQ(stats().dropped, 0) << "not to make room";
}

TEST_F(StoreReplicasTest, ADeletedMatrixLeavesTheOnesInUseToTheirUsers) {
  const std::string id = Put(0, 10);
  MatrixPin pin = Pin(id);
  const auto replica = std::make_shared<FakeReplica>();
  ReplicaPin used = Add(pin, 30, replica);
  ASSERT_TRUE(store_.Delete({.id = id}).ok());
  pin = MatrixPin();
  EXPECT_EQ(store_.used_bytes(1), 30u);
  EXPECT_EQ(replica.use_count(), 2);
  used = ReplicaPin();
  EXPECT_EQ(store_.used_bytes(1), 0u);
  EXPECT_EQ(store_.idle_replica_bytes(1), 0u);
  EXPECT_EQ(replica.use_count(), 1);
}

TEST_F(StoreReplicasTest, AMovedPinIsOneUser) {
  const MatrixPin pin = Pin(Put(0, 10));
  ReplicaPin first = Add(pin, 30);
  ReplicaPin second = store_.PinReplica(pin, 1);
  second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: empty when moved from
  EXPECT_EQ(store_.idle_replica_bytes(1), 0u);
  second = ReplicaPin();
  EXPECT_EQ(store_.idle_replica_bytes(1), 30u);
}

TEST_F(StoreReplicasTest, CopiesAndUsesAreCounted) {
  const MatrixPin a = Pin(Put(0, 10));
  const MatrixPin b = Pin(Put(0, 10));
  Add(a, 30, std::make_shared<FakeReplica>(CopyRoute::kPeer));
  Add(b, 50, std::make_shared<FakeReplica>(CopyRoute::kHost));
  (void)store_.PinReplica(b, 1);
  EXPECT_EQ(stats().begun_peer, 1);
  EXPECT_EQ(stats().begun_host, 1);
  EXPECT_EQ(stats().copied_bytes, 80);
  EXPECT_EQ(stats().reused, 1);
  EXPECT_EQ(stats().bytes, 80);
  EXPECT_EQ(store_.replica_stats(0).begun_peer, 0);
}

class StoreFoldersTest : public StoreTest {};

TEST_F(StoreFoldersTest, IsTheDeviceWithTheMostBytesOfTheFolder) {
  Put(0, 100, {.name = "f/a"});
  Put(1, 60, {.name = "f/b"});
  const StoreReservation room = Reserve(1, 60, {.name = "f/c"});
  EXPECT_EQ(store_.DeviceOfFolder({.name = "f/new"}), 1u);
}

TEST_F(StoreFoldersTest, TakesTheFolderItselfAlone) {
  Put(0, 10, {.name = "f/a"});
  Put(1, 100, {.name = "f/g/a"});
  Put(1, 100, {.name = "fx"});
  EXPECT_EQ(store_.DeviceOfFolder({.name = "f/new"}), 0u);
  EXPECT_EQ(store_.DeviceOfFolder({.name = "f/g/new"}), 1u);
}

TEST_F(StoreFoldersTest, ThereIsNoneWithoutAFolderOrItsMatrices) {
  Put(1, 10, {.name = "a"});
  EXPECT_EQ(store_.DeviceOfFolder({.name = "b"}), std::nullopt);
  EXPECT_EQ(store_.DeviceOfFolder({.name = ""}), std::nullopt);
  EXPECT_EQ(store_.DeviceOfFolder({.name = "f/new"}), std::nullopt);
}

}  // namespace
}  // namespace gemmd
