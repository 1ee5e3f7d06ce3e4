#include "server/engine/transfer/result_download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/base/processor_time.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_device.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kBlock = 64;

// Ten blocks of a matrix. The fixture keeps the pieces until it lets them go.
class ResultDownloadTest : public ::testing::Test {
 protected:
  ResultDownloadTest() { answers_.Stop(); }

  std::shared_ptr<ResultDownload> Make(uint64_t begin, uint64_t end,
                                       ReceiverId receiver = kPromptReceiver) {
    source_ = device_.MakeMatrix({10, 16, gemm::DType::kF32});
    watched_ = source_;
    return std::make_shared<ResultDownload>(
        std::move(source_), begin, end, receiver, answers_,
        [this](ResultPiece piece) { OnPiece(std::move(piece)); },
        [this](absl::StatusOr<DownloadTimes> times) { ends_.push_back(std::move(times)); });
  }
  void OnPiece(ResultPiece piece) {
    EXPECT_FALSE(std::exchange(inside_, true)) << "two calls at a time";
    offsets_.push_back(piece.offset);
    bytes_.insert(bytes_.end(), piece.bytes.begin(), piece.bytes.end());
    pieces_.push_back(std::move(piece));
    if (on_piece_) on_piece_();
    inside_ = false;
  }
  void LetGo(size_t piece) { pieces_[piece].owner.reset(); }
  // All copies end, and all pieces are released, until nothing is left.
  void RunToEnd() {
    for (size_t next = 0; next < pieces_.size() || device_.downloads().waiting() > 0;) {
      device_.downloads().EndAll();
      for (; next < pieces_.size(); ++next) LetGo(next);
    }
  }
  void ExpectNothingHeld() {
    EXPECT_TRUE(watched_.expired());
    EXPECT_EQ(device_.events, 0);
    EXPECT_EQ(device_.memory().used(), 0u);
    EXPECT_EQ(device_.download_staging().used_blocks(), 0u);
  }

  TestClock clock_;
  FakeDevice device_;
  Workers answers_{"answers", 0};
  std::shared_ptr<MatrixMemory> source_;
  std::weak_ptr<MatrixMemory> watched_;
  std::function<void()> on_piece_;  // inside the call
  bool inside_ = false;
  std::vector<uint64_t> offsets_;
  std::vector<std::byte> bytes_;
  std::vector<ResultPiece> pieces_;
  std::vector<absl::StatusOr<DownloadTimes>> ends_;
};

TEST_F(ResultDownloadTest, BringsTheBytesOfItsRangeInOrder) {
  constexpr uint64_t kBegin = 32;
  constexpr uint64_t kEnd = 32 + 3 * kBlock + 20;
  const auto download = Make(kBegin, kEnd);
  download->Start();
  RunToEnd();
  EXPECT_THAT(offsets_, ElementsAre(32, 96, 160, 224));
  std::vector<std::byte> expected;
  for (uint64_t i = kBegin; i < kEnd; ++i) expected.push_back(FakeStream::DenseByte(i));
  EXPECT_EQ(bytes_, expected);
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_TRUE(ends_[0].ok());
}

// The wire takes the time between the pieces; behind the last one, more may be asked for at once.
TEST_F(ResultDownloadTest, OnlyTheLastPieceIsAwaitedAwake) {
  Make(0, 3 * kBlock)->Start();
  RunToEnd();
  EXPECT_THAT(device_.downloads().urgencies,
              ElementsAre(Urgency::kCanWait, Urgency::kCanWait, Urgency::kPrompt));
  device_.downloads().urgencies.clear();
  Make(0, 20)->Start();
  RunToEnd();
  EXPECT_THAT(device_.downloads().urgencies, ElementsAre(Urgency::kPrompt));
}

TEST_F(ResultDownloadTest, IsAtMostItsWindowAheadOfTheReceiver) {
  const auto download = Make(0, 10 * kBlock);
  download->Start();
  constexpr size_t kWindow = ResultDownload::kWindow;
  EXPECT_EQ(device_.downloads().downloads.size(), kWindow);
  device_.downloads().EndAll();
  EXPECT_EQ(device_.downloads().downloads.size(), kWindow) << "all are held by the receiver";
  EXPECT_EQ(device_.download_staging().used_blocks(), kWindow);
  LetGo(3);  // whichever
  EXPECT_EQ(device_.downloads().downloads.size(), kWindow + 1);
  RunToEnd();
  EXPECT_EQ(ends_.size(), 1u);
}

TEST_F(ResultDownloadTest, ItsBlocksCountAsTheReceivers) {
  const auto download = Make(0, 10 * kBlock, NewReceiver());
  download->Start();
  device_.downloads().EndAll();
  EXPECT_EQ(pieces_.size(), 2u) << "a new receiver's share";
  RunToEnd();
  EXPECT_EQ(pieces_.size(), 10u);
}

