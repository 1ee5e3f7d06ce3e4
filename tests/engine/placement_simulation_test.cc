// The placement of jobs beside that of an oracle, which knows each job's time: simulated devices
// and matrices, and the rule that the engine uses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/policy/placement.h"
#include "tests/base/test_clock.h"

namespace gemmd {
namespace {

struct SimulatedJob {
  absl::Duration arrives, takes;
  absl::Duration guessed;  // what the server thinks it takes
  size_t matrix = 0;
};

struct SimulatedLoad {
  std::string name;
  size_t matrices = 1;     // resident, each on one device at the start
  double skew = 0;         // 0: all are used as often; 1: the first is used most
  double of_capacity = 1;  // of all devices
  absl::Duration copy;     // of a matrix
  bool at_once = false;    // all jobs come together
};

enum class Chooses { kRule, kOracle, kHolder };

// A device runs its jobs one after the other. A job begins when its matrix is there.
class Simulation {
 public:
  Simulation(const SimulatedLoad& load, size_t devices)
      : load_(load), work_(devices), free_(devices), queue_(devices) {
    there_.resize(load.matrices, std::vector<absl::Duration>(devices, absl::InfiniteDuration()));
    for (size_t i = 0; i < load.matrices; ++i) there_[i][i % devices] = absl::ZeroDuration();
  }

  // The time at which the last job ends.
  absl::Duration Run(const std::vector<SimulatedJob>& jobs, Chooses chooses) {
    for (const SimulatedJob& job : jobs) {
      MoveTo(job.arrives);
      Place(job, chooses);
    }
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  struct Placed {
    absl::Duration begins, ends;
    PlacedWork::Share share;
    bool begun = false;
  };

  // Begins and ends what does so by then, in the order of time.
  void MoveTo(absl::Duration time) {
    while (true) {
      absl::Duration next = absl::InfiniteDuration();
      for (const auto& queue : queue_) {
        if (!queue.empty()) next = std::min(next, NextOf(queue.front()));
      }
      clock_.Advance(std::min(next, time) - now_);
      now_ = std::min(next, time);
      if (next > time) return;
      for (auto& queue : queue_) {
        if (queue.empty() || NextOf(queue.front()) != next) continue;
        if (queue.front().begun) {
          queue.erase(queue.begin());
        } else {
          queue.front().begun = true;
          queue.front().share.Begin();
        }
      }
    }
  }
  static absl::Duration NextOf(const Placed& job) { return job.begun ? job.ends : job.begins; }

  absl::Duration CopyFor(const SimulatedJob& job, size_t device) const {
    const absl::Duration there = there_[job.matrix][device];
    if (there == absl::InfiniteDuration()) return load_.copy;
    return std::max(there - now_, absl::ZeroDuration());
  }

  size_t Choose(const SimulatedJob& job, Chooses chooses) {
    if (chooses == Chooses::kHolder) return job.matrix % work_.size();
    std::vector<Placement> devices;
    for (size_t i = 0; i < work_.size(); ++i) {
      const bool knows = chooses == Chooses::kOracle;
      const absl::Duration copy = CopyFor(job, i);
      devices.push_back({.device_index = i,
                         .backlog = knows ? std::max(free_[i] - now_, absl::ZeroDuration())
                                          : work_[i].backlog(/*quick=*/false),
                         .copy = copy,
                         .run = knows ? job.takes : job.guessed,
                         .missing_bytes = copy > absl::ZeroDuration() ? 1u : 0u});
    }
    RankByEnd(devices);
    return devices.front().device_index;
  }

  void Place(const SimulatedJob& job, Chooses chooses) {
    const size_t device = Choose(job, chooses);
    const absl::Duration there = now_ + CopyFor(job, device);
    there_[job.matrix][device] = there;
    const absl::Duration begins = std::max({free_[device], there, now_});
    free_[device] = begins + job.takes;
    queue_[device].push_back(
        {begins, free_[device], work_[device].Add(job.guessed, /*quick=*/false)});
  }

  const SimulatedLoad& load_;
  TestClock clock_;
  absl::Duration now_;
  std::vector<PlacedWork> work_;
  std::vector<absl::Duration> free_;  // when each device has done all of its jobs
  std::vector<std::vector<Placed>> queue_;
  std::vector<std::vector<absl::Duration>> there_;  // by matrix and device: from when on
};

// Times from 0.3 to 10 ms, and guesses that are wrong by a fifth or so.
std::vector<SimulatedJob> JobsOf(const SimulatedLoad& load, size_t devices, uint32_t seed) {
  constexpr int kJobs = 2000;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> weights;
  for (size_t i = 0; i < load.matrices; ++i) weights.push_back(std::pow(i + 1.0, -load.skew));
  std::discrete_distribution<size_t> matrix(weights.begin(), weights.end());
  std::vector<SimulatedJob> jobs(kJobs);
  absl::Duration all;
  for (SimulatedJob& job : jobs) {
    job.takes = absl::Microseconds(300 * std::pow(33.0, uniform(random)));
    job.guessed = job.takes * std::exp(0.2 * normal(random));
    job.matrix = matrix(random);
    all += job.takes;
  }
  if (load.at_once) return jobs;
  const absl::Duration between = all / kJobs / static_cast<double>(devices) / load.of_capacity;
  absl::Duration time;
  for (SimulatedJob& job : jobs) {
    time += between * -std::log(1 - uniform(random));
    job.arrives = time;
  }
  return jobs;
}

TEST(PlacementSimulationTest, JobsEndAlmostAsSoonAsWithAnOracle) {
  const std::vector<SimulatedLoad> loads = {
      {.name = "one matrix, all at once", .copy = absl::Milliseconds(5), .at_once = true},
      {.name = "one matrix", .of_capacity = 1.2, .copy = absl::Milliseconds(5)},
      {.name = "a long copy", .of_capacity = 1.2, .copy = absl::Milliseconds(100)},
      {.name = "many, skewed",
       .matrices = 40,
       .skew = 1,
       .of_capacity = 1.1,
       .copy = absl::Milliseconds(20)},
      {.name = "many, at once", .matrices = 40, .copy = absl::Milliseconds(20), .at_once = true},
      {.name = "not too much", .matrices = 8, .of_capacity = 0.8, .copy = absl::Milliseconds(5)},
  };
  for (const SimulatedLoad& load : loads) {
    for (const size_t devices : {2, 4, 8}) {
      double worst = 0, holder = 0;
      for (uint32_t seed = 0; seed < 5; ++seed) {
        const std::vector<SimulatedJob> jobs = JobsOf(load, devices, seed);
        const auto ends = [&](Chooses chooses) {
          return absl::ToDoubleSeconds(Simulation(load, devices).Run(jobs, chooses));
        };
        const double oracle = ends(Chooses::kOracle);
        worst = std::max(worst, ends(Chooses::kRule) / oracle);
        holder = std::max(holder, ends(Chooses::kHolder) / oracle);
      }
      EXPECT_LE(worst, 1.1) << load.name << ", " << devices << " devices";
      RecordProperty(absl::StrCat("of_the_oracle_", devices, "_", load.name), absl::StrCat(worst));
      if (load.matrices == 1) {
        EXPECT_GT(holder, 1.5) << "the oracle gains nothing: " << load.name;
      }
    }
  }
}

}  // namespace
}  // namespace gemmd
