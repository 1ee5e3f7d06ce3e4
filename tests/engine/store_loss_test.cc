// The store when a device is lost: some matrices move to their replicas, the others are named as
// lost.
#include <gmock/gmock.h>

#include "tests/engine/store_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

class WholeReplica final : public Replica {
 public:
  explicit WholeReplica(std::shared_ptr<MatrixMemory> memory) : memory_(std::move(memory)) {}
  const std::shared_ptr<MatrixMemory>& memory() const override { return memory_; }
  CopyRoute route() const override { return CopyRoute::kPeer; }
  void Await(absl::AnyInvocable<void(absl::Status)> done) override { done(absl::OkStatus()); }
  void Abort() override {}
  uint64_t missing_bytes() const override { return is_complete ? 0 : 1; }
  bool complete() const override { return is_complete; }
  bool failed() const override { return false; }

  bool is_complete = true;

 private:
  const std::shared_ptr<MatrixMemory> memory_;
};

class StoreLossTest : public StoreTest {
 protected:
  ReplicaPin AddReplica(const MatrixPin& pin, size_t device, bool complete = true) {
    auto replica = std::make_shared<WholeReplica>(MemoryOn(device));
    replica->is_complete = complete;
    return store_.AddReplica(pin, *store_.ReserveReplica(device, 10), replica);
  }
  absl::Status Find(const MatrixKey& key) { return store_.Pin(key).status(); }
};

TEST_F(StoreLossTest, WhatWasThereAloneIsNamedAsLostToWhoMaySeeIt) {
  const std::string id = Put(0, 10, {.name = "mine", .owner = "alice"});
  const std::string elsewhere = Put(1, 10, {.name = "other", .owner = "alice"});
  const StoreLoss loss = store_.LoseDevice(0);
  EXPECT_EQ(loss.lost, 1);
  EXPECT_EQ(loss.moved, 0);
  const absl::Status lost = Find({.name = "mine", .caller = "alice"});
  EXPECT_TRUE(absl::IsDataLoss(lost));
  EXPECT_THAT(std::string(lost.message()), HasSubstr("fake:0"));
  EXPECT_TRUE(absl::IsDataLoss(Find({.id = id, .caller = "alice"})));
  EXPECT_TRUE(absl::IsNotFound(Find({.id = id, .caller = "bob"}))) << "another caller's";
  EXPECT_TRUE(absl::IsNotFound(Find({.name = "mine", .caller = "bob"})));
  EXPECT_TRUE(Find({.id = elsewhere, .caller = "alice"}).ok());
  EXPECT_EQ(store_.count(), 1);
  EXPECT_EQ(store_.used_bytes(0), 0u);
  EXPECT_EQ(devices_[0]->memory().used(), 0u);
}

TEST_F(StoreLossTest, ADeletedOneIsForgotten) {
  const std::string id = Put(0, 10, {.name = "x", .owner = "alice"});
  store_.LoseDevice(0);
  EXPECT_TRUE(absl::IsNotFound(store_.Delete({.id = id, .caller = "bob"}).status()));
  ASSERT_TRUE(store_.Delete({.name = "x", .caller = "alice"}).ok());
  EXPECT_TRUE(absl::IsNotFound(Find({.id = id, .caller = "alice"})));
  EXPECT_TRUE(absl::IsNotFound(Find({.name = "x", .caller = "alice"})));
}

TEST_F(StoreLossTest, ANameThatIsUsedAgainMeansTheNewMatrix) {
  const std::string lost = Put(0, 10, {.name = "x"});
  store_.LoseDevice(0);
  const std::string put = Put(1, 10, {.name = "x"});
  EXPECT_TRUE(Find({.name = "x"}).ok());
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  EXPECT_TRUE(absl::IsNotFound(Find({.name = "x"}))) << "not lost: deleted";
  EXPECT_TRUE(absl::IsNotFound(Find({.id = lost}))) << "replaced";
}

