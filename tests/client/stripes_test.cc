// How matrices are split over channels.

#include "client/cpp/transfers/stripes.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

using ::testing::ElementsAre;

TEST(Stripes, CoverTheMatrixOnceInWholeChunks) {
  for (const uint64_t chunk : {1u, 7u, 4096u}) {
    for (const int channels : {1, 2, 3, 4, 64}) {
      for (const uint64_t bytes : {1u, 6u, 7u, 8u, 100u, 4096u, 40961u, 1u << 20}) {
        const auto plan = PlanStripes(bytes, channels, chunk, 1);
        ASSERT_FALSE(plan.empty());
        ASSERT_LE(plan.size(), static_cast<size_t>(channels));
        uint64_t next = 0;
        std::set<int> used;
        for (const Stripe& stripe : plan) {
          ASSERT_EQ(stripe.offset, next);
          ASSERT_GE(stripe.length, 1u);
          next += stripe.length;
          if (next != bytes) {
            ASSERT_EQ(stripe.length % chunk, 0u);
          }
          ASSERT_TRUE(used.insert(stripe.channel).second);
          ASSERT_LT(stripe.channel, channels);
        }
        ASSERT_EQ(next, bytes);
      }
    }
  }
}

TEST(Stripes, AreNearlyEqual) {
  EXPECT_THAT(PlanStripes(100, 4, 10, 2),
              ElementsAre(Stripe{.channel = 2, .offset = 0, .length = 30},
                          Stripe{.channel = 3, .offset = 30, .length = 30},
                          Stripe{.channel = 0, .offset = 60, .length = 20},
                          Stripe{.channel = 1, .offset = 80, .length = 20}));
}

TEST(Stripes, UploadIdsDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = NewTransferId();
    EXPECT_EQ(id.size(), 32u);
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 1000u);
}

}  // namespace
}  // namespace gemmd::client
