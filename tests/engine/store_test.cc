#include "server/engine/store/store.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/engine/store_fixture.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(StoreTest, AReservationReturnsItsBytesPlaceAndName) {
  {
    const StoreReservation room = Reserve(1, 600, {.name = "x"});
    EXPECT_TRUE(room);
    EXPECT_FALSE(room.id().empty());
    EXPECT_EQ(store_.used_bytes(1), 600u);
    EXPECT_EQ(store_.used_bytes(0), 0u);
    EXPECT_EQ(store_.count(), 1);
  }
  EXPECT_EQ(store_.used_bytes(1), 0u);
  EXPECT_EQ(store_.count(), 0);
  EXPECT_TRUE(store_.Reserve(1, 600, {.name = "x"}).ok());
}

TEST_F(StoreTest, AMovedReservationIsReturnedByItsNewOwner) {
  StoreReservation first = Reserve(0, 100);
  StoreReservation second = Reserve(0, 200);
  second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: empty when moved from
  EXPECT_EQ(store_.used_bytes(0), 100u);
  EXPECT_EQ(store_.count(), 1);
}

TEST_F(StoreTest, EachDeviceHoldsItsQuotaAndNotOneByteMore) {
  const StoreReservation room = Reserve(0, kQuota - 1);
  const absl::Status refused = store_.Reserve(0, 2, {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("needs 2 bytes"), HasSubstr("holds 999 of at most 1000")));
  EXPECT_EQ(store_.count(), 1) << "a refused one takes no place";
  const StoreReservation last = Reserve(0, 1);
  const StoreReservation other = Reserve(1, kQuota);
}

TEST_F(StoreTest, BytesThatWouldOverflowAreRefused) {
  const StoreReservation room = Reserve(0, 1);
  const absl::Status refused = store_.Reserve(0, std::numeric_limits<uint64_t>::max(), {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("holds at most 1000 bytes (--store-bytes)"),
                                       ::testing::Not(HasSubstr("delete"))))
      << "no deletion helps";
}

TEST_F(StoreTest, HoldsMaxMatricesAndNotOneMore) {
  const std::string id = Put(0, 1);
  Put(1, 1);
  const StoreReservation third = Reserve(0, 1);
  const StoreReservation fourth = Reserve(0, 1);
  const absl::Status refused = store_.Reserve(0, 1, {.name = "x"}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("holds 4 matrices"), HasSubstr("limit is 4")));
  ASSERT_TRUE(store_.Delete({.id = id}).ok());
  EXPECT_TRUE(store_.Reserve(0, 1, {.name = "x"}).ok()) << "the refused one took the name";
}