TEST_F(ResultDownloadTest, APieceThatIsCopiedDuringACallComesAfterIt) {
  const auto download = Make(0, 3 * kBlock);
  download->Start();
  on_piece_ = [this] {
    if (device_.downloads().waiting() > 0) device_.downloads().EndOne();
  };
  device_.downloads().EndOne();
  EXPECT_THAT(offsets_, ElementsAre(0, kBlock, 2 * kBlock));
  for (size_t i = 0; i < 3; ++i) LetGo(i);
  EXPECT_EQ(ends_.size(), 1u);
}

TEST_F(ResultDownloadTest, EndsOnceTheLastPieceWasLetGoInAnyOrder) {
  const auto download = Make(0, 3 * kBlock);
  download->Start();
  device_.downloads().EndAll();
  LetGo(2);
  LetGo(0);
  EXPECT_THAT(ends_, IsEmpty());
  LetGo(1);
  EXPECT_EQ(ends_.size(), 1u);
}

TEST_F(ResultDownloadTest, APieceLetGoInsideItsCallEndsNothingEarly) {
  const auto download = Make(0, 2 * kBlock);
  download->Start();
  on_piece_ = [this] {
    pieces_.back().owner.reset();
    EXPECT_THAT(ends_, IsEmpty());
  };
  device_.downloads().EndAll();
  EXPECT_EQ(ends_.size(), 1u);
}

TEST_F(ResultDownloadTest, TellsTheTimes) {
  const auto download = Make(0, 2 * kBlock);
  download->Start();
  clock_.Advance(absl::Seconds(7));
  device_.downloads().EndOne();  // handed over: its sending begins
  clock_.Advance(absl::Seconds(2));
  device_.downloads().EndOne();
  LetGo(1);
  clock_.Advance(absl::Seconds(1));
  LetGo(0);
  ASSERT_EQ(ends_.size(), 1u);
  ASSERT_TRUE(ends_[0].ok());
  EXPECT_EQ(ends_[0]->send, absl::Seconds(3));
  EXPECT_EQ(ends_[0]->device_to_host, device_.elapsed);
}

TEST_F(ResultDownloadTest, ReleasesWhatIsTheDevicesBeforeItEnds) {
  const auto download = Make(0, 2 * kBlock);
  download->Start();
  EXPECT_EQ(device_.events, 2);
  RunToEnd();
  ASSERT_EQ(ends_.size(), 1u);
  ExpectNothingHeld();
}

TEST_F(ResultDownloadTest, TheFirstErrorEndsItOnce) {
  const auto download = Make(0, 3 * kBlock);
  download->Start();
  device_.downloads().EndOne();
  device_.downloads().EndOne(absl::UnavailableError("lost"));
  device_.downloads().EndOne(absl::UnavailableError("lost, too"));
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].status(), absl::UnavailableError("lost"));
  EXPECT_THAT(offsets_, ElementsAre(0));
  LetGo(0);
  EXPECT_EQ(ends_.size(), 1u);
  ExpectNothingHeld();
}

TEST_F(ResultDownloadTest, AStreamThatRefusesEndsItAtTheStart) {
  const auto download = Make(0, kBlock);
  device_.downloads().error = absl::InvalidArgumentError("refused");
  download->Start();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].status(), absl::InvalidArgumentError("refused"));
  ExpectNothingHeld();
}

TEST_F(ResultDownloadTest, ACopyThatIsRefusedEndsIt) {
  std::vector<StagingBlock> taken;
  while (StagingBlock block = device_.download_staging().TryAcquire()) {
    taken.push_back(std::move(block));
  }
  const auto download = Make(0, kBlock);
  download->Start();  // and waits for a block
  device_.downloads().error = absl::InvalidArgumentError("refused");
  taken.clear();
  device_.downloads().EndAll();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].status(), absl::InvalidArgumentError("refused"));
  EXPECT_THAT(pieces_, IsEmpty());
  ExpectNothingHeld();
}

TEST_F(ResultDownloadTest, AfterAbortNobodyIsCalled) {
  const auto download = Make(0, 3 * kBlock);
  download->Start();
  device_.downloads().EndOne();
  download->Abort();
  EXPECT_FALSE(watched_.expired()) << "copies of it are under way";
  device_.downloads().EndAll();
  LetGo(0);
  EXPECT_THAT(offsets_, ElementsAre(0));
  EXPECT_THAT(ends_, IsEmpty());
  ExpectNothingHeld();
}

// It no longer keeps the device, which may be on its way out when its copy ends.
TEST_F(ResultDownloadTest, AfterAbortNothingIsAskedOfTheDevice) {
  const auto download = Make(0, kBlock);
  download->Start();
  download->Abort();
  device_.downloads().EndAll();
  EXPECT_EQ(device_.asked_whether_busy, 0);
  ExpectNothingHeld();
}

TEST_F(ResultDownloadTest, AfterAbortItWaitsForNoBlock) {
  std::vector<StagingBlock> all;
  while (StagingBlock block = device_.download_staging().TryAcquire()) {
    all.push_back(std::move(block));
  }
  auto download = Make(0, kBlock, NewReceiver());
  download->Start();
  const std::weak_ptr<ResultDownload> watched = download;
  download->Abort();
  download.reset();
  EXPECT_TRUE(watched.expired());
  all.clear();
  EXPECT_THAT(offsets_, IsEmpty());
  EXPECT_THAT(ends_, IsEmpty());
  ExpectNothingHeld();
}

