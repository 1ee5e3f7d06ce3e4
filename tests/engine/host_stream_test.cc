// How a stream of the host device reports its work when the device is lost.
#include "server/engine/device/host/host_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "server/base/mutex.h"
#include "server/engine/device/completion_queue.h"
#include "server/engine/device/device_health.h"

namespace gemmd {
namespace {

class HostStreamTest : public ::testing::Test {
 protected:
  // A notice, and its status.
  using Notice = std::pair<int, absl::StatusCode>;

  void Notify(int number) {
    const auto note = [this, number](const absl::Status& status) {
      MutexLock lock(mutex_);
      told_.emplace_back(number, status.code());
      changed_.NotifyAll();
    };
    stream_->Notify(note, {});
  }
  std::vector<Notice> AwaitTold(size_t count) {
    MutexLock lock(mutex_);
    while (told_.size() < count) changed_.Wait(mutex_);
    return told_;
  }
  // The stream stands still until the mark is reached.
  std::shared_ptr<HostMark> StandStill() {
    auto mark = std::make_shared<HostMark>();
    HostEvent event;
    event.set_mark(mark);
    EXPECT_TRUE(stream_->Wait(event).ok());
    while (!mark->awaited()) absl::SleepFor(absl::Microseconds(100));
    return mark;
  }
  static std::vector<Notice> Numbered(int begin, int end, absl::StatusCode code) {
    std::vector<Notice> notices;
    for (int i = begin; i < end; ++i) notices.emplace_back(i, code);
    return notices;
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<Notice> told_ ABSL_GUARDED_BY(mutex_);
  DeviceHealth health_{"host:0"};
  std::optional<CompletionQueue> completions_{std::in_place, "test-done"};
  std::optional<HostStream> stream_{std::in_place, "test", HostStream::Use::kCompute, *completions_,
                                    health_};
};

TEST_F(HostStreamTest, NoticesAreToldInTheirOrder) {
  for (int i = 0; i < 100; ++i) Notify(i);
  EXPECT_EQ(AwaitTold(100), Numbered(0, 100, absl::StatusCode::kOk));
}

// The loss is recorded, and the stream gets to the notice before anybody tells it.
TEST_F(HostStreamTest, WorkThatEndsAfterTheLossIsNoSuccess) {
  const std::shared_ptr<HostMark> mark = StandStill();
  Notify(0);
  health_.Lose("by the test").IgnoreError();
  mark->Reach();
  EXPECT_EQ(AwaitTold(1), Numbered(0, 1, absl::StatusCode::kUnavailable));
}

TEST_F(HostStreamTest, NoticesAfterTheLossAreToldOfItOnceAndUnderWorkThatRunsOn) {
  constexpr int kEach = 100;
  const std::shared_ptr<HostMark> mark = StandStill();
  for (int i = 0; i < kEach; ++i) Notify(i);
  health_.Lose("by the test").IgnoreError();
  stream_->TellOfLoss();
  for (int i = kEach; i < 2 * kEach; ++i) Notify(i);
  AwaitTold(2 * kEach);
  // The stream goes on, with the turns of those that were told, beside new ones.
  mark->Reach();
  for (int i = 2 * kEach; i < 3 * kEach; ++i) Notify(i);
  stream_.reset();
  completions_.reset();
  EXPECT_EQ(AwaitTold(0), Numbered(0, 3 * kEach, absl::StatusCode::kUnavailable));
}

// The niceness of a thread of this process; nullopt if none has the name.
std::optional<int> NicenessOf(const std::string& thread_name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    if (name != thread_name) continue;
    return getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(entry.path().filename())));
  }
  return std::nullopt;
}

TEST_F(HostStreamTest, OnlyLargeProductsLeaveTheCoresToOthers) {
  const int own = getpriority(PRIO_PROCESS, 0);
  for (const auto& [use, added] : {std::pair(HostStream::Use::kCompute, 10),
                                   {HostStream::Use::kQuick, 0},
                                   {HostStream::Use::kCopies, 0}}) {
    stream_.emplace("nice", use, *completions_, health_);
    told_.clear();
    Notify(1);
    AwaitTold(1);                      // so it runs
    constexpr int kMostNiceness = 19;  // more is cut
    EXPECT_EQ(NicenessOf("nice"), std::min(kMostNiceness, own + added)) << static_cast<int>(use);
  }
}

}  // namespace
}  // namespace gemmd