TEST_F(StoreTest, ANameIsTakenByAReservationAndByAMatrix) {
  StoreReservation room = Reserve(0, 1, {.name = "x"});
  for (int i = 0; i < 2; ++i) {
    const absl::Status refused = store_.Reserve(1, 1, {.name = "x"}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(refused.message(), HasSubstr("\"x\""));
    if (i == 0) Add(std::move(room));
  }
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  EXPECT_TRUE(store_.Reserve(1, 1, {.name = "x"}).ok());
}

TEST_F(StoreTest, ManyMatricesNeedNoName) { EXPECT_NE(Put(0, 1), Put(0, 1)); }

TEST_F(StoreTest, AnAddedMatrixIsFoundByItsIdAndItsName) {
  StoreReservation room = Reserve(1, 100, {.name = "x"});
  const std::string id = room.id();
  EXPECT_EQ(store_.Pin({.id = id}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_.Pin({.name = "x"}).status().code(), absl::StatusCode::kNotFound);
  const std::shared_ptr<MatrixMemory> memory = MemoryOn(1);
  const MatrixRecord record = *store_.Add(std::move(room), memory);
  EXPECT_EQ(record.id, id);
  EXPECT_EQ(record.name, "x");
  EXPECT_EQ(record.device, "fake:1");
  EXPECT_EQ(record.shape, kShape);
  EXPECT_FALSE(record.expires.has_value());
  EXPECT_EQ(Pin(id).memory(), memory);
  EXPECT_EQ(store_.Pin({.name = "x"})->memory(), memory);
  EXPECT_EQ(store_.used_bytes(1), 100u);
  EXPECT_EQ(store_.count(), 1);
}

TEST_F(StoreTest, AnUnknownMatrixIsNotFoundByTheKeyGiven) {
  EXPECT_THAT(store_.Pin({.id = "m1"}).status().message(), HasSubstr("id \"m1\""));
  EXPECT_THAT(store_.Delete({.name = "x"}).status().message(), HasSubstr("name \"x\""));
  EXPECT_EQ(store_.Delete({.id = "m1"}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, ADeletedMatrixStaysAsLongAsItIsUsed) {
  const std::string id = Put(0, 100, {.name = "x"});
  MatrixPin pin = Pin(id);
  const std::weak_ptr<MatrixMemory> memory = pin.memory();
  const absl::StatusOr<MatrixRecord> deleted = store_.Delete({.id = id});
  ASSERT_TRUE(deleted.ok());
  EXPECT_EQ(deleted->name, "x");
  EXPECT_EQ(deleted->in_use, 1);
  EXPECT_FALSE(IsThere(id));
  EXPECT_EQ(store_.Delete({.id = id}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(store_.used_bytes(0), 100u);
  EXPECT_EQ(store_.count(), 1);
  pin = MatrixPin();
  EXPECT_TRUE(memory.expired());
  EXPECT_EQ(store_.used_bytes(0), 0u);
  EXPECT_EQ(store_.count(), 0);
  EXPECT_EQ(devices_[0]->memory().used(), 0u);
}

TEST_F(StoreTest, TheNameOfADeletedMatrixInUseMayGoToAnother) {
  const std::string first = Put(0, 1, {.name = "x"});
  MatrixPin pin = Pin(first);
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  const std::string second = Put(0, 1, {.name = "x"});
  store_.Forget(pin);
  pin = MatrixPin();
  EXPECT_EQ(store_.Pin({.name = "x"})->matrix().record.id, second);
}

TEST_F(StoreTest, ForgetDeletesTheMatrixOfThePin) {
  const std::string id = Put(0, 1, {.name = "x"});
  const std::string other = Put(0, 1);
  const MatrixPin pin = Pin(id);
  store_.Forget(pin);
  EXPECT_FALSE(IsThere(id));
  store_.Forget(pin);
  EXPECT_TRUE(IsThere(other));
}

TEST_F(StoreTest, ANameDeletedOnItsWayIsFreeAndTheMatrixIsDropped) {
  StoreReservation room = Reserve(0, 100, {.name = "x"});
  const std::string id = room.id();
  const absl::StatusOr<MatrixRecord> deleted = store_.Delete({.name = "x"});
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->id, id);
  EXPECT_EQ(deleted->name, "x");
  const std::string second = Put(0, 10, {.name = "x"});
  const std::shared_ptr<MatrixMemory> memory = MemoryOn(0);
  EXPECT_EQ(store_.Add(std::move(room), memory)->id, id);
  EXPECT_FALSE(IsThere(id));
  EXPECT_EQ(memory.use_count(), 1);
  EXPECT_EQ(store_.count(), 1);
  EXPECT_EQ(store_.used_bytes(0), 10u);
  EXPECT_EQ(store_.Pin({.name = "x"})->matrix().record.id, second);
}

TEST_F(StoreTest, AReservationDeletedByNameLeavesTheNamesNewOwnerAlone) {
  StoreReservation room = Reserve(0, 100, {.name = "x"});
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  const std::string second = Put(0, 10, {.name = "x"});
  room = StoreReservation();
  EXPECT_EQ(store_.Pin({.name = "x"})->matrix().record.id, second);
}

TEST_F(StoreTest, AMovedPinIsOneUse) {
  const std::string id = Put(0, 1);
  MatrixPin first = Pin(id);
  MatrixPin second = Pin(id);
  EXPECT_EQ(store_.Record(first).in_use, 2);
  second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: empty when moved from
  EXPECT_EQ(store_.Record(second).in_use, 1);
  const MatrixPin third(std::move(second));
  EXPECT_EQ(store_.Record(third).in_use, 1);
}

class StoreTtlTest : public StoreTest {
 protected:
  const KeepSpec hour_{.ttl = absl::Hours(1)};
};

TEST_F(StoreTtlTest, AMatrixExpiresItsTimeAfterItWasAddedAndNotBefore) {
  const std::string id = Put(0, 100, {.name = "x", .ttl = absl::Hours(1)});
  PassTime(absl::Hours(1) - absl::Nanoseconds(1));
  EXPECT_EQ(store_.count(), 1);
  EXPECT_EQ(store_.expired(), 0);
  PassTime(absl::Nanoseconds(1));
  EXPECT_EQ(store_.count(), 0);
  EXPECT_EQ(store_.expired(), 1);
  EXPECT_EQ(store_.used_bytes(0), 0u);
  EXPECT_FALSE(IsThere(id));
  EXPECT_TRUE(store_.Reserve(0, 1, {.name = "x"}).ok());
}

TEST_F(StoreTtlTest, WithoutATimeItStays) {
  Put(0, 100);
  PassTime(absl::Hours(24 * 365));
  EXPECT_EQ(store_.count(), 1);
}

TEST_F(StoreTtlTest, TheTimeBeginsAnewWithEachUse) {
  const std::string id = Put(0, 100, hour_);
  PassTime(absl::Minutes(40));
  EXPECT_TRUE(IsThere(id));  // a use
  PassTime(absl::Minutes(40));
  EXPECT_EQ(store_.count(), 1) << "80 minutes after it was added, 40 after its use";
  PassTime(absl::Minutes(20));
  EXPECT_EQ(store_.count(), 0);
}

TEST_F(StoreTtlTest, AMatrixInUseDoesNotExpire) {
  const std::string id = Put(0, 100, hour_);
  {
    const MatrixPin pin = Pin(id);
    for (int i = 0; i < 5; ++i) PassTime(absl::Minutes(59));
    EXPECT_TRUE(IsThere(id));
  }
  PassTime(absl::Minutes(59));
  EXPECT_EQ(store_.count(), 1) << "its time begins when the use ends";
  PassTime(absl::Minutes(1));
  EXPECT_EQ(store_.count(), 0);
}

TEST_F(StoreTtlTest, TheRecordSaysWhen) {
  const std::string id = Put(0, 100, hour_);
  PassTime(absl::Minutes(10));
  MatrixPin pin = Pin(id);
  const absl::Time before = ToWall(SteadyNow());
  const std::optional<absl::Time> expires = store_.Record(pin).expires;
  ASSERT_TRUE(expires.has_value());
  EXPECT_GE(*expires, before + absl::Minutes(50));
  EXPECT_LE(*expires, ToWall(SteadyNow()) + absl::Minutes(50));
}

TEST_F(StoreTtlTest, ANewMatrixOfTheNameLivesItsOwnTime) {
  Put(0, 100, {.name = "x", .ttl = absl::Hours(1)});
  PassTime(absl::Minutes(59));
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  Put(0, 100, {.name = "x", .ttl = absl::Hours(1)});
  PassTime(absl::Minutes(59));
  EXPECT_EQ(store_.count(), 1);
}

class StoreListTest : public StoreTest {
 protected:
  std::vector<std::string> Names(const MatrixPage& page) {
    std::vector<std::string> names;
    for (const MatrixRecord& record : page.matrices) names.push_back(record.name);
    return names;
  }
};

TEST_F(StoreListTest, PagesGoOnWhereTheLastOneEnded) {
  for (const char* name : {"c", "a", "b"}) Put(0, 1, {.name = name});
  const MatrixPage first = store_.List({.page_size = 2});
  EXPECT_THAT(Names(first), ElementsAre("c", "a")) << "in the order of ids";
  EXPECT_EQ(first.next_token, first.matrices[1].id);
  const MatrixPage second = store_.List({.page_size = 2, .page_token = first.next_token});
  EXPECT_THAT(Names(second), ElementsAre("b"));
  EXPECT_EQ(second.next_token, "");
}

TEST_F(StoreListTest, AFullLastPageHasNoToken) {
  for (const char* name : {"a", "b"}) Put(0, 1, {.name = name});
  EXPECT_EQ(store_.List({.page_size = 2}).next_token, "");
}

TEST_F(StoreListTest, TakesThePrefixAloneAndNoReservations) {
  for (const char* name : {"ab", "b", "ac"}) Put(0, 1, {.name = name});
  const StoreReservation room = Reserve(0, 1, {.name = "ad"});
  EXPECT_THAT(Names(store_.List({.name_prefix = "a"})), ElementsAre("ab", "ac"));
  EXPECT_THAT(Names(store_.List({.name_prefix = "x"})), ElementsAre());
}

// The lock is held for so many matrices, whoever they belong to.
TEST_F(StoreListTest, APageMayEndBeforeAnyMatrixOfTheCallers) {
  MatrixStore many(kDevices, kQuota * kQuota, 2 * MatrixStore::kMostSeenForAPage, timer_);
  const std::shared_ptr<MatrixMemory> memory = MemoryOn(0);
  const auto add = [&](const std::string& owner, const std::string& name) {
    KeepSpec keep{.name = name};
    keep.owner = owner;
    ASSERT_TRUE(many.Add(*many.Reserve(0, 1, keep), memory).ok());
  };
  for (int i = 0; i < MatrixStore::kMostSeenForAPage; ++i) add("alice", absl::StrCat("a", i));
  add("bob", "b");
  const MatrixPage first = many.List({.caller = "bob"});
  EXPECT_THAT(Names(first), ElementsAre());
  ASSERT_NE(first.next_token, "");
  const MatrixPage second = many.List({.caller = "bob", .page_token = first.next_token});
  EXPECT_THAT(Names(second), ElementsAre("b"));
  EXPECT_EQ(second.next_token, "");
}

TEST_F(StoreListTest, SaysWhatIsInUse) {
  const MatrixPin pin = Pin(Put(0, 1));
  EXPECT_EQ(store_.List({}).matrices.at(0).in_use, 1);
}

TEST_F(StoreListTest, TheLargestAndTheHottestAreFoundBeyondAPage) {
  constexpr int kMany = MatrixStore::kMostSeenForAPage + 100;
  MatrixStore many(kDevices, kQuota * kQuota, kMany, timer_);
  const auto memory_of = [this](int64_t cols) {
    return devices_[0]->MakeMatrix({1, cols, gemm::DType::kF32});
  };
  const auto small = memory_of(7);
  const auto smaller = memory_of(3);
  const auto large = memory_of(900);
  std::vector<std::string> ids;
  for (int i = 0; i < kMany; ++i) {
    const auto& memory = i == kMany - 1 ? large : i % 7 == 0 ? small : smaller;
    ids.push_back(many.Add(*many.Reserve(0, 1, {}), memory)->id);
  }
  for (int i = 0; i < 3; ++i) (void)many.Pin({.id = ids[kMany - 2]});
  (void)many.Pin({.id = ids[5]});
  const MatrixExtremes extremes = many.Extremes(8);
  ASSERT_EQ(extremes.largest.size(), 8);
  EXPECT_EQ(extremes.largest[0].id, ids[kMany - 1]);
  EXPECT_EQ(extremes.largest[7].shape.cols, 7);
  ASSERT_EQ(extremes.hottest.size(), 2);
  EXPECT_EQ(extremes.hottest[0].id, ids[kMany - 2]);
  EXPECT_EQ(extremes.hottest[0].uses, 3);
  EXPECT_EQ(extremes.hottest[1].id, ids[5]);
  EXPECT_EQ(many.Extremes(0).largest.size(), 0);
}

}  // namespace
}  // namespace gemmd
