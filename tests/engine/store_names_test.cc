// Names that pass from one matrix to the next, versions, and the parts of a key.
#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/store/store.h"
#include "tests/engine/store_fixture.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StoreNamesTest : public StoreTest {
 protected:
  static KeepSpec Replacing(std::optional<uint64_t> if_version = std::nullopt) {
    return {.name = "x", .replace = true, .if_version = if_version};
  }
  MatrixRecord PutRecord(KeepSpec keep, uint64_t bytes = 1) {
    return Add(Reserve(0, bytes, std::move(keep)));
  }
  absl::Status Refused(const KeepSpec& keep, uint64_t bytes = 1) {
    const int count = store_.count();
    const absl::Status status = store_.Reserve(0, bytes, keep).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(store_.count(), count);
    return status;
  }
  absl::Status AddRefused(StoreReservation room) {
    const std::string id = room.id();
    const int count = store_.count();
    const absl::Status status = store_.Add(std::move(room), MemoryOn(0)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(IsThere(id));
    EXPECT_EQ(store_.count(), count - 1) << "its room is given back";
    return status;
  }
  // The id that the name means; "" for none.
  std::string Named(const std::string& name = "x") {
    const absl::StatusOr<MatrixPin> pin = store_.Pin({.name = name});
    return pin.ok() ? pin->matrix().record.id : "";
  }
};

TEST_F(StoreNamesTest, EveryVersionIsHigherThanTheOnesBefore) {
  const MatrixRecord first = PutRecord({.name = "x"});
  const MatrixRecord nameless = PutRecord({});
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  const MatrixRecord second = PutRecord({.name = "x"});
  EXPECT_GT(first.version, 0u);
  EXPECT_GT(nameless.version, first.version);
  EXPECT_GT(second.version, nameless.version) << "also after the name was free";
  EXPECT_EQ(store_.List({.name_prefix = "x"}).matrices.at(0).version, second.version);
  EXPECT_EQ(store_.Record(Pin(second.id)).version, second.version);
}

TEST_F(StoreNamesTest, AVersionIsNotGivenAgainAfterARestart) {
  const MatrixRecord before = PutRecord({.name = "x"});
  MatrixStore restarted(2, kQuota, kMaxMatrices, timer_);
  absl::StatusOr<StoreReservation> room = restarted.Reserve(0, 1, {.name = "x"});
  ASSERT_TRUE(room.ok());
  EXPECT_GT(restarted.Add(*std::move(room), MemoryOn(0))->version, before.version);
}

TEST_F(StoreNamesTest, AReplacementTakesTheNameWhenItIsAddedAndNotBefore) {
  const MatrixRecord old = PutRecord({.name = "x"}, 100);
  StoreReservation room = Reserve(0, 50, Replacing());
  EXPECT_EQ(Named(), old.id);
  EXPECT_EQ(store_.count(), 2);
  EXPECT_EQ(store_.used_bytes(0), 150u);
  const MatrixRecord added = Add(std::move(room));
  EXPECT_EQ(Named(), added.id);
  EXPECT_EQ(added.name, "x");
  EXPECT_GT(added.version, old.version);
  EXPECT_FALSE(IsThere(old.id));
  EXPECT_EQ(store_.count(), 1);
  EXPECT_EQ(store_.used_bytes(0), 50u);
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  EXPECT_EQ(store_.count(), 0);
}

TEST_F(StoreNamesTest, AReplacedMatrixStaysAsLongAsItIsUsed) {
  const MatrixRecord old = PutRecord({.name = "x"});
  MatrixPin pin = Pin(old.id);
  const std::weak_ptr<MatrixMemory> memory = pin.memory();
  const MatrixRecord added = PutRecord(Replacing());
  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(store_.count(), 2);
  store_.Forget(pin);
  EXPECT_EQ(Named(), added.id) << "to release the old one leaves the new one";
  pin = MatrixPin();
  EXPECT_TRUE(memory.expired());
  EXPECT_EQ(store_.count(), 1);
}

