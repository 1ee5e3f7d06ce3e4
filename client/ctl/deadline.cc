#include "client/ctl/deadline.h"

namespace gemmd::ctl {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(2);
constexpr double kSlowestBytesPerSecond = 1 << 20;
constexpr double kSlowestFlopsPerSecond = 1e8;
constexpr absl::Duration kBeyondBenchmark = absl::Minutes(1);

}  // namespace

absl::Duration TransferDeadline(double bytes) { return ProductDeadline(bytes, 0); }

absl::Duration ProductDeadline(double bytes, double flops) {
  return kPatience + absl::Seconds(bytes / kSlowestBytesPerSecond) +
         absl::Seconds(flops / kSlowestFlopsPerSecond);
}

absl::Duration BenchmarkDeadline(absl::Duration server_limit) {
  return server_limit + kBeyondBenchmark;
}

}  // namespace gemmd::ctl