TEST_F(StoreLossTest, APutThatFailsLeavesTheNameToWhatWasLost) {
  const std::string lost = Put(0, 10, {.name = "x"});
  store_.LoseDevice(0);
  {
    const StoreReservation room = Reserve(1, 10, {.name = "x"});
    EXPECT_TRUE(absl::IsDataLoss(Find({.name = "x"}))) << "not put again yet";
  }
  EXPECT_TRUE(absl::IsDataLoss(Find({.name = "x"})));
  EXPECT_TRUE(absl::IsDataLoss(Find({.id = lost})));
}

TEST_F(StoreLossTest, ADeletedNameIsFreeOfWhatWasLostAndOfWhatIsBeingPut) {
  const std::string lost = Put(0, 10, {.name = "x"});
  store_.LoseDevice(0);
  StoreReservation room = Reserve(1, 10, {.name = "x"});
  const std::string id = room.id();
  const absl::StatusOr<MatrixRecord> deleted = store_.Delete({.name = "x"});
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->id, id);
  EXPECT_TRUE(absl::IsNotFound(Find({.name = "x"})));
  EXPECT_TRUE(absl::IsNotFound(Find({.id = lost})));
  Add(std::move(room), 1);
  EXPECT_FALSE(IsThere(id)) << "it was deleted before it was complete";
  EXPECT_EQ(store_.count(), 0);
}

TEST_F(StoreLossTest, ALostMatrixIsDeletedInTheVersionThatWasAskedForAlone) {
  const MatrixRecord record = Add(Reserve(0, 10, {.name = "x"}));
  store_.LoseDevice(0);
  for (const MatrixKey& key : {MatrixKey{.name = "x", .version = record.version + 1},
                               MatrixKey{.id = record.id, .version = record.version + 1}}) {
    const absl::Status refused = store_.Delete(key).status();
    EXPECT_TRUE(absl::IsAborted(refused)) << refused;
    EXPECT_TRUE(absl::IsDataLoss(Find({.name = "x"})));
  }
  EXPECT_TRUE(store_.Delete({.name = "x", .version = record.version}).ok());
  EXPECT_TRUE(absl::IsNotFound(Find({.name = "x"})));
}

TEST_F(StoreLossTest, AsManyAreRememberedAsThereMayBeMatrices) {
  std::vector<std::string> ids;
  for (int i = 0; i < kMaxMatrices; ++i) ids.push_back(Put(0, 10));
  store_.LoseDevice(0);
  for (const std::string& id : ids) EXPECT_TRUE(absl::IsDataLoss(Find({.id = id})));
  const std::string more = Put(1, 10);
  store_.LoseDevice(1);
  EXPECT_TRUE(absl::IsNotFound(Find({.id = more})));
}

TEST_F(StoreLossTest, AReplicaTakesThePlaceOfItsMatrix) {
  const std::string id = Put(0, 10, {.name = "x", .owner = "alice", .shared = true});
  const MatrixRecord before = store_.Record(Pin(id));
  { const ReplicaPin idle = AddReplica(Pin(id), 1); }
  EXPECT_EQ(store_.idle_replica_bytes(1), 10u);
  const StoreLoss loss = store_.LoseDevice(0);
  EXPECT_EQ(loss.moved, 1);
  EXPECT_EQ(loss.lost, 0);
  const MatrixPin pin = Pin(id);
  EXPECT_EQ(pin.memory()->device, devices_[1].get());
  const MatrixRecord after = store_.Record(pin);
  EXPECT_EQ(after.device, "fake:1");
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.owner, before.owner);
  EXPECT_EQ(after.shared, before.shared);
  EXPECT_EQ(after.created, before.created);
  EXPECT_TRUE(Find({.name = "x", .caller = "bob", .shared = true}).ok());
  EXPECT_EQ(store_.count(), 1);
  EXPECT_EQ(store_.used_bytes(0), 0u);
  EXPECT_EQ(store_.used_bytes(1), 10u);
  EXPECT_EQ(store_.idle_replica_bytes(1), 0u);
  EXPECT_EQ(store_.replica_stats(0).bytes + store_.replica_stats(1).bytes, 0);
  EXPECT_EQ(store_.DeviceOfFolder({.name = "x"}), std::nullopt);
}

