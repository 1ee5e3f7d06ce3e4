// The engine on two host devices: operands on both, the replicas made of them, and
// where matrices are placed.
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "gemm/generate.h"
#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

class EngineDevicesTest : public EngineTest {
 protected:
  static EngineOptions TwoDevices() {
    EngineOptions options = SmallOptions();
    options.devices = "host:2";
    return options;
  }

  static gemm::GeneratorSpec Seed(uint64_t seed) {
    return {.seed = seed, .low_or_mean = -1, .high_or_stddev = 1};
  }

  static std::vector<float> Drawn(int64_t rows, int64_t cols, uint64_t seed) {
    std::vector<float> values(static_cast<size_t>(rows * cols));
    EXPECT_TRUE(gemm::GenerateHost(Seed(seed), {values.data(), gemm::DType::kF32, rows, cols,
                                                cols * int64_t{sizeof(float)}, false})
                    .ok());
    return values;
  }

  absl::StatusOr<MatrixRecord> PutDrawn(const Shape& shape, uint64_t seed, std::string device,
                                        std::string name = "") {
    UploadSpec spec;
    spec.shape = shape;
    spec.generator = Seed(seed);
    spec.device = std::move(device);
    spec.keep.name = std::move(name);
    UploadRecorder recorder;
    auto upload = engine_->BeginUpload(spec, recorder.done());
    if (!upload.ok()) return upload.status();
    (*upload)->Start();
    const absl::StatusOr<UploadResult> result = recorder.Wait();
    if (!result.ok()) return result.status();
    return result->matrix;
  }

  static JobSpec ProductOf(const std::string& a, const std::string& b) {
    JobSpec spec;
    spec.a.source = FromResident{{a, ""}};
    spec.b.source = FromResident{{b, ""}};
    return spec;
  }

  absl::StatusOr<JobResult> Multiply(const JobSpec& spec, std::vector<std::byte>* bytes = nullptr) {
    auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(spec, recorder);
    if (!job.ok()) return job.status();
    (*job)->Start();
    absl::StatusOr<JobResult> result = recorder->Wait();
    if (bytes != nullptr) *bytes = recorder->bytes();
    return result;
  }

