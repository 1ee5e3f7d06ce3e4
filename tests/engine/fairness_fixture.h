// A scheduler over a device whose jobs take as long as the test says, on a clock that moves as
// they do.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/policy/scheduler.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_device.h"

namespace gemmd {

inline constexpr absl::Duration kLargeTime = absl::Milliseconds(13);
inline constexpr absl::Duration kSmallTime = absl::Microseconds(50);

class FairnessTest : public ::testing::Test {
 protected:
  // A job that runs until the test ends it.
  class TimedJob final : public Runnable {
   public:
    TimedJob(FairnessTest& test, StreamClaim claim, absl::Duration takes)
        : claim(std::move(claim)), takes(takes), left(takes), test_(test) {}
    void Run(StreamLease stream) override {
      lease = std::move(stream);
      test_.running_.push_back(this);
      test_.begun_.push_back(claim.flow);
    }

    const StreamClaim claim;
    const absl::Duration takes;  // of device time, whatever the claim says
    absl::Duration left;         // of that
    StreamLease lease;

   private:
    FairnessTest& test_;
  };

  explicit FairnessTest(int streams = 1, int quick_streams = 0)
      : device_({.streams = streams, .quick_streams = quick_streams}) {}

  // A lease that goes gives its stream to a job that waits.
  ~FairnessTest() override {
    for (const auto& job : jobs_) scheduler_.Withdraw(job.get());
  }

  static StreamClaim Claim(const std::string& caller, absl::Duration cost, double weight = 1,
                           int band = 1) {
    return {.flow = caller, .weight = weight, .cost = {.device_time = cost, .band = band}};
  }
  absl::Status Submit(const StreamClaim& claim) { return Submit(claim, claim.cost.device_time); }
  absl::Status Submit(const StreamClaim& claim, absl::Duration takes) {
    auto job = std::make_shared<TimedJob>(*this, claim, takes);
    jobs_.push_back(job);
    return scheduler_.Submit(job, claim);
  }
  // The oldest running job ends, after `time`.
  void EndOne(absl::Duration time) {
    clock_.Advance(time);
    TimedJob* const job = running_.front();
    running_.pop_front();
    device_time_[job->claim.flow] += job->lease.Reset();
  }
  // The jobs that run share the device until the first of them ends, which is returned.
  const TimedJob& RunOne() {
    const auto next =
        std::min_element(running_.begin(), running_.end(),
                         [](const TimedJob* x, const TimedJob* y) { return x->left < y->left; });
    const absl::Duration left = (*next)->left;
    for (TimedJob* job : running_) job->left -= left;
    std::swap(*next, running_.front());
    const TimedJob& ended = *running_.front();
    EndOne(left * static_cast<int64_t>(running_.size()));
    return ended;
  }
  std::vector<std::string> TakeBegun() { return std::exchange(begun_, {}); }

  TestClock clock_;
  FakeDevice device_;
  QueueLimit limit_{100'000};
  Scheduler scheduler_{device_, limit_, absl::Hours(1)};
  std::vector<std::shared_ptr<TimedJob>> jobs_;
  std::deque<TimedJob*> running_;
  std::vector<std::string> begun_;                     // the callers, in order
  std::map<std::string, absl::Duration> device_time_;  // of what has ended
};

}  // namespace gemmd
