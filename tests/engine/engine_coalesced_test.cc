// Small jobs that wait together run in one launch: their results, and what each keeps for itself.
// On a host device, and on a GPU where there is one.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/engine/device/device_kinds.h"
#include "server/engine/job/small_payload.h"
#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Le;

constexpr int kMost = 8;

// Numbers of about 1 in size, of any sign, as stored.
std::string Elements(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes;
  for (int64_t i = 0; i < shape.rows * shape.cols; ++i) {
    const auto value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 512.0f;
    if (shape.type == gemm::DType::kF32) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else if (shape.type == gemm::DType::kE4M3) {  // the exponents of 0.125 to 1
      bytes.push_back(static_cast<char>((random() & 0x80) | (0x20 + random() % 0x18)));
    } else {  // f16: the same
      const auto half = static_cast<uint16_t>((random() & 0x8000) | (0x3000 + random() % 0xc00));
      bytes.append(reinterpret_cast<const char*>(&half), sizeof(half));
    }
  }
  return bytes;
}

// A clock that goes on as it does, and calls a function once, beside the read of it that comes
// after so many others. The read waits for the function, but not for long. If the reader holds a
// lock that the function needs, the function ends when the lock is free.
class InterruptingClock {
 public:
  InterruptingClock() { steady_clock_source = &Read; }
  ~InterruptingClock() {
    Disarm();
    steady_clock_source = &SystemSteadyNow;
  }
  InterruptingClock(const InterruptingClock&) = delete;

  void Arm(int reads, std::function<void()> function) {
    MutexLock lock(mutex_);
    function_ = std::move(function);
    reads_left_ = reads;
  }
  void Disarm() {
    std::thread caller;
    {
      MutexLock lock(mutex_);
      function_ = nullptr;
      caller.swap(caller_);
    }
    if (caller.joinable()) caller.join();
  }

 private:
  static absl::Time Read() {
    if (reads_left_.fetch_sub(1) == 0) Call();
    return SystemSteadyNow();
  }
  static void Call() {
    const auto done = std::make_shared<std::promise<void>>();
    std::future<void> ended = done->get_future();
    {
      MutexLock lock(mutex_);
      if (function_ == nullptr) return;
      caller_ = std::thread([function = std::exchange(function_, nullptr), done] {
        function();
        done->set_value();
      });
    }
    ended.wait_for(std::chrono::milliseconds(10));
  }

  static inline std::atomic<int64_t> reads_left_ = -1;
  static inline Mutex mutex_;
  static inline std::function<void()> function_ ABSL_GUARDED_BY(mutex_);
  static inline std::thread caller_ ABSL_GUARDED_BY(mutex_);
};

class CoalescedTest : public EngineTest, public ::testing::WithParamInterface<const char*> {
 protected:
  struct One {
    JobSpec spec;
    uint32_t seed = 0;
    std::shared_ptr<JobRecorder> recorder;
    std::shared_ptr<Job> job;
  };

  void SetUp() override {
    const absl::Status present = ParseDeviceSpec(GetParam(), DeviceKinds()).status();
    if (absl::IsFailedPrecondition(present)) GTEST_SKIP() << "skipped: " << present.message();
    Make(Options());
  }

  // One stream, so that all but the first job wait.
  static EngineOptions Options() {
    EngineOptions options = OneStream();
    options.devices = GetParam();
    options.max_coalesced_jobs = kMost;
    return options;
  }

  // Whether the condition comes true.
  static bool Await(const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!condition() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    return condition();
  }

  static int64_t WithBytes(const std::vector<One>& all) {
    return std::count_if(all.begin(), all.end(),
                         [](const One& one) { return !one.recorder->bytes().empty(); });
  }

  One Begin(const JobSpec& spec, uint32_t seed, size_t hold = 0) {
    One one{.spec = spec, .seed = seed, .recorder = std::make_shared<JobRecorder>(hold)};
    auto job = engine_->Admit(spec, one.recorder);
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return one;
    one.job = *std::move(job);
    one.job->Start();
    SendAll(one);
    return one;
  }

  static void SendAll(const One& one) {
    const std::pair<Role, const OperandSpec*> operands[] = {
        {Role::kA, &one.spec.a},
        {Role::kB, &one.spec.b},
        {Role::kC, one.spec.c ? &*one.spec.c : nullptr},
        {Role::kBias, one.spec.bias ? &*one.spec.bias : nullptr},
        {Role::kScalesA, one.spec.scales_a ? &*one.spec.scales_a : nullptr},
        {Role::kScalesB, one.spec.scales_b ? &*one.spec.scales_b : nullptr}};
    for (const auto& [role, operand] : operands) {
      if (operand == nullptr || !std::holds_alternative<FromPayload>(operand->source)) continue;
      const std::string bytes =
          Elements(*operand->shape, one.seed * kRoleCount + static_cast<uint32_t>(role));
      one.job->Append(role, 0, absl::Cord(bytes), [] {});
    }
  }