  // Everything comes back on both devices, except these bytes.
  void ExpectHeld(std::array<int64_t, 2> memory) {
    const auto held = [&] {
      const EngineStats stats = engine_->Stats();
      for (size_t i = 0; i < 2; ++i) {
        const DeviceStats& device = stats.devices[i];
        if (device.memory_bytes.used != memory[i] || device.store_bytes.used > memory[i] ||
            device.streams.used != 0 || device.upload_staging_bytes.used != 0 ||
            device.download_staging_bytes.used != 0) {
          return false;
        }
      }
      return stats.jobs.used == 0 && stats.admitted_bytes.used == 0;
    };
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (!held() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    const EngineStats stats = engine_->Stats();
    EXPECT_TRUE(held()) << stats.devices[0].memory_bytes.used << " and "
                        << stats.devices[1].memory_bytes.used << " bytes of memory, store "
                        << stats.devices[0].store_bytes.used << " and "
                        << stats.devices[1].store_bytes.used;
  }

  ReplicaStats Replicas(size_t device) { return engine_->Stats().devices[device].replicas; }
};

constexpr gemm::DType kF32 = gemm::DType::kF32;

TEST_F(EngineDevicesTest, TheSmallerOperandIsBroughtOverAndKept) {
  Make(TwoDevices());
  const auto a = PutDrawn({70, 333, kF32}, 1, "host:0");
  const auto b = PutDrawn({333, 55, kF32}, 2, "host:1");
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  std::vector<std::byte> bytes;
  const auto first = Multiply(ProductOf(a->id, b->id), &bytes);
  ASSERT_TRUE(first.ok()) << first.status();
  ExpectProduct(70, 55, 333, Drawn(70, 333, 1), Drawn(333, 55, 2), bytes);
  EXPECT_EQ(first->report.device, "host:0");
  ASSERT_EQ(first->report.copies.size(), 1u);
  EXPECT_EQ(first->report.copies[0].role, Role::kB);
  EXPECT_EQ(first->report.copies[0].from_device, "host:1");
  EXPECT_EQ(first->report.copies[0].bytes, 333u * 55 * 4);
  EXPECT_EQ(first->report.copies[0].route, CopyRoute::kHost);
  EXPECT_FALSE(first->report.copies[0].reused);
  EXPECT_GT(first->report.phases.device_to_device, absl::ZeroDuration());

  const auto again = Multiply(ProductOf(a->id, b->id), &bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectProduct(70, 55, 333, Drawn(70, 333, 1), Drawn(333, 55, 2), bytes);
  ASSERT_EQ(again->report.copies.size(), 1u);
  EXPECT_TRUE(again->report.copies[0].reused);
  const ReplicaStats replicas = Replicas(0);
  EXPECT_EQ(replicas.begun_host, 1);
  EXPECT_EQ(replicas.reused, 1);
  EXPECT_GE(replicas.bytes, 333 * 55 * 4);
  EXPECT_EQ(engine_->Stats().matrices.used, 2);

  // The replica goes with its matrix, at once.
  ASSERT_TRUE(engine_->DeleteMatrix({.id = b->id}).ok());
  EXPECT_EQ(Replicas(0).bytes, 0);
  ASSERT_TRUE(engine_->DeleteMatrix({.id = a->id}).ok());
  ExpectHeld({0, 0});
}

TEST_F(EngineDevicesTest, EveryOperandMayLieElsewhere) {
  Make(TwoDevices());
  const int64_t m = 33, n = 27, k = 41;
  const auto a = PutDrawn({m, k, kF32}, 1, "host:0");
  const auto b = PutDrawn({k, n, kF32}, 2, "host:1");
  const auto c = PutDrawn({m, n, kF32}, 3, "host:1");
  const auto bias = PutDrawn({1, n, kF32}, 4, "host:0");
  ASSERT_TRUE(a.ok() && b.ok() && c.ok() && bias.ok());
  JobSpec spec = ProductOf(a->id, b->id);
  spec.beta = 0.5;
  spec.c = OperandSpec{.source = FromResident{{c->id, ""}}};
  spec.bias = OperandSpec{.source = FromResident{{bias->id, ""}}};
  std::vector<std::byte> apart, together;
  const auto result = Multiply(spec, &apart);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.device, "host:1");
  EXPECT_EQ(result->report.copies.size(), 2u);

  const auto here = PutDrawn({m, k, kF32}, 1, "host:1");
  const auto bias_here = PutDrawn({1, n, kF32}, 4, "host:1");
  ASSERT_TRUE(here.ok() && bias_here.ok());
  spec.a.source = FromResident{{here->id, ""}};
  spec.bias->source = FromResident{{bias_here->id, ""}};
  const auto expected = Multiply(spec, &together);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(expected->report.copies.empty());
  EXPECT_EQ(apart, together);
}

// Large against the staging, so that the copy takes many pieces; the memory that it
// comes to holds something else from before.
TEST_F(EngineDevicesTest, AReplicaIsNeverReadBeforeItIsComplete) {
  Make(TwoDevices());
  const int64_t m = 2000, k = 1000, n = 1001;
  const auto a = PutDrawn({m, k, kF32}, 100, "host:0");
  ASSERT_TRUE(a.ok()) << a.status();
  for (uint64_t run = 0; run < 10; ++run) {
    const auto b = PutDrawn({k, n, kF32}, run, "host:1");
    ASSERT_TRUE(b.ok()) << b.status();
    // Two jobs at once wait for one copy.
    std::vector<std::byte> bytes[2];
    std::thread other([&] { (void)Multiply(ProductOf(a->id, b->id), &bytes[1]); });
    const auto result = Multiply(ProductOf(a->id, b->id), &bytes[0]);
    other.join();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(bytes[0], bytes[1]);
    ExpectProduct(m, n, k, Drawn(m, k, 100), Drawn(k, n, run), bytes[0]);
    ASSERT_TRUE(engine_->DeleteMatrix({.id = b->id}).ok());
  }
  EXPECT_EQ(Replicas(0).bytes, 0);
  // A moved to the device of B where the other job was in its way.
  ASSERT_TRUE(engine_->DeleteMatrix({.id = a->id}).ok());
  EXPECT_EQ(Replicas(1).bytes, 0);
}

TEST_F(EngineDevicesTest, ACancelledJobGivesItsCopyUp) {
  constexpr int kJobs = 40;
  EngineOptions options = TwoDevices();
  // Copies and results of cancelled jobs keep their memory while a device still uses it. There is
  // room for those of all jobs, so that a device that falls behind refuses none.
  options.device_memory_bytes = kJobs * 10 * kMiB;
  Make(options);
  const auto a = PutDrawn({1001, 1000, kF32}, 1, "host:0");
  const auto b = PutDrawn({1000, 1000, kF32}, 2, "host:1");
  ASSERT_TRUE(a.ok() && b.ok());
  const int64_t bytes_a = 1001 * 1000 * 4 + 512 - (1001 * 1000 * 4) % 512;
  const int64_t bytes_b = 1000 * 1000 * 4 + 512 - (1000 * 1000 * 4) % 512;
  for (int run = 0; run < kJobs; ++run) {
    auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(ProductOf(a->id, b->id), recorder);
    ASSERT_TRUE(job.ok()) << job.status();
    // One in eight is released before it starts.
    if (run % 8 != 0) (*job)->Start();
    absl::SleepFor(absl::Microseconds(50 * (run % 8)));
    (*job)->Cancel(absl::CancelledError("by the test"));
    const absl::Status status = recorder->Wait().status();
    EXPECT_TRUE(absl::IsCancelled(status) || status.ok()) << status;
    job->reset();
  }
  // A replica that was complete by then may stay. A job goes to host:1, and A with it, where the
  // streams of host:0 are still busy with cancelled ones.
  const int64_t copy_of_b = Replicas(0).bytes > 0 ? bytes_b : 0;
  const int64_t copy_of_a = Replicas(1).bytes > 0 ? bytes_a : 0;
  ExpectHeld({bytes_a + copy_of_b, bytes_b + copy_of_a});
  std::vector<std::byte> bytes;
  ASSERT_TRUE(Multiply(ProductOf(a->id, b->id), &bytes).ok());
  ExpectProduct(1001, 1000, 1000, Drawn(1001, 1000, 1), Drawn(1000, 1000, 2), bytes);
  ASSERT_TRUE(engine_->DeleteMatrix({.id = a->id}).ok());
  ASSERT_TRUE(engine_->DeleteMatrix({.id = b->id}).ok());
  ExpectHeld({0, 0});
}

TEST_F(EngineDevicesTest, ReplicasMakeWayWhereTheStoreIsFull) {
  EngineOptions options = TwoDevices();
  options.store_bytes = 3 * kMiB;
  Make(options);
  const auto a = PutDrawn({1024, 512, kF32}, 1, "host:0");  // 2 MiB
  const auto b = PutDrawn({512, 512, kF32}, 2, "host:1");   // 1 MiB
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_TRUE(Multiply(ProductOf(a->id, b->id)).ok());
  EXPECT_EQ(Replicas(0).bytes, 512 * 512 * 4);
  EXPECT_EQ(engine_->Stats().devices[0].store_bytes.used, 3 << 20);
  const auto more = PutDrawn({512, 512, kF32}, 3, "host:0");
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(Replicas(0).bytes, 0);
  EXPECT_EQ(Replicas(0).dropped, 1);
  // Now only the larger one could move, and that does not fit either.
  const auto full = Multiply(ProductOf(a->id, b->id));
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->report.device, "host:1");
  const auto last = PutDrawn({512, 512, kF32}, 3, "host:1");
  ASSERT_TRUE(last.ok()) << last.status();
  const auto refused = Multiply(ProductOf(a->id, b->id)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("its copy from host:"));
}

