// Uploads by one call or by several: their groups, and what ends them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/serving_clock.h"
#include "server/engine/transfer/upload_impl.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_core.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Group = std::shared_ptr<UploadGroup>;

class UploadGroupTest : public ::testing::Test {
 protected:
  // 256 bytes.
  UploadSpec Split(const std::string& upload_id) {
    UploadSpec spec;
    spec.shape = {4, 16, gemm::DType::kF32};
    spec.keep.name = "x";
    spec.upload_id = upload_id;
    return spec;
  }
  UploadSpec Whole(const std::string& name = "") {
    UploadSpec spec = Split("");
    spec.keep.name = name;
    return spec;
  }
  Group Join(const UploadSpec& spec, ByteSpan range = {0, 256}) {
    absl::StatusOr<Group> group = uploads().Join(spec, range);
    EXPECT_TRUE(group.ok()) << group.status();
    return group.value_or(nullptr);
  }
  absl::Status Refusal(const UploadSpec& spec, ByteSpan range) {
    const absl::Status status = uploads().Join(spec, range).status();
    EXPECT_FALSE(status.ok());
    return status;
  }
  UploadGroups& uploads() { return *fake_.core.uploads; }
  MatrixStore& store() { return *fake_.core.store; }
  void PassTime(absl::Duration time) {
    clock_.Advance(time);
    RunDue(*fake_.core.timer);
  }
  void ExpectNothingHeld() {
    EXPECT_EQ(store().count(), 0);
    EXPECT_EQ(store().used_bytes(0), 0u);
    EXPECT_EQ(fake_.device().memory().used(), 0u);
  }

  TestClock clock_;
  FakeCore fake_;
};

TEST_F(UploadGroupTest, CallsOfOneUploadIdShareAGroup) {
  const Group group = Join(Split("u"), {0, 100});
  EXPECT_EQ(Join(Split("u"), {100, 156}), group);
  UploadSpec other = Split("v");
  other.keep.name = "y";
  EXPECT_NE(Join(other, {0, 100}), group);
  EXPECT_EQ(store().count(), 2);
}

TEST_F(UploadGroupTest, CallsWithoutOneAreUploadsOfTheirOwn) {
  EXPECT_NE(Join(Whole()), Join(Whole()));
  EXPECT_EQ(store().count(), 2) << "their bytes are owed until the timeout";
  PassTime(fake_.core.options.upload_timeout);
  ExpectNothingHeld();
}

TEST_F(UploadGroupTest, RangesThatOverlapAreRefusedByName) {
  const Group group = Join(Split("u"), {100, 50});
  for (const ByteSpan& range : {ByteSpan{100, 50}, ByteSpan{110, 10}, ByteSpan{90, 100},
                                ByteSpan{99, 2}, ByteSpan{149, 1}, ByteSpan{0, 101}}) {
    const absl::Status refused = Refusal(Split("u"), range);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("100 to 150")) << range.offset;
  }
  EXPECT_EQ(Join(Split("u"), {150, 10}), group);
  EXPECT_EQ(Join(Split("u"), {90, 10}), group);
}

TEST_F(UploadGroupTest, ACallTooManyIsRefusedAndLeavesTheOthers) {
  UploadSpec spec = Split("u");
  spec.shape = {64, 64, gemm::DType::kF32};
  const auto byte = [](int i) { return ByteSpan{static_cast<uint64_t>(i), 1}; };
  const Group group = Join(spec, byte(0));
  for (int i = 1; i < kMostUploadCalls; ++i) ASSERT_EQ(Join(spec, byte(i)), group);
  const absl::Status refused = Refusal(spec, byte(kMostUploadCalls));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("upload_id \"u\""), HasSubstr("4096 calls")));
  EXPECT_TRUE(group->Land(byte(0)).ok());
}

TEST_F(UploadGroupTest, CallsThatDifferFromTheFirstAreRefused) {
  const Group group = Join(Split("u"), {0, 10});
  UploadSpec shape = Split("u");
  shape.shape.column_major = true;
  UploadSpec name = Split("u");
  name.keep.name = "y";
  UploadSpec ttl = Split("u");
  ttl.keep.ttl = absl::Hours(1);
  UploadSpec device = Split("u");
  device.device = "fake:0";
  for (const UploadSpec& differs : {shape, name, ttl, device}) {
    const absl::Status refused = Refusal(differs, {10, 10});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("upload_id \"u\""));
  }
}