TEST_F(StoreNamesTest, AReplacementThatIsGivenUpLeavesTheOldOne) {
  const MatrixRecord old = PutRecord({.name = "x"});
  { const StoreReservation room = Reserve(0, 1, Replacing()); }
  EXPECT_EQ(Named(), old.id);
  EXPECT_EQ(store_.count(), 1);
  EXPECT_EQ(Refused({.name = "x"}).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(StoreNamesTest, AReplacementOfNothingIsAPutThatReservesNoName) {
  StoreReservation room = Reserve(0, 1, Replacing());
  EXPECT_EQ(Named(), "");
  EXPECT_EQ(store_.Delete({.name = "x"}).status().code(), absl::StatusCode::kNotFound);
  const std::string id = Add(std::move(room)).id;
  EXPECT_EQ(Named(), id);
  EXPECT_EQ(Refused({.name = "x"}).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(StoreNamesTest, OfTwoReplacementsTheOneThatIsAddedLastStays) {
  PutRecord({.name = "x"});
  StoreReservation first = Reserve(0, 1, Replacing());
  StoreReservation second = Reserve(0, 1, Replacing());
  const std::string second_id = Add(std::move(second)).id;
  EXPECT_EQ(Named(), second_id);
  const std::string first_id = Add(std::move(first)).id;
  EXPECT_EQ(Named(), first_id);
  EXPECT_EQ(store_.count(), 1);
}

TEST_F(StoreNamesTest, AReplacementNeedsRoomBesideTheOldOne) {
  const MatrixRecord old = PutRecord({.name = "x"}, 600);
  const absl::Status bytes = Refused(Replacing(), 500);
  EXPECT_EQ(bytes.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(bytes.message(), AllOf(HasSubstr("holds 600 of at most 1000"),
                                     HasSubstr("the matrix to replace keeps its room")));
  for (int i = 1; i < kMaxMatrices; ++i) Put(0, 1);
  const absl::Status places = Refused(Replacing());
  EXPECT_EQ(places.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(places.message(),
              AllOf(HasSubstr("limit is 4"), HasSubstr("the matrix to replace keeps its room")));
  EXPECT_EQ(Named(), old.id);
}

TEST_F(StoreNamesTest, AConditionIsCheckedWhenTheReplacementBegins) {
  const MatrixRecord old = PutRecord({.name = "x"});
  const absl::Status other = Refused(Replacing(old.version + 1));
  EXPECT_EQ(other.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(other.message(),
              AllOf(HasSubstr(absl::StrCat("keep.if_version is ", old.version + 1)),
                    HasSubstr(absl::StrCat("name \"x\" has version ", old.version))));
  EXPECT_EQ(Refused(Replacing(0)).code(), absl::StatusCode::kAborted) << "there is one";
  const absl::Status none = Refused({.name = "y", .replace = true, .if_version = 7});
  EXPECT_EQ(none.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(none.message(),
              AllOf(HasSubstr("keep.if_version is 7"), HasSubstr("no matrix has the name \"y\"")));
  EXPECT_EQ(Named(), old.id);
  const MatrixRecord added = PutRecord(Replacing(old.version));
  EXPECT_EQ(Named(), added.id);
}

TEST_F(StoreNamesTest, AConditionIsCheckedAgainWhenTheReplacementIsAdded) {
  const MatrixRecord old = PutRecord({.name = "x"});
  StoreReservation late = Reserve(0, 1, Replacing(old.version));
  const MatrixRecord first = PutRecord(Replacing(old.version));
  const absl::Status refused = AddRefused(std::move(late));
  EXPECT_EQ(refused.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr(absl::StrCat("is ", old.version, ",")),
                                       HasSubstr(absl::StrCat("version ", first.version))));
  EXPECT_EQ(Named(), first.id);
  late = Reserve(0, 1, Replacing(first.version));
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  EXPECT_EQ(AddRefused(std::move(late)).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store_.count(), 0);
}

TEST_F(StoreNamesTest, FromNoneTheNameIsTakenAtOnceAndGivenBack) {
  StoreReservation room = Reserve(0, 1, Replacing(0));
  EXPECT_EQ(Refused({.name = "x"}).code(), absl::StatusCode::kAlreadyExists);
  const absl::Status second = Refused(Replacing(0));
  EXPECT_EQ(second.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(second.message(), HasSubstr("is putting a matrix of the name \"x\""));
  EXPECT_EQ(Refused(Replacing(3)).code(), absl::StatusCode::kAborted);
  room = StoreReservation();
  const MatrixRecord added = PutRecord(Replacing(0));
  EXPECT_EQ(Named(), added.id);
}

TEST_F(StoreNamesTest, AMatrixStillBeingPutLosesItsNameToAReplacement) {
  for (const bool added : {true, false}) {
    StoreReservation plain = Reserve(0, 1, {.name = "x"});
    const std::string plain_id = plain.id();
    const std::string id = PutRecord(Replacing()).id;
    EXPECT_EQ(Named(), id);
    if (added) {
      const MatrixRecord dropped = Add(std::move(plain));
      EXPECT_EQ(dropped.id, plain_id);
      EXPECT_EQ(dropped.version, 0u) << "no request could refer to it";
    }
    plain = StoreReservation();
    EXPECT_FALSE(IsThere(plain_id));
    EXPECT_EQ(Named(), id);
    EXPECT_EQ(store_.count(), 1);
    ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  }
  // The other way round it is a matrix like any other.
  StoreReservation plain = Reserve(0, 1, {.name = "x"});
  StoreReservation room = Reserve(0, 1, Replacing());
  Add(std::move(plain));
  const std::string id = Add(std::move(room)).id;
  EXPECT_EQ(Named(), id);
  EXPECT_EQ(store_.count(), 1);
}

TEST_F(StoreNamesTest, AFirstMatrixThatWasOvertakenIsNotReportedAsPut) {
  StoreReservation first = Reserve(0, 1, Replacing(/*if_version=*/0));
  const std::string id = PutRecord(Replacing()).id;
  const absl::Status overtaken = AddRefused(std::move(first));
  EXPECT_EQ(overtaken.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(overtaken.message(), HasSubstr("keep.if_version is 0, but another matrix took"));
  EXPECT_EQ(Named(), id);
  EXPECT_EQ(store_.count(), 1);
}

TEST_F(StoreNamesTest, ANameThatWentMeanwhileIsTakenAnew) {
  PutRecord({.name = "x", .ttl = absl::Hours(1)});
  StoreReservation after_expiry = Reserve(0, 1, Replacing());
  PassTime(absl::Hours(1));
  EXPECT_EQ(Named(), "");
  const std::string id = Add(std::move(after_expiry)).id;
  EXPECT_EQ(Named(), id);
  StoreReservation after_delete = Reserve(0, 1, Replacing());
  ASSERT_TRUE(store_.Delete({.name = "x"}).ok());
  EXPECT_EQ(Named(), "");
  const std::string last = Add(std::move(after_delete)).id;
  EXPECT_EQ(Named(), last);
}

TEST_F(StoreNamesTest, ToDescribeAMatrixIsNoUseOfIt) {
  const MatrixRecord put = PutRecord({.name = "x", .ttl = absl::Hours(1)});
  PassTime(absl::Minutes(59));
  const absl::StatusOr<MatrixRecord> record = store_.Record(MatrixKey{.name = "x"});
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, put.id);
  EXPECT_EQ(record->in_use, 0);
  EXPECT_EQ(store_.Record(MatrixKey{.name = "x", .version = put.version + 1}).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(store_.Record(MatrixKey{.name = "x", .caller = "bob"}).status().code(),
            absl::StatusCode::kNotFound);
  PassTime(absl::Minutes(1));
  EXPECT_EQ(store_.Record(MatrixKey{.name = "x"}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreNamesTest, EachMatrixOfANameLivesItsOwnTime) {
  PutRecord({.name = "x", .ttl = absl::Hours(1)});
  PassTime(absl::Minutes(59));
  KeepSpec hour = Replacing();
  hour.ttl = absl::Hours(1);
  const std::string second = PutRecord(hour).id;
  PassTime(absl::Minutes(59));
  EXPECT_EQ(store_.count(), 1) << "the first one's time is no matter of the second's";
  PassTime(absl::Minutes(1));
  EXPECT_EQ(store_.count(), 0);
  PutRecord(hour);
  const std::string lasting = PutRecord(Replacing()).id;
  PassTime(absl::Hours(24));
  EXPECT_EQ(Named(), lasting);
}

TEST_F(StoreNamesTest, ASharedMatrixIsReplacedByItsOwnerAlone) {
  const KeepSpec hers{.name = "x", .owner = "alice", .shared = true, .replace = true};
  KeepSpec his = hers;
  his.owner = "bob";
  StoreReservation his_room = Reserve(0, 1, his);  // before there is one
  const MatrixRecord first = PutRecord(hers);
  const absl::Status refused = Refused(his);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("\"x\""), HasSubstr("belongs to \"alice\"")));
  his.if_version = first.version;
  EXPECT_EQ(Refused(his).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(AddRefused(std::move(his_room)).code(), absl::StatusCode::kPermissionDenied);
  const MatrixRecord second = PutRecord(hers);
  EXPECT_EQ(second.owner, "alice");
  his = {.name = "x", .owner = "bob", .replace = true};
  EXPECT_EQ(PutRecord(his).owner, "bob") << "his own names are apart";
  EXPECT_TRUE(IsThere(second.id));
}

TEST_F(StoreNamesTest, AKeyMayAskForAVersion) {
  const MatrixRecord old = PutRecord({.name = "x"});
  const MatrixRecord now = PutRecord(Replacing());
  for (const MatrixKey& stale :
       {MatrixKey{.name = "x", .version = old.version}, MatrixKey{.name = "x", .version = 0},
        MatrixKey{.id = now.id, .version = old.version}}) {
    const absl::Status pinned = store_.Pin(stale).status();
    EXPECT_EQ(pinned.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(pinned.message(), AllOf(HasSubstr(absl::StrCat("version is ", *stale.version, ",")),
                                        HasSubstr(absl::StrCat("has version ", now.version))));
    EXPECT_EQ(store_.Delete(stale).status().code(), absl::StatusCode::kAborted);
    EXPECT_EQ(Named(), now.id);
  }
  EXPECT_TRUE(store_.Pin({.id = now.id, .version = now.version}).ok());
  EXPECT_EQ(store_.Pin({.name = "y", .version = 1}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_.Delete({.name = "x", .version = now.version}).ok());
  EXPECT_EQ(store_.count(), 0);
}

TEST_F(StoreNamesTest, ADeleteByVersionLeavesAMatrixThatIsStillBeingPut) {
  StoreReservation room = Reserve(0, 1, {.name = "x"});
  EXPECT_EQ(store_.Delete({.name = "x", .version = 0}).status().code(),
            absl::StatusCode::kNotFound);
  const std::string id = Add(std::move(room)).id;
  EXPECT_EQ(Named(), id);
}

TEST_F(StoreNamesTest, AKeyMayAskForAnOwner) {
  const MatrixRecord hers = PutRecord({.name = "x", .owner = "alice", .shared = true});
  MatrixKey key{.name = "x", .caller = "bob", .shared = true, .owner = "alice"};
  EXPECT_TRUE(store_.Pin(key).ok());
  key.owner = "bob";
  const absl::Status other = store_.Pin(key).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(other.message(), HasSubstr("name \"x\" and owner \"bob\""));
  EXPECT_EQ(store_.Pin({.id = hers.id, .caller = "bob", .owner = ""}).status().code(),
            absl::StatusCode::kNotFound);
  key.caller = "alice";
  EXPECT_EQ(store_.Delete(key).status().code(), absl::StatusCode::kNotFound);
  key.owner = "alice";
  EXPECT_TRUE(store_.Delete(key).ok()) << "the refused one left it";
}

TEST_F(StoreNamesTest, ADeleteByOwnerLeavesAnothersNameThatIsStillBeingPut) {
  StoreReservation room = Reserve(0, 1, {.name = "x", .owner = "alice", .shared = true});
  MatrixKey key{.name = "x", .caller = "alice", .shared = true, .owner = "bob"};
  EXPECT_EQ(store_.Delete(key).status().code(), absl::StatusCode::kNotFound);
  key.owner = "alice";
  EXPECT_TRUE(store_.Delete(key).ok());
}

}  // namespace
}  // namespace gemmd