TEST_F(EngineDevicesTest, ReplicasMakeWayWhereAJobNeedsTheMemory) {
  EngineOptions options = TwoDevices();
  options.device_memory_bytes = 8 * kMiB;
  options.store_bytes = 8 * kMiB;
  Make(options);
  const auto a = PutDrawn({1024, 512, kF32}, 1, "host:0");  // 2 MiB
  const auto b = PutDrawn({512, 512, kF32}, 2, "host:1");   // 1 MiB
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_TRUE(Multiply(ProductOf(a->id, b->id)).ok());
  EXPECT_EQ(Replicas(0).bytes, 1 << 20);
  // Operand and result take all that A leaves.
  JobSpec large;
  large.a.source = FromResident{{a->id, ""}};
  large.b.shape = Shape{512, 1024, kF32};
  large.b.source = FromGenerator{{3}};
  const auto result = Multiply(large);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Replicas(0).bytes, 0);
  EXPECT_EQ(Replicas(0).dropped, 1);
  ExpectHeld({2 << 20, 1 << 20});
}

TEST_F(EngineDevicesTest, ReleasedOperandsTakeTheirReplicasWithThem) {
  Make(TwoDevices());
  const auto a = PutDrawn({64, 80, kF32}, 1, "host:0");
  const auto b = PutDrawn({80, 60, kF32}, 2, "host:1");
  ASSERT_TRUE(a.ok() && b.ok());
  JobSpec spec = ProductOf(a->id, b->id);
  std::get<FromResident>(spec.a.source).release = true;
  std::get<FromResident>(spec.b.source).release = true;
  std::vector<std::byte> bytes;
  const auto result = Multiply(spec, &bytes);
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectProduct(64, 60, 80, Drawn(64, 80, 1), Drawn(80, 60, 2), bytes);
  EXPECT_EQ(engine_->Stats().matrices.used, 0);
  ExpectHeld({0, 0});
}

