#include "server/engine/bounds/options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/cgroup.h"

namespace gemmd {
namespace {

absl::Status CheckAtLeast(absl::string_view option, int64_t value, int64_t bound) {
  if (value >= bound) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", option, " is ", value, ", but must be at least ", bound));
}

absl::Status CheckPositive(absl::string_view option, absl::Duration value) {
  if (value > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", option, " is ", absl::FormatDuration(value),
                                                 ", but must be longer than 0"));
}

absl::Status CheckNotNegative(absl::string_view option, absl::Duration value) {
  if (value >= absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", option, " is ", absl::FormatDuration(value),
                                                 ", but must not be negative"));
}

}  // namespace

absl::Status CheckOptions(const EngineOptions& options) {
  absl::Status status = CheckStreams(options);
  if (options.max_coalesced_jobs < 0 || options.max_coalesced_jobs > kMostCoalescedJobs) {
    status.Update(absl::InvalidArgumentError(
        absl::StrCat("--max-coalesced-jobs is ", options.max_coalesced_jobs, ", but must be 0 to ",
                     kMostCoalescedJobs)));
  }
  if (options.zero_copy_bytes > kMaxZeroCopyBytes) {
    status.Update(
        absl::InvalidArgumentError(absl::StrCat("--zero-copy-bytes is ", options.zero_copy_bytes,
                                                ", but must be at most ", kMaxZeroCopyBytes)));
  }
  status.Update(CheckAtLeast("copy-threads", options.copy_threads, 0));
  status.Update(CheckAtLeast("staging-block-bytes",
                             static_cast<int64_t>(options.staging_block_bytes),
                             kMinStagingBlockBytes));
  // The last sixteenth is for receivers that release at once: a block at least (staging.h).
  status.Update(CheckAtLeast("staging-bytes", static_cast<int64_t>(options.staging_bytes),
                             static_cast<int64_t>(16 * options.staging_block_bytes)));
  status.Update(CheckAtLeast("max-job-bytes", static_cast<int64_t>(options.max_job_bytes), 1));
  status.Update(
      CheckAtLeast("max-admitted-bytes", static_cast<int64_t>(options.max_admitted_bytes), 1));
  status.Update(CheckAtLeast("max-jobs", options.max_jobs, 1));
  status.Update(CheckAtLeast("max-queued-jobs", options.max_queued_jobs, 0));
  status.Update(CheckAtLeast("max-matrices", options.max_matrices, 1));
  status.Update(CheckPositive("max-queue-wait", options.max_queue_wait));
  status.Update(CheckPositive("upload-timeout", options.upload_timeout));
  status.Update(CheckNotNegative("job-timeout", options.job_timeout));
  status.Update(CheckNotNegative("unnamed-ttl", options.unnamed_ttl));
  status.Update(CheckNotNegative("completion-spin", options.completion_spin));
  if (!(options.verify_sample_rate >= 0 && options.verify_sample_rate <= 1)) {
    status.Update(absl::InvalidArgumentError(absl::StrCat(
        "--verify-sample-rate is ", options.verify_sample_rate, ", but must be 0 to 1")));
  }
  return status;
}

absl::Status CheckStreams(const EngineOptions& options) {
  const auto check = [](absl::string_view option, int streams, int least) {
    if (streams >= least && streams <= kMaxStreamsPerDevice) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--", option, " is ", streams, ", but must be ",
                                                   least, " to ", kMaxStreamsPerDevice));
  };
  absl::Status status = check("streams-per-device", options.streams_per_device, 1);
  status.Update(check("quick-streams", options.quick_streams, 0));
  return status;
}

int DefaultCopyThreads() { return std::clamp(CpusToUse() / 2, 1, 8); }

}  // namespace gemmd