  std::vector<One> BeginTogether(const std::vector<JobSpec>& specs) {
    std::vector<One> all;
    WhileNothingEnds([&] {
      for (const JobSpec& spec : specs) all.push_back(Begin(spec, all.size() + 1));
    });
    return all;
  }

  // How many jobs were in the launch of each.
  static std::vector<int> LaunchesOf(const std::vector<One>& all) {
    std::vector<int> jobs;
    for (const One& one : all) {
      const absl::StatusOr<JobResult> result = one.recorder->Wait();
      EXPECT_TRUE(result.ok()) << result.status();
      jobs.push_back(result.ok() ? result->report.jobs_in_launch : 0);
    }
    return jobs;
  }

  // Each product again, by itself: the same bits, by the same kernel with the same parameters.
  void ExpectAsAlone(const std::vector<One>& all) {
    for (const One& one : all) {
      const absl::StatusOr<JobResult> together = one.recorder->Wait();
      ASSERT_TRUE(together.ok()) << together.status();
      const One alone = Begin(one.spec, one.seed);
      const absl::StatusOr<JobResult> result = alone.recorder->Wait();
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->report.jobs_in_launch, 1);
      EXPECT_EQ(result->report.kernel, together->report.kernel);
      EXPECT_EQ(result->report.params, together->report.params);
      EXPECT_EQ(alone.recorder->bytes(), one.recorder->bytes()) << "job " << one.seed;
      EXPECT_FALSE(one.recorder->misused());
    }
  }

  static int Largest(const std::vector<int>& launches) {
    return *std::max_element(launches.begin(), launches.end());
  }
};

INSTANTIATE_TEST_SUITE_P(Host, CoalescedTest, ::testing::Values("host"));
INSTANTIATE_TEST_SUITE_P(Gpu, CoalescedTest, ::testing::Values("cuda:0"));

TEST_P(CoalescedTest, JobsThatWaitTogetherShareALaunchAndKeepTheirBits) {
  const std::vector<One> all = BeginTogether(std::vector<JobSpec>(20, Product(16, 24, 32)));
  const std::vector<int> launches = LaunchesOf(all);
  EXPECT_EQ(Largest(launches), kMost);
  EXPECT_THAT(launches, Each(Le(kMost)));
  std::map<int, int> jobs;  // by the size of their launch
  for (const int size : launches) ++jobs[size];
  for (const auto& [size, count] : jobs) EXPECT_EQ(count % size, 0) << "launches of " << size;
  EXPECT_GE(all.back().recorder->Wait()->report.phases.kernel, absl::ZeroDuration());
  for (const One& one : all) {
    const JobReport report = one.recorder->Wait()->report;
    EXPECT_EQ(report.batch, 1);
    EXPECT_EQ(report.flops, 2.0 * 16 * 24 * 32);
    EXPECT_GT(report.device_time, absl::ZeroDuration());
  }
  ExpectAsAlone(all);
  ExpectNothingHeld();
}

// Lines whose bytes are no multiple of 16, every operand, and every layout.
TEST_P(CoalescedTest, EveryFormOfAProductKeepsItsBits) {
  for (const gemm::DType type : {gemm::DType::kF32, gemm::DType::kF16}) {
    for (int form = 0; form < 16; ++form) {
      SCOPED_TRACE(absl::StrCat("form ", form, " of ", gemm::Name(type)));
      // Nothing is measured of this kernel: on a busy machine a job may seem too long to share its
      // launch.
      Make(Options());
      constexpr int64_t kM = 13, kN = 7, kK = 19;
      JobSpec spec;
      spec.transpose_a = (form & 1) != 0;
      spec.transpose_b = (form & 2) != 0;
      spec.output_column_major = (form & 4) != 0;
      const auto sent = [type](int64_t rows, int64_t cols, bool column_major) {
        return OperandSpec{Shape{rows, cols, type, column_major}, FromPayload{}};
      };
      spec.a = spec.transpose_a ? sent(kK, kM, false) : sent(kM, kK, (form & 8) != 0);
      spec.b = spec.transpose_b ? sent(kN, kK, false) : sent(kK, kN, false);
      if ((form & 8) != 0) {
        spec.c = sent(kM, kN, spec.output_column_major);
        spec.beta = 0.5;
        spec.bias = sent(1, kN, false);
        spec.activation = gemm::Activation::kRelu;
        spec.alpha = 2;
      }
      const std::vector<One> all = BeginTogether(std::vector<JobSpec>(5, spec));
      EXPECT_GE(Largest(LaunchesOf(all)), 4);
      ExpectAsAlone(all);
    }
  }
  ExpectNothingHeld();
}

