// A product that takes many launches, enqueued in pieces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "gemm/run.h"

namespace gemm::testing {
namespace {

using ::testing::ElementsAre;

// A kernel of a GPU that only notes its launches.
struct Noted {
  int64_t m = 0;
  const void* d = nullptr;
};
std::vector<Noted>* noted = nullptr;

absl::Status Note(const Launch& launch) {
  noted->push_back({launch.problem.m, launch.operands.d});
  return launch.piece == nullptr ? absl::OkStatus() : absl::InternalError("a piece of a piece");
}

class LaunchPieces : public ::testing::Test {
 protected:
  LaunchPieces() { noted = &noted_; }
  ~LaunchPieces() override { noted = nullptr; }

  static constexpr int64_t kN = 4;
  static constexpr Kernel kOneByOne = {.name = "one by one", .launch = Note};

  // Makes a group of products of 1, 2, 3, 1, 2, 3 ... rows.
  void MakeGroup(int64_t products) {
    for (int64_t i = 0; i < products; ++i) extents_.push_back(1 + i % 3);
    problem_ = {.n = kN, .k = 5, .grouped = GroupedBy::kM, .extents = extents_};
    for (const int64_t rows : extents_) problem_.m += rows;
    d_.resize(static_cast<size_t>(problem_.m * kN));
  }
  absl::Status Run(LaunchPiece* piece) {
    const Operands operands = {.d = d_.data(), .ldd = kN};
    return RunProduct(kOneByOne, {.problem = problem_, .operands = operands, .piece = piece});
  }
  // Runs all pieces. Returns how many products each had.
  std::vector<size_t> RunPieces() {
    std::vector<size_t> sizes;
    LaunchPiece piece;
    do {
      const size_t before = noted_.size();
      EXPECT_EQ(Run(&piece), absl::OkStatus());
      sizes.push_back(noted_.size() - before);
    } while (piece.more() && sizes.size() < 100);
    return sizes;
  }
  // Each product was launched once, in order.
  void ExpectAllInOrder() {
    ASSERT_EQ(noted_.size(), extents_.size());
    int64_t row = 0;
    for (size_t i = 0; i < noted_.size(); ++i) {
      ASSERT_EQ(noted_[i].m, extents_[i]) << i;
      ASSERT_EQ(noted_[i].d, d_.data() + row * kN) << i;
      row += extents_[i];
    }
  }

  std::vector<int64_t> extents_;
  Problem problem_;
  std::vector<float> d_;
  std::vector<Noted> noted_;
};

TEST_F(LaunchPieces, AGroupThatIsTakenApartGoesInBoundedPieces) {
  MakeGroup(2 * kLaunchesInPiece + 44);
  EXPECT_THAT(RunPieces(), ElementsAre(kLaunchesInPiece, kLaunchesInPiece, 44));
  ExpectAllInOrder();
}

TEST_F(LaunchPieces, NoPieceIsEmptyAtTheEnd) {
  MakeGroup(2 * kLaunchesInPiece);
  EXPECT_THAT(RunPieces(), ElementsAre(kLaunchesInPiece, kLaunchesInPiece));
  ExpectAllInOrder();
}

TEST_F(LaunchPieces, WithoutAPieceAllOfItIsEnqueuedAtOnce) {
  MakeGroup(2 * kLaunchesInPiece + 1);
  EXPECT_EQ(Run(nullptr), absl::OkStatus());
  ExpectAllInOrder();
}

TEST_F(LaunchPieces, ASmallGroupIsOnePiece) {
  MakeGroup(3);
  EXPECT_THAT(RunPieces(), ElementsAre(3));
  ExpectAllInOrder();
}

}  // namespace
}  // namespace gemm::testing