TEST_F(StoreLossTest, AMovedMatrixGivesEverythingBackWhenItIsDeleted) {
  const std::string id = Put(0, 10, {.name = "x"});
  MatrixPin old = Pin(id);
  ReplicaPin used = AddReplica(old, 1);
  store_.LoseDevice(0);
  EXPECT_EQ(store_.used_bytes(0), 10u) << "a job still holds it";
  old = MatrixPin();
  used = ReplicaPin();
  EXPECT_EQ(store_.used_bytes(0), 0u);
  EXPECT_EQ(store_.used_bytes(1), 10u);
  EXPECT_TRUE(IsThere(id)) << "the end of its users does not take it";
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  EXPECT_EQ(store_.count(), 0);
  EXPECT_EQ(store_.used_bytes(1), 0u);
  EXPECT_EQ(devices_[0]->memory().used() + devices_[1]->memory().used(), 0u);
  EXPECT_EQ(store_.replica_stats(0).bytes + store_.replica_stats(1).bytes, 0);
}

// A matrix on device 0 with replicas on 1 and 2, one of which takes its place.
class StoreMoveTest : public StoreLossTest {
 protected:
  void LoseFirst() {
    const StoreLoss loss = store_.LoseDevice(0);
    EXPECT_EQ(loss.moved, 1);
    EXPECT_EQ(loss.lost, 0);
    now_ = Pin(id_).memory()->device == devices_[1].get() ? 1 : 2;
    other_ = 3 - now_;
  }
  void ExpectNothingHeld() {
    for (size_t i = 0; i < kDevices; ++i) {
      EXPECT_EQ(store_.used_bytes(i), 0u) << i;
      EXPECT_EQ(store_.idle_replica_bytes(i), 0u) << i;
      EXPECT_EQ(store_.replica_stats(i).bytes, 0) << i;
      EXPECT_EQ(devices_[i]->memory().used(), 0u) << i;
    }
    EXPECT_EQ(store_.count(), 0);
  }

  const std::string id_ = Put(0, 10, {.name = "x"});
  size_t now_ = 0, other_ = 0;
};

TEST_F(StoreMoveTest, TheOtherReplicaStays) {
  for (const size_t device : {1, 2}) AddReplica(Pin(id_), device);
  LoseFirst();
  EXPECT_TRUE(HasReplica(Pin(id_), other_));
  EXPECT_EQ(store_.idle_replica_bytes(now_), 0u);
  EXPECT_EQ(store_.idle_replica_bytes(other_), 10u);
  { EXPECT_TRUE(store_.PinReplica(Pin(id_), other_)); }
  EXPECT_EQ(store_.idle_replica_bytes(other_), 10u) << "idle again";
  EXPECT_TRUE(store_.DropIdleReplica(other_));
  EXPECT_FALSE(HasReplica(Pin(id_), other_));
  EXPECT_EQ(store_.used_bytes(other_), 0u);
  EXPECT_EQ(store_.used_bytes(now_), 10u);
  ASSERT_TRUE(store_.Delete({.id = id_}).ok());
  ExpectNothingHeld();
}

TEST_F(StoreMoveTest, TheOtherReplicaTakesItsPlaceInTurn) {
  for (const size_t device : {1, 2}) AddReplica(Pin(id_), device);
  LoseFirst();
  EXPECT_EQ(store_.LoseDevice(now_).moved, 1);
  EXPECT_EQ(Pin(id_).memory()->device, devices_[other_].get());
  EXPECT_EQ(store_.LoseDevice(other_).lost, 1);
  ExpectNothingHeld();
}

