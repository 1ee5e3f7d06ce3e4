// Options that an engine refuses before it makes anything.
#include "server/engine/bounds/options.h"

#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

TEST(EngineOptions, DefaultsAndTheLeastOfEachAreTaken) {
  EXPECT_EQ(CheckOptions(EngineOptions()), absl::OkStatus());
  EngineOptions least;
  least.streams_per_device = 1;
  least.quick_streams = 0;
  least.zero_copy_bytes = 0;
  least.copy_threads = 0;
  least.staging_block_bytes = kMinStagingBlockBytes;
  least.staging_bytes = 16 * kMinStagingBlockBytes;
  least.max_job_bytes = 1;
  least.max_admitted_bytes = 1;
  least.max_jobs = 1;
  least.max_queued_jobs = 0;
  least.max_matrices = 1;
  least.max_queue_wait = absl::Nanoseconds(1);
  least.upload_timeout = absl::Nanoseconds(1);
  least.job_timeout = absl::ZeroDuration();
  least.unnamed_ttl = absl::ZeroDuration();
  least.completion_spin = absl::ZeroDuration();
  least.verify_sample_rate = 0;
  EXPECT_EQ(CheckOptions(least), absl::OkStatus());
}

TEST(EngineOptions, ErrorsNameTheFlagTheValueAndTheBound) {
  struct WrongOption {
    std::function<void(EngineOptions&)> set;
    const char* sentence;
  };
  const WrongOption table[] = {
      {[](auto& o) { o.streams_per_device = 0; }, "--streams-per-device is 0, but must be 1 to"},
      {[](auto& o) { o.quick_streams = -1; }, "--quick-streams is -1, but must be 0 to"},
      {[](auto& o) { o.zero_copy_bytes = kMaxZeroCopyBytes + 1; },
       "--zero-copy-bytes is 65537, but must be at most 65536"},
      {[](auto& o) { o.quick_streams = kMaxStreamsPerDevice + 1; }, "--quick-streams is "},
      {[](auto& o) { o.copy_threads = -1; }, "--copy-threads is -1, but must be at least 0"},
      {[](auto& o) { o.staging_block_bytes = kMinStagingBlockBytes - 1; },
       "--staging-block-bytes is "},
      {[](auto& o) { o.staging_bytes = 16 * o.staging_block_bytes - 1; }, "--staging-bytes is "},
      {[](auto& o) { o.max_job_bytes = 0; }, "--max-job-bytes is 0, but must be at least 1"},
      {[](auto& o) { o.max_admitted_bytes = 0; }, "--max-admitted-bytes is 0"},
      {[](auto& o) { o.max_jobs = 0; }, "--max-jobs is 0"},
      {[](auto& o) { o.max_queued_jobs = -1; }, "--max-queued-jobs is -1"},
      {[](auto& o) { o.max_matrices = 0; }, "--max-matrices is 0"},
      {[](auto& o) { o.max_queue_wait = absl::ZeroDuration(); },
       "--max-queue-wait is 0, but must be longer than 0"},
      {[](auto& o) { o.upload_timeout = -absl::Seconds(1); },
       "--upload-timeout is -1s, but must be longer than 0"},
      {[](auto& o) { o.job_timeout = -absl::Seconds(1); },
       "--job-timeout is -1s, but must not be negative"},
      {[](auto& o) { o.unnamed_ttl = -absl::Seconds(1); },
       "--unnamed-ttl is -1s, but must not be negative"},
      {[](auto& o) { o.completion_spin = -absl::Microseconds(1); },
       "--completion-spin is -1us, but must not be negative"},
      {[](auto& o) { o.verify_sample_rate = 1.5; },
       "--verify-sample-rate is 1.5, but must be 0 to 1"},
      {[](auto& o) { o.verify_sample_rate = std::numeric_limits<double>::quiet_NaN(); },
       "--verify-sample-rate is nan"},
  };
  for (const WrongOption& wrong : table) {
    EngineOptions options;
    wrong.set(options);
    const absl::Status status = CheckOptions(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong.sentence;
    EXPECT_THAT(std::string(status.message()), HasSubstr(wrong.sentence));
  }
}

TEST(EngineOptions, OfSeveralWrongOnesTheFirstIsNamed) {
  EngineOptions options;
  options.max_jobs = 0;
  options.verify_sample_rate = 2;
  EXPECT_THAT(std::string(CheckOptions(options).message()), HasSubstr("--max-jobs is 0"));
}

}  // namespace
}  // namespace gemmd
