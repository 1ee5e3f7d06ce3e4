// A product of many launches is enqueued in pieces: other jobs of its device are told of their ends
// between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "server/engine/job/job_impl.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_core.h"
#include "tests/engine/recorder.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobPiecesTest : public ::testing::Test {
 protected:
  JobPiecesTest() { long_.pieces = 3; }
  ~JobPiecesTest() override {
    long_.EndAll();
    short_.EndAll();
  }

  // Its operands are drawn, and its result is copied to the host in the same breath.
  std::shared_ptr<JobImpl> Begin(std::shared_ptr<JobRecorder> recorder) {
    JobSpec spec;
    spec.a = spec.b = {Shape{8, 8, gemm::DType::kF32}, FromGenerator{{1}}};
    absl::StatusOr<AdmittedJob> admitted = AdmitJob(fake_.core, std::move(spec));
    EXPECT_TRUE(admitted.ok()) << admitted.status();
    auto job = std::make_shared<JobImpl>(fake_.core, *std::move(admitted), std::move(recorder),
                                         SteadyNow());
    job->Start();
    return job;
  }
  void ExpectNothingHeld() {
    EXPECT_EQ(fake_.device().memory().used(), 0u);
    EXPECT_EQ(fake_.device().download_staging().used_blocks(), 0u);
    EXPECT_EQ(fake_.core.admission->jobs().used, 0);
    EXPECT_EQ(fake_.core.schedulers[0]->streams().used, 0);
    EXPECT_EQ(fake_.device().events, 0);
  }

  static EngineOptions Options() {
    EngineOptions options = FakeCore::DefaultOptions();
    options.zero_copy_bytes = 0;  // else the kernel itself writes so small a result to the host
    return options;
  }

  TestClock clock_;
  FakeCore fake_{Options(), 1, {.streams = 2, .block_bytes = 512, .blocks = 4}};
  FakeStream& long_ = fake_.device().compute(1);  // it is given out first
  FakeStream& short_ = fake_.device().compute(0);
  std::shared_ptr<JobRecorder> recorder_ = std::make_shared<JobRecorder>();
};

TEST_F(JobPiecesTest, EachPieceWaitsForTheOneBeforeAndOthersEndBetween) {
  const auto job = Begin(recorder_);
  EXPECT_THAT(long_.launches, ElementsAre(0));
  EXPECT_EQ(long_.waiting(), 1u) << "the device tells of the end of the piece";

  auto other = std::make_shared<JobRecorder>();
  const auto beside = Begin(other);
  short_.EndOne();
  EXPECT_TRUE(other->Wait().ok());
  EXPECT_THAT(long_.launches, ElementsAre(0));

  long_.EndOne();
  EXPECT_THAT(long_.launches, ElementsAre(0, 1));
  EXPECT_THAT(long_.downloads, IsEmpty());
  long_.EndOne();
  EXPECT_THAT(long_.launches, ElementsAre(0, 1, 2));
  EXPECT_EQ(long_.downloads.size(), 1u) << "with the last piece";
  EXPECT_EQ(long_.waiting(), 1u);
  long_.EndOne();
  EXPECT_TRUE(recorder_->Wait().ok());
  // The kernel's begin and end, and that of the generators before it, whatever the pieces.
  EXPECT_EQ(long_.records, 3);
  EXPECT_EQ(short_.records, 3);
  ExpectNothingHeld();
}

TEST_F(JobPiecesTest, APieceThatFailsIsTheLast) {
  const auto job = Begin(recorder_);
  long_.EndOne();
  long_.EndOne(absl::UnavailableError("lost"));
  EXPECT_EQ(recorder_->Wait().status(), absl::UnavailableError("lost"));
  EXPECT_THAT(long_.launches, ElementsAre(0, 1));
  ExpectNothingHeld();
}

TEST_F(JobPiecesTest, APieceThatIsRefusedIsTheLastAndTheOnesBeforeRunOut) {
  const auto job = Begin(recorder_);
  long_.error = absl::InternalError("refused");
  long_.EndOne();
  EXPECT_EQ(long_.waiting(), 1u) << "what was enqueued may still use the job's memory";
  EXPECT_GT(fake_.device().memory().used(), 0u);
  long_.EndOne();
  EXPECT_EQ(recorder_->Wait().status(), absl::InternalError("refused"));
  ExpectNothingHeld();
}

}  // namespace
}  // namespace gemmd