// A job multiplies the matrix that the name has at its admission.
TEST_F(EngineDevicesTest, DeletesAndReplacementsAtTheSameTimeDoNoHarm) {
  Make(TwoDevices());
  constexpr int64_t kSize = 96;
  const auto a = PutDrawn({kSize + 1, kSize, kF32}, 100, "host:0");
  ASSERT_TRUE(a.ok());
  // The results that there may be, by their first elements.
  std::map<std::vector<std::byte>, int> expected;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const auto b = PutDrawn({kSize, kSize, kF32}, seed, "host:0");
    ASSERT_TRUE(b.ok());
    std::vector<std::byte> bytes;
    ASSERT_TRUE(Multiply(ProductOf(a->id, b->id), &bytes).ok());
    expected.emplace(std::move(bytes), 0);
    ASSERT_TRUE(engine_->DeleteMatrix({.id = b->id}).ok());
  }
  ASSERT_EQ(expected.size(), 4u);
  std::atomic<bool> stop{false};
  std::thread replacer([&] {
    for (uint64_t run = 0; !stop; ++run) {
      EXPECT_TRUE(PutDrawn({kSize, kSize, kF32}, run % 4, "host:1", "b").ok());
      absl::SleepFor(absl::Microseconds(200));
      EXPECT_TRUE(engine_->DeleteMatrix({.name = "b"}).ok());
    }
  });
  std::atomic<int> good{0}, gone{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t) {
    callers.emplace_back([&] {
      JobSpec spec = ProductOf(a->id, "");
      spec.b.source = FromResident{{"", "b"}};
      const absl::Time limit = absl::Now() + absl::Seconds(60);
      for (int mine = 0; mine < 100 && absl::Now() < limit;) {
        std::vector<std::byte> bytes;
        const auto result = Multiply(spec, &bytes);
        if (result.ok()) {
          ++good;
          ++mine;
          wrong += expected.count(bytes) == 0;
        } else {
          gone += absl::IsNotFound(result.status());
          wrong += !absl::IsNotFound(result.status());
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  stop = true;
  replacer.join();
  EXPECT_EQ(wrong.load(), 0) << good << " products, " << gone << " times NOT_FOUND";
  EXPECT_EQ(good.load(), 300);
  ASSERT_TRUE(engine_->DeleteMatrix({.id = a->id}).ok());
  ExpectHeld({0, 0});
}

TEST_F(EngineDevicesTest, ABusyDeviceSharesItsJobsWithTheOtherHolder) {
  Make(TwoDevices());
  const auto a = PutDrawn({400, 400, kF32}, 1, "host:0");
  const auto b = PutDrawn({400, 400, kF32}, 2, "host:1");
  ASSERT_TRUE(a.ok() && b.ok());
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      JobSpec spec = ProductOf(a->id, b->id);
      spec.kernel.name = "host_reference";
      for (int run = 0; run < 10; ++run) failed += !Multiply(spec).ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_GT(engine_->Stats().devices[0].jobs_begun, 5);
  EXPECT_GT(engine_->Stats().devices[1].jobs_begun, 5);
}

TEST_F(EngineDevicesTest, MatricesOfAFolderLieTogetherWhileThereIsRoom) {
  Make(TwoDevices());
  const Shape shape{512, 512, kF32};  // 1 MiB of 64
  const auto first = PutDrawn(shape, 1, "", "model/w1");
  const auto second = PutDrawn(shape, 2, "", "model/w2");
  const auto other = PutDrawn(shape, 3, "", "other/w1");
  const auto plain = PutDrawn(shape, 4, "", "");
  ASSERT_TRUE(first.ok() && second.ok() && other.ok() && plain.ok());
  EXPECT_EQ(first->device, second->device);
  EXPECT_NE(first->device, other->device);
  EXPECT_EQ(plain->device, other->device);
  // Past half the room of the emptiest device the load is spread.
  std::map<std::string, int> devices;
  for (int i = 0; i < 50; ++i) {
    const auto put = PutDrawn(shape, 1, "", "model/x" + std::to_string(i));
    ASSERT_TRUE(put.ok()) << put.status();
    ++devices[put->device];
  }
  EXPECT_GT(devices["host:0"], 10);
  EXPECT_GT(devices["host:1"], 10);
}

// A small result that is kept beside a job must not halve the memory when that ends.
TEST_F(EngineDevicesTest, WhatIsKeptDoesNotSplitTheMemory) {
  Make();
  Arena& memory = engine_->devices()[0]->memory();
  auto recorder = std::make_shared<JobRecorder>();
  auto running = engine_->Admit(Product(2000, 2000, 1000), recorder);  // waits for its payload
  ASSERT_TRUE(running.ok());
  (*running)->Start();
  JobSpec kept = DrawnProduct(1, 1, 1);
  kept.stream_result = false;
  kept.keep_result = KeepSpec{"tiny", std::nullopt};
  ASSERT_TRUE(Multiply(kept).ok());
  kept.c = OperandSpec{.shape = Shape{1, 1, kF32}, .source = FromGenerator{{3}}};
  kept.beta = 1;
  kept.keep_result->name = "in_place_of_c";
  ASSERT_TRUE(Multiply(kept).ok());
  ASSERT_TRUE(Put({1, 1, kF32}, {1.0f}, {"put", std::nullopt}).ok());
  (*running)->Cancel(absl::CancelledError("by the test"));
  running->reset();
  ExpectNothingHeld(3 * Arena::kAlignment);
  EXPECT_EQ(memory.largest_free(), memory.capacity() - 3 * Arena::kAlignment);
}

}  // namespace
}  // namespace gemmd