TEST_F(StoreMoveTest, AReplicaInUseStaysAndIsIdleAfterwards) {
  MatrixPin old = Pin(id_);
  std::vector<ReplicaPin> used;
  for (const size_t device : {1, 2}) used.push_back(AddReplica(old, device));
  LoseFirst();
  EXPECT_EQ(store_.idle_replica_bytes(other_), 0u) << "a job reads it";
  used.clear();
  old = MatrixPin();
  EXPECT_EQ(store_.used_bytes(0), 0u);
  EXPECT_EQ(store_.idle_replica_bytes(now_), 0u);
  EXPECT_EQ(store_.idle_replica_bytes(other_), 10u);
  EXPECT_TRUE(HasReplica(Pin(id_), other_));
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  ExpectNothingHeld();
}

TEST_F(StoreMoveTest, AReplicaThatIsNotCompleteGoes) {
  MatrixPin old = Pin(id_);
  ReplicaPin under_way = AddReplica(old, 1, /*complete=*/false);
  AddReplica(old, 2);
  LoseFirst();
  EXPECT_EQ(now_, 2u);
  EXPECT_FALSE(HasReplica(Pin(id_), 1));
  under_way = ReplicaPin();
  old = MatrixPin();
  EXPECT_EQ(store_.used_bytes(1), 0u);
  ASSERT_TRUE(store_.Delete({.id = id_}).ok());
  ExpectNothingHeld();
}

TEST_F(StoreLossTest, AnIncompleteReplicaSavesNothing) {
  const std::string id = Put(0, 10);
  const MatrixPin pin = Pin(id);
  const ReplicaPin under_way = AddReplica(pin, 1, /*complete=*/false);
  EXPECT_EQ(store_.LoseDevice(0).lost, 1);
  EXPECT_TRUE(absl::IsDataLoss(Find({.id = id})));
}

TEST_F(StoreLossTest, AReplicaOnALostDeviceSavesNothing) {
  const std::string id = Put(0, 10);
  { const ReplicaPin idle = AddReplica(Pin(id), 1); }
  store_.LoseDevice(1);
  EXPECT_EQ(store_.used_bytes(1), 0u) << "the replica has gone";
  EXPECT_EQ(store_.replica_stats(1).bytes, 0);
  EXPECT_TRUE(IsThere(id));
  EXPECT_EQ(store_.LoseDevice(0).lost, 1);
}

TEST_F(StoreLossTest, WhatIsFinishedAfterTheLossFails) {
  StoreReservation room = Reserve(0, 10, {.name = "late"});
  store_.LoseDevice(0);
  const auto added = store_.Add(std::move(room), MemoryOn(0));
  EXPECT_TRUE(absl::IsUnavailable(added.status())) << added.status();
  EXPECT_TRUE(absl::IsNotFound(Find({.name = "late"})));
  EXPECT_EQ(store_.count(), 0);
  EXPECT_EQ(store_.used_bytes(0), 0u);
}

TEST_F(StoreLossTest, AReplacementOnALostDeviceLeavesTheOldOne) {
  const std::string old = Put(1, 10, {.name = "x"});
  StoreReservation room = Reserve(0, 10, {.name = "x", .replace = true});
  store_.LoseDevice(0);
  EXPECT_TRUE(absl::IsUnavailable(store_.Add(std::move(room), MemoryOn(0)).status()));
  EXPECT_TRUE(IsThere(old));
  EXPECT_EQ(store_.count(), 1);
  EXPECT_EQ(store_.used_bytes(0), 0u);
}

TEST_F(StoreLossTest, AMovedMatrixExpiresAsBefore) {
  const std::string id = Put(0, 10, {.ttl = absl::Seconds(10)});
  { const ReplicaPin idle = AddReplica(Pin(id), 1); }
  store_.LoseDevice(0);
  PassTime(absl::Seconds(9));
  EXPECT_EQ(store_.count(), 1);
  PassTime(absl::Seconds(2));
  EXPECT_EQ(store_.count(), 0);
  EXPECT_EQ(store_.used_bytes(1), 0u);
}

}  // namespace
}  // namespace gemmd
