#include "server/engine/device/copy_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gemmd {
namespace {

Pitched Matrix(int64_t lines, int64_t line_bytes, int64_t pitch_bytes) {
  return {.lines = lines, .line_bytes = line_bytes, .pitch_bytes = pitch_bytes};
}

// For every byte of the range, where the plan puts it in the matrix; -1 for a
// byte it leaves out, -2 for one it copies twice.
std::vector<int64_t> Destinations(const CopyPlan& plan, size_t bytes) {
  std::vector<int64_t> to(bytes, -1);
  for (const CopyRect& rect : plan) {
    for (size_t y = 0; y < rect.height; ++y) {
      for (size_t x = 0; x < rect.width; ++x) {
        int64_t& slot = to.at(rect.dense_offset + y * rect.dense_pitch + x);
        slot =
            slot == -1 ? static_cast<int64_t>(rect.matrix_offset + y * rect.matrix_pitch + x) : -2;
      }
    }
  }
  return to;
}

TEST(CopyPlan, EveryRangeOfSmallMatricesCopiesEachByteOnceToItsPlace) {
  for (const int64_t lines : {1, 2, 3, 5}) {
    for (const int64_t line : {1, 2, 3, 7}) {
      for (const int64_t pitch : {line, line + 1, line + 5}) {
        const Pitched matrix = Matrix(lines, line, pitch);
        const size_t size = matrix.dense_bytes();
        for (size_t offset = 0; offset <= size; ++offset) {
          for (size_t bytes = 0; bytes <= size - offset; ++bytes) {
            const CopyPlan plan = PlanCopy(matrix, offset, bytes);
            ASSERT_LE(plan.size(), pitch == line ? 1u : 3u);
            const std::vector<int64_t> to = Destinations(plan, bytes);
            for (size_t i = 0; i < bytes; ++i) {
              const int64_t at = static_cast<int64_t>(offset + i);
              ASSERT_EQ(to[i], at / line * pitch + at % line)
                  << lines << " lines of " << line << " at " << pitch << ", range " << offset << "+"
                  << bytes << ", byte " << i;
            }
          }
        }
      }
    }
  }
}

TEST(CopyPlan, SplitsIntoEndWholeLinesAndStart) {
  const CopyPlan plan = PlanCopy(Matrix(10, 100, 112), 250, 400);
  ASSERT_EQ(plan.size(), 3u);
  EXPECT_EQ(plan[0].width, 50u);
  EXPECT_EQ(plan[0].height, 1u);
  EXPECT_EQ(plan[1].height, 3u);
  EXPECT_EQ(plan[1].width, 100u);
  EXPECT_EQ(plan[2].width, 50u);
  EXPECT_EQ(plan[2].matrix_offset, 6u * 112);
}

TEST(CopyPlan, AMatrixWithoutGapsIsOneLinearCopy) {
  const CopyPlan plan = PlanCopy(Matrix(10, 112, 112), 50, 1000);
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].height, 1u);
  EXPECT_EQ(plan[0].width, 1000u);
  EXPECT_EQ(plan[0].matrix_offset, 50u);
}

TEST(CopyPlan, TheWholeOfAPitchedMatrixIsOneRectangle) {
  const CopyPlan plan = PlanCopy(Matrix(10, 100, 112), 0, 1000);
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].height, 10u);
}

TEST(CopyPlan, OffsetsBeyond32BitsAreExact) {
  constexpr int64_t kLine = int64_t{5} << 30;
  const CopyPlan plan = PlanCopy(Matrix(4, kLine, kLine + 16), kLine * 3 - 1, 2);
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].matrix_offset, static_cast<size_t>((kLine + 16) * 2 + kLine - 1));
  EXPECT_EQ(plan[1].matrix_offset, static_cast<size_t>((kLine + 16) * 3));
}

TEST(CheckRange, AcceptsWhatLiesWithin) {
  EXPECT_TRUE(CheckRange(Matrix(2, 10, 16), 0, 20).ok());
  EXPECT_TRUE(CheckRange(Matrix(2, 10, 16), 20, 0).ok());
}

TEST(CheckRange, NamesARangeThatDoesNot) {
  const absl::Status status = CheckRange(Matrix(2, 10, 16), 15, 6);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "byte range of 6 bytes at 15 is not within the matrix's 20 bytes");
  EXPECT_FALSE(CheckRange(Matrix(2, 10, 16), 21, 0).ok());
  EXPECT_FALSE(CheckRange(Matrix(2, 10, 16), 1, ~size_t{0}).ok());
}

TEST(CheckRange, RefusesLinesThatOverlap) {
  const absl::Status status = CheckRange(Matrix(2, 10, 9), 0, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("pitch of 9"));
}

}  // namespace
}  // namespace gemmd