TEST_P(CoalescedTest, AResidentOperandIsShared) {
  const std::vector<float> weights = RandomFloats(32 * 24, 9);
  ASSERT_TRUE(Put({32, 24, gemm::DType::kF32}, weights, {"w", std::nullopt}).ok());
  ASSERT_TRUE(Put({32, 24, gemm::DType::kF32}, weights, {"v", std::nullopt}).ok());
  JobSpec spec = Product(16, 24, 32);
  spec.b = OperandSpec{std::nullopt, FromResident{{"", "w"}}};
  JobSpec other = spec;
  other.b = OperandSpec{std::nullopt, FromResident{{"", "v"}}};
  const std::vector<One> all = BeginTogether({spec, spec, spec, spec, other, other, other});
  const std::vector<int> launches = LaunchesOf(all);
  EXPECT_GE(Largest(launches), 3);
  EXPECT_THAT(launches, Each(Le(4))) << "another matrix is not shared, whatever it holds";
  ExpectAsAlone(all);
  for (const char* name : {"w", "v"}) ASSERT_TRUE(engine_->DeleteMatrix({.name = name}).ok());
  ExpectNothingHeld();
}

TEST_P(CoalescedTest, WhatIsNotAlikeRunsByItself) {
  const JobSpec plain = Product(16, 16, 16);
  std::vector<JobSpec> specs = {plain, plain};
  specs.push_back(plain);
  specs.back().alpha = 2;
  specs.push_back(plain);
  specs.back().transpose_b = true;
  specs.push_back(plain);
  specs.back().activation = gemm::Activation::kRelu;
  specs.push_back(plain);
  specs.back().output_type = gemm::DType::kF32;
  specs.back().output_column_major = true;
  specs.push_back(Product(16, 16, 17));
  specs.push_back(plain);
  specs.back().batch = 2;
  specs.back().a.shape->rows = 32;
  specs.back().b.shape->rows = 32;
  specs.push_back(plain);
  specs.back().keep_result = KeepSpec{"kept"};
  specs.push_back(plain);
  specs.back().verify = Verify::kAlways;
  specs.push_back(DrawnProduct(16, 16, 16));
  // The first may not wait.
  const std::vector<One> all = BeginTogether(specs);
  const std::vector<int> launches = LaunchesOf(all);
  EXPECT_THAT(std::vector<int>(launches.begin() + 2, launches.end()), Each(1));
  ASSERT_TRUE(engine_->DeleteMatrix({.name = "kept"}).ok());
  ExpectNothingHeld();
}

// Each with scales of its own.
TEST_P(CoalescedTest, ProductsWithBlockScalesRunByThemselves) {
  const auto sent = [](int64_t rows, int64_t cols, gemm::DType type) {
    return OperandSpec{Shape{rows, cols, type}, FromPayload{}};
  };
  JobSpec spec;
  spec.a = sent(16, 160, gemm::DType::kE4M3);
  spec.b = sent(160, 24, gemm::DType::kE4M3);
  spec.scales_a = sent(16, 2, gemm::DType::kF32);
  spec.scales_b = sent(2, 1, gemm::DType::kF32);
  const RankingQuestion question{.m = 16,
                                 .n = 24,
                                 .k = 160,
                                 .a = gemm::DType::kE4M3,
                                 .b = gemm::DType::kE4M3,
                                 .block_scales = true};
  if (const auto ranking = engine_->RankKernels(question); !ranking.ok()) {
    GTEST_SKIP() << "skipped: " << ranking.status().message();
  }
  const std::vector<One> all = BeginTogether({spec, spec, spec, spec});
  EXPECT_THAT(LaunchesOf(all), Each(1));
  ExpectAsAlone(all);
  EXPECT_NE(all[1].recorder->bytes(), all[2].recorder->bytes());
  ExpectNothingHeld();
}