TEST_F(ResultDownloadTest, AnErrorEndsTheWaitForABlock) {
  const auto download = Make(0, 3 * kBlock, NewReceiver());
  download->Start();
  EXPECT_EQ(device_.downloads().waiting(), 2u) << "its share; it waits for more";
  std::vector<StagingBlock> others;
  while (StagingBlock block = device_.download_staging().TryAcquire()) {
    others.push_back(std::move(block));
  }
  device_.downloads().EndOne(absl::InternalError("broken"));
  device_.downloads().EndAll();
  EXPECT_EQ(ends_.size(), 1u);
  EXPECT_EQ(download.use_count(), 1) << "the test's own";
  others.clear();
  ExpectNothingHeld();
}

TEST_F(ResultDownloadTest, AbortBeforeTheStartLeavesNothing) {
  const auto download = Make(0, kBlock);
  download->Abort();
  download->Start();
  EXPECT_EQ(device_.downloads().waiting(), 0u);
  EXPECT_THAT(ends_, IsEmpty());
  ExpectNothingHeld();
}

TEST_F(ResultDownloadTest, AStagedRangeIsOnePieceOfTheCallersBlock) {
  const auto download = Make(8, 40);
  StagingBlock block = device_.download_staging().TryAcquire();
  const std::byte* data = block.data();
  download->StartStaged(std::move(block));
  ASSERT_EQ(pieces_.size(), 1u);
  EXPECT_EQ(pieces_[0].offset, 8u);
  EXPECT_EQ(pieces_[0].bytes.data(), data);
  EXPECT_EQ(pieces_[0].bytes.size(), 32u);
  EXPECT_THAT(ends_, IsEmpty());
  clock_.Advance(absl::Seconds(2));
  LetGo(0);
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0]->send, absl::Seconds(2));
  EXPECT_EQ(ends_[0]->device_to_host, absl::ZeroDuration()) << "its caller knows that";
  EXPECT_THAT(device_.downloads().downloads, IsEmpty());
  ExpectNothingHeld();
}

// The thread that hands a piece over: the device's, here the test's, or one of the answers.
class ResultDownloadThread : public ::testing::Test {
 protected:
  // The thread that gets a piece of so many bytes.
  std::thread::id ThreadOf(uint64_t bytes, bool busy) {
    FakeDevice::Options options;
    options.block_bytes = 2 * kSmallBytes;
    options.blocks = 16;
    options.memory_bytes = 4 * kSmallBytes;
    FakeDevice device(options);
    device.busy = busy;
    Workers answers("answers", 1);
    std::thread::id thread;
    std::promise<void> ended;
    const auto download = std::make_shared<ResultDownload>(
        device.MakeMatrix({1, static_cast<int64_t>(2 * kSmallBytes / 4), gemm::DType::kF32}), 0,
        bytes, kPromptReceiver, answers,
        [&thread](ResultPiece) { thread = std::this_thread::get_id(); },
        [&ended](absl::StatusOr<DownloadTimes>) { ended.set_value(); });
    download->Start();
    device.downloads().EndAll();
    ended.get_future().wait();
    return thread;
  }
  const std::thread::id here_ = std::this_thread::get_id();
};

TEST_F(ResultDownloadThread, SmallPiecesAreTheDevicesWhileItHasNothingElseToDo) {
  EXPECT_EQ(ThreadOf(kSmallBytes, /*busy=*/false), here_);
  EXPECT_NE(ThreadOf(kSmallBytes, /*busy=*/true), here_);
}

TEST_F(ResultDownloadThread, LargePiecesAreTheAnswers) {
  EXPECT_NE(ThreadOf(kSmallBytes + 1, /*busy=*/false), here_);
}

// A thread that stayed awake for the next piece would take the core that the bytes of this one
// need.
TEST(ResultDownloadPieces, AreNotWaitedForAwake) {
  constexpr uint64_t kPiece = 2 * kSmallBytes;
  FakeDevice device({.memory_bytes = 2 * kPiece, .block_bytes = kPiece, .blocks = 16});
  Workers answers("answers", 1, absl::Minutes(1));
  std::promise<pthread_t> first;
  std::promise<void> ended;
  const auto download = std::make_shared<ResultDownload>(
      device.MakeMatrix({1, static_cast<int64_t>(2 * kPiece / 4), gemm::DType::kF32}), 0,
      2 * kPiece, kPromptReceiver, answers,
      [&first](const ResultPiece& piece) {
        if (piece.offset == 0) first.set_value(pthread_self());
      },
      [&ended](const absl::StatusOr<DownloadTimes>&) { ended.set_value(); });
  download->Start();
  device.downloads().EndOne();
  const pthread_t thread = first.get_future().get();
  const double before = ProcessorSeconds(thread);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(ProcessorSeconds(thread) - before, 0.05);
  device.downloads().EndOne();
  ended.get_future().wait();
}

}  // namespace
}  // namespace gemmd
