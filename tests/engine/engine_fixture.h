// A small engine on a host device, and what tests of it do again and again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/time/clock.h"
#include "gemm/reference.h"
#include "server/engine/engine.h"
#include "tests/engine/recorder.h"

namespace gemmd {

// The server's defaults, except these.
inline EngineOptions SmallOptions() {
  EngineOptions options;
  options.devices = "host";                  // also where there is a GPU
  options.device_memory_bytes = 64 * kMiB;   // a test can fill it
  options.staging_bytes = 4 * kMiB;          // the same
  options.staging_block_bytes = 128 * kKiB;  // a payload of some hundred KiB has many
  options.copy_threads = 2;                  // however many cores there are
  options.max_queue_wait = absl::Hours(1);   // no test but its own depends on speed
  return options;
}

// One stream, and none for quick jobs alone: whatever comes second waits.
inline EngineOptions OneStream() {
  EngineOptions options = SmallOptions();
  options.streams_per_device = 1;
  options.quick_streams = 0;
  return options;
}

inline std::vector<float> RandomFloats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

inline absl::Cord AsCord(const std::vector<float>& values) {
  return absl::Cord(absl::string_view(reinterpret_cast<const char*>(values.data()),
                                      values.size() * sizeof(float)));
}

class EngineTest : public ::testing::Test {
 protected:
  void Make(EngineOptions options = SmallOptions(), EngineObserver* observer = nullptr) {
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(options, observer);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  // m x k times k x n in f32, both operands sent.
  static JobSpec Product(int64_t m, int64_t n, int64_t k) {
    JobSpec spec;
    spec.a.shape = Shape{m, k, gemm::DType::kF32};
    spec.a.source = FromPayload{};
    spec.b.shape = Shape{k, n, gemm::DType::kF32};
    spec.b.source = FromPayload{};
    return spec;
  }

  // The same, both operands drawn on the device.
  static JobSpec DrawnProduct(int64_t m, int64_t n, int64_t k) {
    JobSpec spec = Product(m, n, k);
    spec.a.source = FromGenerator{{1}};
    spec.b.source = FromGenerator{{2}};
    return spec;
  }

  static void Send(Job& job, Role role, const std::vector<float>& values, size_t chunk) {
    absl::Cord all = AsCord(values);
    uint64_t offset = 0;
    while (!all.empty()) {
      const size_t size = std::min(chunk, all.size());
      job.Append(role, offset, all.Subcord(0, size), [] {});
      all.RemovePrefix(size);
      offset += size;
    }
  }

  // Nothing ends on device 0, and no job leaves its queue, until `function` has returned.
  void WhileNothingEnds(absl::FunctionRef<void()> function) {
    const auto holding = std::make_shared<std::promise<void>>();
    const auto go_on = std::make_shared<std::promise<void>>();
    engine_->devices()[0]->upload_stream().Notify([holding, go_on](const absl::Status&) {
      holding->set_value();
      go_on->get_future().wait();
    });
    holding->get_future().wait();
    function();
    go_on->set_value();
  }

  // All that a job can hold is back. Memory that the device still works on may take a moment.
  void ExpectNothingHeld(uint64_t device_bytes = 0) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    EngineStats stats = engine_->Stats();
    const auto held = [&] {
      stats = engine_->Stats();
      const DeviceStats& device = stats.devices[0];
      return stats.jobs.used != 0 || stats.admitted_bytes.used != 0 ||
             stats.queued_jobs.used != 0 || device.streams.used != 0 ||
             device.upload_staging_bytes.used != 0 || device.download_staging_bytes.used != 0 ||
             device.memory_bytes.used != static_cast<int64_t>(device_bytes);
    };
    while (held() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_FALSE(held()) << "jobs " << stats.jobs.used << ", admitted " << stats.admitted_bytes.used
                         << ", queued " << stats.queued_jobs.used << ", memory "
                         << stats.devices[0].memory_bytes.used << ", staging "
                         << stats.devices[0].upload_staging_bytes.used << "+"
                         << stats.devices[0].download_staging_bytes.used;
  }

  // Expects the product of a and b, which were drawn independently of each other.
  void ExpectProduct(int64_t m, int64_t n, int64_t k, const std::vector<float>& a,
                     const std::vector<float>& b, const std::vector<std::byte>& bytes) {
    ASSERT_EQ(bytes.size(), static_cast<size_t>(m * n) * sizeof(float));
    gemm::Problem problem;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    gemm::Operands operands;
    operands.a = a.data();
    operands.lda = k;
    operands.b = b.data();
    operands.ldb = n;
    std::vector<std::byte> d = bytes;
    operands.d = d.data();
    operands.ldd = n;
    const gemm::Agreement agreement =
        gemm::CompareWithReference(problem, operands, gemm::Elements::kDrawn, 2000, 1);
    EXPECT_LE(agreement.worst_ratio, 1.0);
  }

  absl::StatusOr<UploadResult> Put(const Shape& shape, const std::vector<float>& values,
                                   KeepSpec keep = {}) {
    UploadSpec spec;
    spec.shape = shape;
    spec.keep = std::move(keep);
    UploadRecorder recorder;
    auto upload = engine_->BeginUpload(spec, recorder.done());
    if (!upload.ok()) return upload.status();
    (*upload)->Start();
    (*upload)->Append(0, AsCord(values), [] {});
    (*upload)->EndOfPayload();
    return recorder.Wait();
  }

  std::unique_ptr<Engine> engine_;
};

}  // namespace gemmd
