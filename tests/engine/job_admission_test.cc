#include "server/engine/job/job_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/test_clock.h"
#include "tests/engine/fake_core.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

// On two devices of 64 KiB, half of it for the store.
class JobAdmissionTest : public ::testing::Test {
 protected:
  // 16 x 16 matrices, of 1 KiB each.
  static constexpr Shape kSquare{16, 16, gemm::DType::kF32};
  static constexpr uint64_t kBytes = 1024;

  static JobSpec Product() {
    JobSpec spec;
    spec.a = {kSquare, FromPayload{}};
    spec.b = {kSquare, FromPayload{}};
    return spec;
  }
  static OperandSpec Resident(const std::string& id, bool release = false) {
    return {std::nullopt, FromResident{{.id = id}, release}};
  }
  std::string Put(size_t device, const Shape& shape = kSquare) {
    StoreReservation room = *store().Reserve(device, shape.pitched_bytes(), {});
    return store()
        .Add(std::move(room), *fake_.core.AllocateMatrix(device, shape, Lifetime::kMatrix))
        ->id;
  }
  AdmittedJob Admit(JobSpec spec) {
    absl::StatusOr<AdmittedJob> job = AdmitJob(fake_.core, std::move(spec));
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *std::move(job) : AdmittedJob();
  }
  // The refusal of a job, which must leave nothing reserved.
  absl::Status Refuse(JobSpec spec) {
    const uint64_t memory[] = {used(0), used(1)};
    const int matrices = store().count();
    const absl::Status status = AdmitJob(fake_.core, std::move(spec)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(used(0), memory[0]);
    EXPECT_EQ(used(1), memory[1]);
    EXPECT_EQ(store().count(), matrices);
    EXPECT_EQ(fake_.core.admission->jobs().used, 0);
    EXPECT_EQ(fake_.core.admission->admitted_bytes().used, 0);
    EXPECT_EQ(fake_.device(0).events + fake_.device(1).events, 0);
    return status;
  }
  uint64_t used(size_t device) { return fake_.device(device).memory().used(); }
  MatrixStore& store() { return *fake_.core.store; }

  static EngineOptions Bounds() {
    EngineOptions options = FakeCore::DefaultOptions();
    options.max_job_bytes = 60 * kKiB;
    options.max_admitted_bytes = 100 * kKiB;  // not two of the largest
    options.max_matrices = 3;
    return options;
  }

  TestClock clock_;
  FakeCore fake_{Bounds(), 2};
};

TEST_F(JobAdmissionTest, ReservesEverythingThatTheJobNeedsAndReturnsIt) {
  {
    const AdmittedJob job = Admit(Product());
    EXPECT_EQ(used(job.device_index), 3 * kBytes);
    EXPECT_EQ(fake_.core.admission->jobs().used, 1);
    EXPECT_EQ(fake_.core.admission->admitted_bytes().used, static_cast<int64_t>(3 * kBytes));
    EXPECT_EQ(job.payload_bytes, 2 * kBytes);
    EXPECT_NE(job.pick.kernel, nullptr);
  }
  EXPECT_EQ(used(0) + used(1), 0u);
  EXPECT_EQ(fake_.core.admission->jobs().used, 0);
}

TEST_F(JobAdmissionTest, TheResultTakesThePlaceOfTheJobsOwnC) {
  JobSpec spec = Product();
  spec.beta = 1;
  spec.c = {kSquare, FromPayload{}};
  const AdmittedJob job = Admit(spec);
  EXPECT_EQ(used(job.device_index), 3 * kBytes);
  EXPECT_EQ((*job.holdings)[Role::kC].memory, job.holdings->result);
}

TEST_F(JobAdmissionTest, ABatchTakesTheMemoryAndTheTimeOfAllItsProducts) {
  JobSpec spec = Product();
  spec.a.shape->rows = 5 * 16;
  spec.batch = 5;
  spec.shared[Role::kB] = true;
  const absl::Duration of_one = Admit(Product()).claim.cost.device_time;
  {
    const AdmittedJob job = Admit(spec);
    EXPECT_EQ(used(job.device_index), 11 * kBytes) << "five of A and of the result, one of B";
    EXPECT_EQ(fake_.core.admission->admitted_bytes().used, static_cast<int64_t>(11 * kBytes));
    EXPECT_EQ(job.payload_bytes, 6 * kBytes);
    EXPECT_EQ(job.work.products, 5);
    EXPECT_EQ(job.work.flops, 5 * 2.0 * 16 * 16 * 16);
    EXPECT_GT(job.claim.cost.device_time, of_one);
  }
  spec.a.shape->rows = 60 * 16;  // beyond --max-job-bytes
  spec.batch = 60;
  EXPECT_EQ(Refuse(spec).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(JobAdmissionTest, ABlockOfRowsTakesItsOwnMemoryAndTheKernelOfTheWhole) {
  FakeCore roomy(FakeCore::DefaultOptions(), 1, {.memory_bytes = size_t{1} << 20});
  JobSpec spec = Product();
  spec.kernel.name = "host_reference";
  const auto memory_of = [&roomy](const JobSpec& of) {
    const absl::StatusOr<AdmittedJob> job = AdmitJob(roomy.core, of);
    EXPECT_TRUE(job.ok()) << job.status();
    return roomy.device().memory().used();
  };
  const size_t of_the_block = memory_of(spec);
  spec.product_rows = int64_t{1} << 40;  // beyond every device, and not its matter
  EXPECT_EQ(memory_of(spec), of_the_block);
  const absl::StatusOr<AdmittedJob> job = AdmitJob(roomy.core, spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->work.flops, 2.0 * 16 * 16 * 16);
  EXPECT_EQ(job->plan.problem.m, 16);
  EXPECT_THAT(job->pick.reason, HasSubstr("as for all 1099511627776 rows"));
}

TEST_F(JobAdmissionTest, ABlockOfRowsOfAKernelThatPromisesNothingIsRefused) {
  JobSpec spec = Product();
  spec.product_rows = 64;
  EXPECT_EQ(Refuse(spec).code(), absl::StatusCode::kFailedPrecondition) << "the server's choice";
  spec.kernel.name = "host_openblas";
  EXPECT_EQ(Refuse(spec).code(), absl::StatusCode::kInvalidArgument);
  spec.kernel.name = "host_reference";
  spec.product_rows = 15;
  EXPECT_THAT(Refuse(spec).message(), HasSubstr("row_block.product_rows is 15"));
}

// Between the look at the operand's holder and the look at all devices.
TEST_F(JobAdmissionTest, ADeviceThatIsLostMeanwhileIsNoPlaceForItsOperands) {
  JobSpec spec = Product();
  spec.a = Resident(Put(1));
  fake_.device(1).healthy_looks = 1;
  const absl::Status status = AdmitJob(fake_.core, spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(status.message(), HasSubstr("lost just now"));
}

TEST_F(JobAdmissionTest, AGroupTakesTheMemoryAndTheTimeOfAllItsProducts) {
  JobSpec spec = Product();
  spec.a.shape->rows = 5 * 16;
  spec.group = {{16, 16, 16}, {0, 16, 16}, {64, 16, 16}};
  spec.shared[Role::kB] = true;
  const absl::Duration of_one = Admit(Product()).claim.cost.device_time;
  {
    const AdmittedJob job = Admit(spec);
    EXPECT_EQ(used(job.device_index), 11 * kBytes) << "five of A and of the result, one of B";
    EXPECT_EQ(fake_.core.admission->admitted_bytes().used, static_cast<int64_t>(11 * kBytes));
    EXPECT_EQ(job.payload_bytes, 6 * kBytes);
    EXPECT_EQ(job.work.products, 3);
    EXPECT_EQ(job.work.launches, job.pick.kernel->groups ? 1 : 3);
    EXPECT_EQ(job.work.flops, 5 * 2.0 * 16 * 16 * 16);
    EXPECT_GT(job.claim.cost.device_time, of_one);
    EXPECT_TRUE(job.spec.group.empty()) << "held twice";
  }
  spec.group[2].m = 60 * 16;  // beyond --max-job-bytes
  spec.a.shape->rows = 61 * 16;
  EXPECT_EQ(Refuse(spec).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(JobAdmissionTest, AResultDoesNotTakeThePlaceOfASharedC) {
  JobSpec spec = Product();
  spec.beta = 1;
  spec.c = {kSquare, FromPayload{}};
  spec.a.shape->rows = 2 * 16;
  spec.shared = {false, true, true, false};
  spec.batch = 2;
  const AdmittedJob job = Admit(spec);
  EXPECT_NE((*job.holdings)[Role::kC].memory, job.holdings->result);
  EXPECT_EQ(used(job.device_index), 6 * kBytes);
}

TEST_F(JobAdmissionTest, AResidentCIsNotOverwritten) {
  const std::string id = Put(0);
  JobSpec spec = Product();
  spec.beta = 1;
  spec.c = Resident(id);
  const AdmittedJob job = Admit(spec);
  EXPECT_NE((*job.holdings)[Role::kC].memory, job.holdings->result);
}

TEST_F(JobAdmissionTest, AResidentOperandIsHeldAsLongAsTheJob) {
  const std::string id = Put(0);
  JobSpec spec = Product();
  spec.a = Resident(id);
  {
    const AdmittedJob job = Admit(spec);
    EXPECT_EQ(job.payload_bytes, kBytes);
    ASSERT_TRUE(store().Delete({.id = id}).ok());
    EXPECT_EQ(store().count(), 1) << "deleted, and in use";
  }
  EXPECT_EQ(store().count(), 0);
}

TEST_F(JobAdmissionTest, ReleasesTheOperandsThatAreToBeReleasedAndNoOthers) {
  const std::string kept = Put(0);
  const std::string released = Put(0);
  JobSpec spec = Product();
  spec.a = Resident(kept);
  spec.b = Resident(released, /*release=*/true);
  const AdmittedJob job = Admit(spec);
  EXPECT_TRUE(store().Pin({.id = released}).ok()) << "not before the job is accepted";
  ReleaseResidents(fake_.core, job.spec, *job.holdings);
  EXPECT_TRUE(store().Pin({.id = kept}).ok());
  EXPECT_EQ(store().Pin({.id = released}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobAdmissionTest, AKeptResultHasItsPlaceInTheStoreFromTheStart) {
  JobSpec spec = Product();
  spec.keep_result = KeepSpec{.name = "x"};
  const AdmittedJob job = Admit(spec);
  EXPECT_EQ(store().used_bytes(job.device_index), kBytes);
  EXPECT_EQ(store().Reserve(0, 1, {.name = "x"}).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(JobAdmissionTest, ARefusedJobLeavesNothing) {
  const std::string id = Put(1);
  Put(1);
  const StoreReservation name = *store().Reserve(0, 1, {.name = "taken"});
  JobSpec spec = Product();
  spec.keep_result = KeepSpec{.name = "taken"};
  EXPECT_EQ(Refuse(spec).code(), absl::StatusCode::kResourceExhausted) << "the store is full";
  ASSERT_TRUE(store().Delete({.id = id}).ok());
  EXPECT_EQ(Refuse(spec).code(), absl::StatusCode::kAlreadyExists);

  spec = Product();
  spec.kernel.name = "no_such_kernel";
  EXPECT_EQ(Refuse(spec).code(), absl::StatusCode::kNotFound);
  spec = Product();
  spec.b = Resident(id);
  EXPECT_THAT(Refuse(spec).message(), HasSubstr("b: no matrix has id"));
  spec = Product();
  spec.b.shape = Shape{17, 16, gemm::DType::kF32};
  EXPECT_THAT(Refuse(spec).message(), HasSubstr("inner dimensions"));
  spec.b.shape = std::nullopt;
  EXPECT_THAT(Refuse(spec).message(), HasSubstr("b.shape is missing"));
  spec = Product();
  spec.check_result = [](const Shape&) { return absl::OutOfRangeError("no"); };
  EXPECT_EQ(Refuse(spec), absl::OutOfRangeError("no"));
}

TEST_F(JobAdmissionTest, AJobThatNoDeviceHasTheMemoryForIsRefused) {
  const DeviceBuffer taken[] = {*fake_.device(0).memory().Allocate(62 * kKiB),
                                *fake_.device(1).memory().Allocate(62 * kKiB)};
  EXPECT_EQ(Refuse(Product()).code(), absl::StatusCode::kResourceExhausted);
  JobSpec large = Product();
  large.a.shape = Shape{128, 128, gemm::DType::kF32};
  large.b.shape = large.a.shape;
  EXPECT_THAT(Refuse(large).message(), HasSubstr("--max-job-bytes"));
}

// Before its bounds, and long before its launch.
TEST_F(JobAdmissionTest, AJobThatItsKernelRefusesForItsSizeIsRefused) {
  JobSpec spec = Product();
  spec.a.shape = {int64_t{1} << 31, 16, gemm::DType::kF32, /*column_major=*/true};
  spec.kernel.name = "host_openblas";
  const absl::Status status = Refuse(spec);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("kernel host_openblas takes at most"));
}

// The kernel computes no more than the block.
TEST_F(JobAdmissionTest, ABlockOfRowsIsNotRefusedForTheSizeOfTheWhole) {
  JobSpec spec = Product();
  spec.product_rows = int64_t{1} << 31;
  spec.kernel.name = "host_openblas";
  EXPECT_THAT(std::string(Refuse(spec).message()), HasSubstr("does not promise"));
}

TEST_F(JobAdmissionTest, ADeadlineThatHasPassedIsLookedAt) {
  JobSpec spec = Product();
  spec.deadline = SteadyNow();
  EXPECT_EQ(Refuse(spec).code(), absl::StatusCode::kDeadlineExceeded);
  spec.deadline = SteadyNow() + absl::Nanoseconds(1);
  Admit(spec);
}

TEST_F(JobAdmissionTest, AProductThatNobodyGetsIsRefused) {
  JobSpec spec = Product();
  spec.stream_result = false;
  EXPECT_THAT(Refuse(spec).message(), HasSubstr("neither stream nor keep"));
}

TEST_F(JobAdmissionTest, AResidentOperandsOwnShapeIsTheOneThatCounts) {
  const std::string id = Put(0);
  JobSpec spec = Product();
  spec.a = Resident(id);
  spec.a.shape = Shape{16, 17, gemm::DType::kF32};
  EXPECT_THAT(Refuse(spec).message(),
              HasSubstr("a.shape is 16x17 f32 row-major, but the resident"));
  spec.a.shape = kSquare;
  Admit(spec);
}

TEST_F(JobAdmissionTest, JobsGoToTheLeastLoadedHealthyDevice) {
  const AdmittedJob first = Admit(Product());
  EXPECT_EQ(first.device_index, 0u);
  EXPECT_EQ(Admit(Product()).device_index, 1u) << "where less memory is in use";
  fake_.device(1).health = absl::UnavailableError("lost");
  EXPECT_EQ(Admit(Product()).device_index, 0u);
}

// Keeps its stream.
class Busy final : public Runnable {
 public:
  void Run(StreamLease stream) override { lease_ = std::move(stream); }

 private:
  StreamLease lease_;
};

// The reservations on the first device are returned before the next is tried.
TEST_F(JobAdmissionTest, AJobThatTheFirstDeviceHasNoRoomForGoesToTheNext) {
  const auto busy = std::make_shared<Busy>();
  ASSERT_TRUE(fake_.core.schedulers[1]->Submit(busy, {}).ok());
  const DeviceBuffer taken = *fake_.device(0).memory().Allocate(20 * kKiB);
  JobSpec large = Product();
  large.a.shape = large.b.shape = Shape{68, 68, gemm::DType::kF32};
  const AdmittedJob job = Admit(large);
  EXPECT_EQ(job.device_index, 1u);
  EXPECT_EQ(used(0), 20 * kKiB);
}

TEST_F(JobAdmissionTest, WithoutAHealthyDeviceThereIsNoJob) {
  for (size_t i = 0; i < 2; ++i) fake_.device(i).health = absl::UnavailableError("lost");
  EXPECT_EQ(Refuse(Product()).code(), absl::StatusCode::kUnavailable);
}

TEST_F(JobAdmissionTest, AJobGoesToTheDeviceThatHoldsItsOperand) {
  for (const size_t device : {1, 0}) {
    JobSpec spec = Product();
    spec.b = Resident(Put(device));
    EXPECT_EQ(Admit(spec).device_index, device);
  }
}

TEST_F(JobAdmissionTest, OfTwoHoldersTheOneWithTheLargerOperandIsTakenAndTheSmallerMoves) {
  JobSpec spec = Product();
  spec.a = Resident(Put(0, {8, 16, gemm::DType::kF32}));
  spec.b = Resident(Put(1));
  const AdmittedJob job = Admit(spec);
  EXPECT_EQ(job.device_index, 1u);
  const JobInput& a = (*job.holdings)[Role::kA];
  ASSERT_TRUE(a.replica);
  EXPECT_EQ(a.memory, a.replica.replica()->memory());
  EXPECT_EQ(a.memory->device, fake_.core.devices[1].get());
  EXPECT_FALSE((*job.holdings)[Role::kB].replica);
}

// Has been copied.
class Copied final : public Replica {
 public:
  explicit Copied(std::shared_ptr<MatrixMemory> memory) : memory_(std::move(memory)) {}
  const std::shared_ptr<MatrixMemory>& memory() const override { return memory_; }
  CopyRoute route() const override { return CopyRoute::kPeer; }
  void Await(absl::AnyInvocable<void(absl::Status)> done) override { done(absl::OkStatus()); }
  void Abort() override {}
  uint64_t missing_bytes() const override { return 0; }
  bool complete() const override { return true; }
  bool failed() const override { return false; }

 private:
  const std::shared_ptr<MatrixMemory> memory_;
};

// An idle replica has half a KiB of the one that is free with it, and the job needs two: its first
// piece would have found room in its place.
TEST_F(JobAdmissionTest, AJobThatNoReplicaCouldHelpDropsNone) {
  const std::string b = Put(1);
  const Shape half{8, 16, gemm::DType::kF32};
  const std::string a = Put(0, half);
  (void)store().AddReplica(
      *store().Pin({.id = a}), *store().ReserveReplica(1, half.pitched_bytes()),
      std::make_shared<Copied>(*fake_.core.AllocateMatrix(1, half, Lifetime::kJob)));
  ASSERT_EQ(store().idle_replica_bytes(1), 512u);
  const DeviceBuffer taken[] = {*fake_.device(0).memory().Allocate(64 * kKiB - 512),
                                *fake_.device(1).memory().Allocate(62 * kKiB)};
  JobSpec spec = Product();
  spec.b = Resident(b);
  EXPECT_THAT(Refuse(spec).message(), HasSubstr("2048 bytes asked for"));
  EXPECT_EQ(store().replica_stats(1).dropped, 0);
  EXPECT_EQ(store().idle_replica_bytes(1), 512u);
}

}  // namespace
}  // namespace gemmd