TEST_F(UploadGroupTest, TheLastRangeThatLandsAddsTheMatrix) {
  const Group group = Join(Split("u"), {0, 100});
  Join(Split("u"), {100, 156});
  const absl::StatusOr<UploadResult> first = group->Land({100, 156});
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(first->complete);
  EXPECT_EQ(first->bytes, 156u);
  EXPECT_EQ(store().Pin({.name = "x"}).status().code(), absl::StatusCode::kNotFound);
  const absl::StatusOr<UploadResult> last = group->Land({0, 100});
  ASSERT_TRUE(last.ok());
  EXPECT_TRUE(last->complete);
  EXPECT_EQ(last->matrix.id, first->matrix.id) << "known from the start";
  EXPECT_TRUE(store().Pin({.id = last->matrix.id}).ok());
}

TEST_F(UploadGroupTest, AnUploadIdMayBeUsedAgainOnceItsMatrixIsThere) {
  const Group group = Join(Split("u"));
  ASSERT_TRUE(group->Land({0, 256}).ok());
  UploadSpec again = Split("u");
  again.keep.name = "y";
  EXPECT_NE(Join(again), group);
}

TEST_F(UploadGroupTest, AFailureReleasesEverythingAndEndsTheGroup) {
  const Group group = Join(Split("u"), {0, 100});
  group->Fail(absl::InvalidArgumentError("wrong bytes"));
  ExpectNothingHeld();
  EXPECT_EQ(group->memory(), nullptr);
  EXPECT_EQ(group->Land({0, 100}).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(group->Join(Split("u"), {100, 10}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(group->AddMember({}).code(), absl::StatusCode::kAborted);
  EXPECT_NE(Join(Split("u"), {0, 100}), group) << "its id and its name are free";
}

TEST_F(UploadGroupTest, AFailureAfterTheMatrixIsThereLeavesIt) {
  const Group group = Join(Split("u"));
  ASSERT_TRUE(group->Land({0, 256}).ok());
  group->Fail(absl::CancelledError("late"));
  EXPECT_TRUE(store().Pin({.name = "x"}).ok());
}

TEST_F(UploadGroupTest, EndsWhenNoByteComesForTheTimeout) {
  const Group group = Join(Split("u"), {0, 100});
  const absl::Duration timeout = fake_.core.options.upload_timeout;
  PassTime(timeout - absl::Nanoseconds(1));
  EXPECT_NE(group->memory(), nullptr);
  PassTime(absl::Nanoseconds(1));
  EXPECT_EQ(group->memory(), nullptr);
  ExpectNothingHeld();
}

TEST_F(UploadGroupTest, EveryByteAndEveryCallBeginsTheTimeAnew) {
  const Group group = Join(Split("u"), {0, 100});
  const absl::Duration most = fake_.core.options.upload_timeout - absl::Nanoseconds(1);
  PassTime(most);
  group->Received(10);
  group->Consumed(10);
  PassTime(most);
  EXPECT_NE(group->memory(), nullptr);
  Join(Split("u"), {100, 10});
  PassTime(most);
  EXPECT_NE(group->memory(), nullptr);
  PassTime(absl::Nanoseconds(1));
  EXPECT_EQ(group->memory(), nullptr);
}

TEST_F(UploadGroupTest, BytesThatWaitInTheServerAreNotTheClientsDelay) {
  const Group group = Join(Split("u"), {0, 100});
  const absl::Duration timeout = fake_.core.options.upload_timeout;
  group->Received(10);
  group->Received(10);
  PassTime(timeout);
  group->Consumed(10);
  PassTime(5 * timeout);
  EXPECT_NE(group->memory(), nullptr) << "ten bytes still wait";
  group->Consumed(10);
  PassTime(timeout - absl::Nanoseconds(1));
  EXPECT_NE(group->memory(), nullptr);
  PassTime(absl::Nanoseconds(1));
  EXPECT_EQ(group->memory(), nullptr);
}

TEST_F(UploadGroupTest, TimeInWhichTheServerWasBehindIsNotTheClientsDelay) {
  const Group group = Join(Split("u"), {0, 100});
  const absl::Duration timeout = fake_.core.options.upload_timeout;
  ServingClock::LeaveOut(timeout);
  PassTime(timeout);
  EXPECT_NE(group->memory(), nullptr);
  PassTime(timeout - absl::Nanoseconds(1));
  EXPECT_NE(group->memory(), nullptr);
  PassTime(absl::Nanoseconds(1));
  EXPECT_EQ(group->memory(), nullptr);
}

TEST_F(UploadGroupTest, AGeneratedMatrixOwesNoBytes) {
  UploadSpec spec = Whole();
  spec.generator = gemm::GeneratorSpec{1};
  const Group group = Join(spec);
  PassTime(10 * fake_.core.options.upload_timeout);
  EXPECT_NE(group->memory(), nullptr);
}

TEST_F(UploadGroupTest, TakesItsPlaceInTheStoreWhenItBegins) {
  UploadSpec large = Whole();
  large.shape = {1, 8000, gemm::DType::kF32};
  const Group group = Join(large, {0, 32000});
  EXPECT_EQ(store().used_bytes(0), 32000u);
  EXPECT_EQ(Refusal(large, {0, 32000}).code(), absl::StatusCode::kResourceExhausted);
}

// Uploads to one of two devices.
class UploadDeviceTest : public UploadGroupTest {
 protected:
  UploadDeviceTest() : two_(FakeCore::DefaultOptions(), 2) {}
  absl::StatusOr<size_t> DeviceOf(const UploadSpec& spec) {
    absl::StatusOr<Group> group = two_.core.uploads->Join(spec, {0, spec.shape.dense_bytes()});
    if (!group.ok()) return group.status();
    groups_.push_back(*group);
    return (*group)->device_index();
  }

  FakeCore two_;
  std::vector<Group> groups_;
};

TEST_F(UploadDeviceTest, IsTheOneThatTheCallerNames) {
  UploadSpec spec = Whole();
  for (const size_t device : {1, 1, 0}) {
    spec.device = absl::StrCat("fake:", device);
    EXPECT_EQ(*DeviceOf(spec), device);
  }
  two_.device(1).health = absl::UnavailableError("lost");
  spec.device = "fake:1";
  EXPECT_EQ(DeviceOf(spec).status(), absl::UnavailableError("lost"));
}

TEST_F(UploadDeviceTest, AnUnknownOneIsAnsweredWithThoseThereAre) {
  UploadSpec spec = Whole();
  spec.device = "cuda:7";
  const absl::Status refused = DeviceOf(spec).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("\"cuda:7\""), HasSubstr("fake:0, fake:1")));
}

TEST_F(UploadDeviceTest, IsTheHealthyOneWithTheMostRoom) {
  EXPECT_EQ(*DeviceOf(Whole()), 0u);
  EXPECT_EQ(*DeviceOf(Whole()), 1u);
  EXPECT_EQ(*DeviceOf(Whole()), 0u);
  two_.device(1).health = absl::UnavailableError("lost");
  EXPECT_EQ(*DeviceOf(Whole()), 0u);
  two_.device(0).health = absl::UnavailableError("lost");
  EXPECT_EQ(DeviceOf(Whole()).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(UploadDeviceTest, AFolderStaysTogetherWhileThereIsHalfTheRoom) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*DeviceOf(Whole(absl::StrCat("f/", i))), 0u) << i;
  const DeviceBuffer taken = *two_.device(0).memory().Allocate(40 * kKiB);
  EXPECT_EQ(*DeviceOf(Whole("f/last")), 1u);
}

TEST_F(UploadDeviceTest, IsTheNextWhereTheStoreOfTheFirstIsFull) {
  UploadSpec large = Whole();
  large.shape = {1, 8000, gemm::DType::kF32};
  large.device = "fake:0";
  ASSERT_EQ(*DeviceOf(large), 0u);
  const DeviceBuffer taken = *two_.device(1).memory().Allocate(40 * kKiB);
  UploadSpec next = Whole();
  next.shape = {1, 1000, gemm::DType::kF32};
  EXPECT_EQ(*DeviceOf(next), 1u) << "device 0 has more room, but its store is full";
}

// Calls with their ends, on a device whose copies end when the test says so.
class UploadCallTest : public UploadGroupTest {
 protected:
  struct Call {
    std::shared_ptr<UploadImpl> upload;
    std::optional<absl::StatusOr<UploadResult>> end;
    int consumed = 0;
  };

  std::shared_ptr<Call> Begin(const UploadSpec& spec) {
    auto call = std::make_shared<Call>();
    absl::StatusOr<std::shared_ptr<UploadImpl>> upload =
        UploadImpl::Begin(fake_.core, spec, [call](absl::StatusOr<UploadResult> result) {
          EXPECT_FALSE(call->end.has_value()) << "ended twice";
          call->end = std::move(result);
        });
    EXPECT_TRUE(upload.ok()) << upload.status();
    call->upload = *std::move(upload);
    call->upload->Start();
    return call;
  }
  void Send(const std::shared_ptr<Call>& call, uint64_t offset, size_t bytes) {
    call->upload->Append(offset, absl::Cord(std::string(bytes, 'x')), [call] { ++call->consumed; });
  }
  UploadSpec Part(ByteSpan range) {
    UploadSpec spec = Split("u");
    spec.range = range;
    return spec;
  }
};

TEST_F(UploadCallTest, IsCompleteOnceItsBytesAreOnTheDeviceAndItsPayloadHasEnded) {
  for (const bool payload_first : {false, true}) {
    const auto call = Begin(Whole());
    Send(call, 0, 256);
    EXPECT_EQ(call->consumed, 1);
    if (!payload_first) fake_.device().uploads().EndAll();
    EXPECT_FALSE(call->end.has_value());
    call->upload->EndOfPayload();
    EXPECT_FALSE(call->end.has_value());
    fake_.device().uploads().EndAll();
    ASSERT_TRUE(call->end.has_value());
    ASSERT_TRUE(call->end->ok()) << call->end->status();
    EXPECT_TRUE((*call->end)->complete);
    EXPECT_TRUE(store().Delete({.id = (*call->end)->matrix.id}).ok());
  }
  ExpectNothingHeld();
}

TEST_F(UploadCallTest, AFailingCallEndsTheOthersOfItsUpload) {
  const auto first = Begin(Part({0, 100}));
  const auto second = Begin(Part({100, 156}));
  Send(second, 100, 50);
  first->upload->Cancel(absl::CancelledError("gone"));
  ASSERT_TRUE(first->end.has_value() && second->end.has_value());
  EXPECT_EQ(first->end->status(), absl::CancelledError("gone"));
  EXPECT_EQ(second->end->status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(second->end->status().message(), HasSubstr("gone"));
  Send(second, 150, 10);
  EXPECT_EQ(second->consumed, 2) << "bytes for a call that has ended are dropped";
  fake_.device().uploads().EndAll();
  ExpectNothingHeld();
  EXPECT_TRUE(fake_.core.admission->WaitIdle(SteadyNow()));
}

TEST_F(UploadCallTest, ASilentUploadEndsWithTheTimeoutsName) {
  const auto call = Begin(Part({0, 100}));
  PassTime(fake_.core.options.upload_timeout);
  ASSERT_TRUE(call->end.has_value());
  EXPECT_EQ(call->end->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(call->end->status().message(),
              AllOf(HasSubstr("upload_id \"u\""), HasSubstr("--upload-timeout"), HasSubstr("1m")));
}

TEST_F(UploadCallTest, ADeadlineEndsIt) {
  UploadSpec spec = Whole();
  spec.deadline = SteadyNow() + absl::Seconds(10);
  const auto call = Begin(spec);
  PassTime(absl::Seconds(10));
  ASSERT_TRUE(call->end.has_value());
  EXPECT_EQ(call->end->status(), absl::DeadlineExceededError("the deadline passed in transfer"));
  ExpectNothingHeld();
}

TEST_F(UploadCallTest, BytesOutOfOrderEndIt) {
  for (const uint64_t offset : {99, 101}) {
    const auto call = Begin(Whole());
    Send(call, 0, 100);
    Send(call, offset, 10);
    fake_.device().uploads().EndAll();
    ASSERT_TRUE(call->end.has_value()) << offset;
    EXPECT_EQ(call->end->status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(call->end->status().message(), HasSubstr("byte 100 is next"));
  }
  ExpectNothingHeld();
}

TEST_F(UploadCallTest, MissingBytesAndExtraBytesLeaveNothing) {
  const auto missing = Begin(Whole());
  Send(missing, 0, 255);
  missing->upload->EndOfPayload();
  const auto extra = Begin(Whole());
  Send(extra, 0, 256);
  Send(extra, 256, 1);
  fake_.device().uploads().EndAll();
  for (const auto& call : {missing, extra}) {
    ASSERT_TRUE(call->end.has_value());
    EXPECT_EQ(call->end->status().code(), absl::StatusCode::kInvalidArgument);
  }
  ExpectNothingHeld();
}

}  // namespace
}  // namespace gemmd
