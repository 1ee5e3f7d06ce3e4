// Calls are bounded where nobody says how long they may take.
#include "client/ctl/deadline.h"

#include <gtest/gtest.h>

#include <sstream>

#include "client/ctl/context.h"

namespace gemmd::ctl {
namespace {

TEST(DeadlineTest, GrowsWithTheBytesAndTheWork) {
  EXPECT_EQ(TransferDeadline(0), absl::Minutes(2));
  EXPECT_EQ(TransferDeadline(64.0 * (1 << 20)), absl::Minutes(2) + absl::Seconds(64));
  EXPECT_EQ(ProductDeadline(1 << 20, 2e9), absl::Minutes(2) + absl::Seconds(21));
  EXPECT_EQ(BenchmarkDeadline(absl::Minutes(10)), absl::Minutes(11));
}

TEST(DeadlineTest, EveryCallHasOne) {
  std::ostringstream out;
  Context context{.global = {}, .out = out, .err = out};
  EXPECT_EQ(Call(context).timeout, kQuestionDeadline);
  EXPECT_EQ(Call(context, TransferDeadline(0)).timeout, absl::Minutes(2));
  context.global.deadline = absl::Milliseconds(5);
  EXPECT_EQ(Call(context, TransferDeadline(0)).timeout, absl::Milliseconds(5));
  context.global.deadline = absl::InfiniteDuration();
  EXPECT_EQ(Call(context).timeout, absl::InfiniteDuration());
}

}  // namespace
}  // namespace gemmd::ctl