TEST_P(CoalescedTest, OneThatIsCancelledOrLateLeavesTheOthersAlone) {
  std::vector<One> all;
  WhileNothingEnds([&] {
    const JobSpec spec = Product(16, 16, 16);
    all.push_back(Begin(spec, 0));
    // The first that waits, whose time nobody compares with the queue's.
    JobSpec late = spec;
    late.deadline = SteadyNow() + absl::Milliseconds(300);
    all.push_back(Begin(late, 1));
    for (uint32_t i = 2; i < 7; ++i) all.push_back(Begin(spec, i));
    all[3].job->Cancel(absl::CancelledError("by the test"));
    absl::SleepFor(absl::Milliseconds(400));
  });
  const absl::Status late = all[1].recorder->Wait().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_TRUE(absl::IsCancelled(all[3].recorder->Wait().status()));
  all.erase(all.begin() + 3);
  all.erase(all.begin() + 1);
  EXPECT_GE(Largest(LaunchesOf(all)), 3);
  ExpectAsAlone(all);
  ExpectNothingHeld();
}

// Also after it has left the queue, and before it is in the launch.
TEST_P(CoalescedTest, OneThatIsCancelledAtAnyMomentOfItsStartLeavesTheOthersAlone) {
  constexpr int kMoments = 24;  // reads of the clock; the jobs have ended by then
  int cancelled = 0;
  for (int moment = 0; moment < kMoments; ++moment) {
    SCOPED_TRACE(absl::StrCat("at read ", moment));
    InterruptingClock clock;
    Make(Options());
    std::vector<One> all;
    WhileNothingEnds([&] {
      for (uint32_t i = 0; i < 4; ++i) all.push_back(Begin(Product(16, 16, 16), i));
      // The first one has the stream: this one is the first of those that wait for it.
      clock.Arm(moment, [job = all[1].job] { job->Cancel(absl::CancelledError("by the test")); });
    });
    for (const size_t i : {0, 2, 3}) {
      const absl::Status status = all[i].recorder->Wait().status();
      EXPECT_TRUE(status.ok()) << status;
    }
    const absl::Status status = all[1].recorder->Wait().status();
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
    cancelled += absl::IsCancelled(status) ? 1 : 0;
    clock.Disarm();
    all.erase(all.begin() + 1);
    ExpectAsAlone(all);
    ExpectNothingHeld();
  }
  EXPECT_GE(cancelled, 3);
}

// A receiver starts with two blocks, and these keep theirs.
TEST_P(CoalescedTest, AReceiverThatHoldsItsShareGetsTheRestLater) {
  JobSpec slow = Product(16, 16, 16);
  slow.receiver = NewReceiver();
  const JobSpec prompt = Product(16, 16, 16);
  std::vector<One> held, others;
  WhileNothingEnds([&] {
    others.push_back(Begin(prompt, 1));
    for (uint32_t i = 2; i < 8; ++i) held.push_back(Begin(slow, i, /*hold=*/1));
    others.push_back(Begin(prompt, 8));
  });
  EXPECT_GE(Largest(LaunchesOf(others)), 7);
  // Two have a block, whichever came first. The launch has let its own go, so the rest wait.
  const int64_t two = 2 * static_cast<int64_t>(Options().staging_block_bytes);
  ASSERT_TRUE(Await([&] {
    return WithBytes(held) == 2 && engine_->Stats().devices[0].download_staging_bytes.used == two;
  }));
  for (const One& one : held) one.recorder->Release();
  for (const One& one : held) EXPECT_TRUE(one.recorder->Wait().ok());
  // They wait in the jobs' own device memory, which is bounded.
  EXPECT_TRUE(std::any_of(held.begin(), held.end(), [](const One& one) {
    return one.recorder->Wait()->report.phases.device_to_host > absl::ZeroDuration();
  }));
  ExpectAsAlone(held);
  ExpectAsAlone(others);
  ExpectNothingHeld();
}

TEST_P(CoalescedTest, OneThatEndsWhileItWaitsForItsReceiversBlockHoldsNothing) {
  JobSpec slow = Product(16, 16, 16);
  slow.receiver = NewReceiver();
  std::vector<One> held;
  WhileNothingEnds([&] {
    for (uint32_t i = 0; i < 7; ++i) held.push_back(Begin(slow, i, /*hold=*/1));
  });
  // Two have a block, and give it to their recorders.
  ASSERT_TRUE(Await([&] { return WithBytes(held) >= 2; }));
  ASSERT_TRUE(Await([&] { return engine_->Stats().devices[0].streams.used == 0; }));
  for (const One& one : held) one.job->Cancel(absl::CancelledError("by the test"));
  for (const One& one : held) EXPECT_FALSE(one.recorder->Wait().ok());
  Await([&] { return engine_->Stats().jobs.used == 0; });
  EXPECT_EQ(engine_->Stats().jobs.used, 0) << "though the recorders keep their blocks";
  EXPECT_EQ(engine_->Stats().admitted_bytes.used, 0);
  std::vector<std::weak_ptr<Job>> jobs;
  for (One& one : held) jobs.push_back(std::exchange(one.job, nullptr));
  const auto gone = [&] {
    return std::count_if(jobs.begin(), jobs.end(), [](const auto& job) { return job.expired(); });
  };
  EXPECT_TRUE(Await([&] { return gone() >= 5; })) << "nor do the others, with their results";
  for (const One& one : held) one.recorder->Release();
  ExpectNothingHeld();
}

// Bytes as they come: parts that end in the middle of a line, staged already or not.
TEST(SmallPayloadTest, CopiesALineAtATime) {
  const Shape a{.rows = 1, .cols = 4, .type = gemm::DType::kS8};
  const Shape b_shape{.rows = 3, .cols = 4, .type = gemm::DType::kS8};
  const StagedLayout dense = DenseLayout({&a, &b_shape});
  const StagedLayout pitched = PitchedLayout({&a, &b_shape});
  EXPECT_EQ(dense[Role::kB].offset, 4u);
  EXPECT_EQ(pitched[Role::kB].offset, Arena::kAlignment);
  EXPECT_EQ(pitched[Role::kB].pitch_bytes, 16);
  for (const auto& [layout, staged] : {std::pair{dense, false}, {dense, true}, {pitched, true}}) {
    std::string memory(2048, '.');
    StagingPool pool(reinterpret_cast<std::byte*>(memory.data()), 1024, 2);
    SmallPayload payload(layout);
    absl::Cord b = absl::MakeCordFromExternal("bbb", [] {});
    b.Append(absl::MakeCordFromExternal("ccccddd", [] {}));
    b.Append(absl::MakeCordFromExternal("ee", [] {}));
    ASSERT_TRUE(payload.Append(Role::kA, 0, absl::Cord("aaaa")).ok());
    ASSERT_TRUE(payload.Append(Role::kB, 0, b).ok());
    if (staged) payload.Stage(pool.TryAcquire());
    std::string lines(20, '-');
    payload.CopyTo(Role::kB, 4, 8, reinterpret_cast<std::byte*>(lines.data()));
    EXPECT_EQ(lines, "bbbc----cccd----ddee");
    std::string dense(12, '-');
    payload.CopyTo(Role::kB, 12, 12, reinterpret_cast<std::byte*>(dense.data()));
    EXPECT_EQ(dense, "bbbccccdddee");
  }
}

TEST_P(CoalescedTest, WithoutStagingOrMemoryForAllEachRunsByItself) {
  // Two of these do not fit in one block.
  const JobSpec wide = Product(16, 16, 1000);
  std::vector<One> all = BeginTogether(std::vector<JobSpec>(4, wide));
  EXPECT_THAT(LaunchesOf(all), Each(1));
  ExpectAsAlone(all);
  std::vector<DeviceBuffer> taken;
  WhileNothingEnds([&] {
    all.clear();
    for (uint32_t i = 0; i < 4; ++i) all.push_back(Begin(Product(16, 16, 16), i));
    Arena& memory = engine_->devices()[0]->memory();
    while (memory.largest_free() > 0) taken.push_back(*memory.Allocate(memory.largest_free()));
  });
  EXPECT_THAT(LaunchesOf(all), Each(1));
  taken.clear();
  ExpectAsAlone(all);
  ExpectNothingHeld();
}

TEST_P(CoalescedTest, TheFlagTurnsItOff) {
  EngineOptions options = Options();
  options.max_coalesced_jobs = 1;
  Make(options);
  EXPECT_THAT(LaunchesOf(BeginTogether(std::vector<JobSpec>(6, Product(16, 16, 16)))), Each(1));
}

TEST_P(CoalescedTest, AnEngineThatEndsGivesUpThoseUnderWay) {
  std::vector<One> all;
  WhileNothingEnds([&] {
    for (uint32_t i = 0; i < 12; ++i) all.push_back(Begin(Product(16, 16, 16), i));
  });
  for (One& one : all) one.job.reset();
  engine_.reset();
  for (const One& one : all) {
    const absl::Status ended = one.recorder->Wait(absl::Seconds(1)).status();
    EXPECT_FALSE(absl::IsDeadlineExceeded(ended)) << ended;
  }
}

}  // namespace
}  // namespace gemmd
