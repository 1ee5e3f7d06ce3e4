// An engine on two host devices that fail when the test says so, and callers of it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/engine/engine.h"
#include "tests/base/test_clock.h"
#include "tests/engine/engine_fixture.h"
#include "tests/engine/faulty_device.h"

namespace gemmd {

// A job that was begun, or refused.
struct Attempt {
  absl::Status refused;
  std::shared_ptr<JobRecorder> recorder;
  std::shared_ptr<Job> job;
  const std::vector<float>* expected = nullptr;  // the whole product
};

class FaultTest : public EngineTest {
 protected:
  FaultTest() { FaultyDevice::peers = false; }

  // Far more than anything takes that is not stuck, on a busy machine too.
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  static EngineOptions TwoFaultyDevices() {
    static const bool added = [] {
      AddFaultyDeviceKinds();
      return true;
    }();
    EngineOptions options = OneStream();    // what comes behind a job that hangs waits
    options.unnamed_ttl = absl::Hours(24);  // longer than the clock jumps
    EXPECT_TRUE(added);
    options.devices = "faulty:2";
    options.device_memory_bytes = 32 * kMiB;
    // Passes only when the test sets the clock forward.
    options.job_timeout = absl::Hours(1);
    // Nor is a queue long in which nothing moved while the clock was set forward.
    options.max_queue_wait = absl::Hours(24 * 365);
    return options;
  }

  ~FaultTest() override { EndEngine(); }

  // Whatever hangs.
  void EndEngine() {
    if (engine_ == nullptr) return;
    for (size_t i = 0; i < engine_->devices().size(); ++i) device(i).Release();
    engine_.reset();
  }

  FaultyDevice& device(size_t i) { return static_cast<FaultyDevice&>(*engine_->devices()[i]); }
  static std::string Name(size_t i) { return "host:" + std::to_string(i); }
  DeviceStats StatsOf(size_t i) { return engine_->Stats().devices[i]; }

  // Hung work on device 0 has hung for longer than --job-timeout and any product's own time. Waits
  // until the device is lost for it, whose guard has a short time more by then.
  void LetHangsTimeOut() {
    clock_.Jump(absl::Hours(3));
    Await([&] {
      if (!StatsOf(0).health.ok()) return true;
      // Twice the time that is left, once the timer's thread has begun it.
      clock_.Jump(absl::Seconds(10));
      absl::SleepFor(absl::Milliseconds(10));
      return false;
    });
  }

  // A matrix of small whole numbers: every product of a few hundred is exact in f32.
  static const std::vector<float>& Whole(int64_t rows, int64_t cols, uint32_t seed) {
    static auto* const made =
        new std::map<std::tuple<int64_t, int64_t, uint32_t>, std::vector<float>>;
    std::vector<float>& values = (*made)[{rows, cols, seed}];
    if (!values.empty()) return values;
    std::mt19937 random(seed);
    values.resize(static_cast<size_t>(rows * cols));
    for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 7) - 3);
    return values;
  }
  // m x k of `seed_a` times k x n of `seed_b`.
  static const std::vector<float>& WholeProduct(int64_t m, int64_t n, int64_t k, uint32_t seed_a,
                                                uint32_t seed_b) {
    using Key = std::tuple<int64_t, int64_t, int64_t, uint32_t, uint32_t>;
    static auto* const made = new std::map<Key, std::vector<float>>;
    std::vector<float>& d = (*made)[{m, n, k, seed_a, seed_b}];
    if (!d.empty()) return d;
    const std::vector<float>& a = Whole(m, k, seed_a);
    const std::vector<float>& b = Whole(k, n, seed_b);
    d.assign(static_cast<size_t>(m * n), 0);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t l = 0; l < k; ++l) {
        for (int64_t j = 0; j < n; ++j) d[i * n + j] += a[i * k + l] * b[l * n + j];
      }
    }
    return d;
  }

  // Puts Whole(rows, cols, seed) on a device, and returns its id.
  absl::StatusOr<std::string> TryPut(int64_t rows, int64_t cols, uint32_t seed, size_t device,
                                     KeepSpec keep = {}) {
    UploadSpec spec;
    spec.shape = {rows, cols, gemm::DType::kF32};
    spec.device = Name(device);
    spec.keep = std::move(keep);
    // Shared: the upload tells it also where the test has stopped waiting.
    auto recorder = std::make_shared<UploadRecorder>();
    auto upload = engine_->BeginUpload(spec, [recorder, done = recorder->done()](
                                                 auto result) mutable { done(std::move(result)); });
    if (!upload.ok()) return upload.status();
    (*upload)->Start();
    (*upload)->Append(0, AsCord(Whole(rows, cols, seed)), [] {});
    (*upload)->EndOfPayload();
    const absl::StatusOr<UploadResult> result = recorder->Wait(kPatience);
    if (!result.ok()) return result.status();
    return result->matrix.id;
  }
  std::string PutWhole(int64_t rows, int64_t cols, uint32_t seed, size_t device,
                       KeepSpec keep = {}) {
    absl::StatusOr<std::string> id = TryPut(rows, cols, seed, device, std::move(keep));
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? *std::move(id) : "";
  }

  static OperandSpec Resident(const std::string& id) { return ResidentOf("", id); }
  static OperandSpec ResidentOf(const std::string& caller, const std::string& id) {
    return {std::nullopt, FromResident{{.id = id, .caller = caller}}};
  }

  // Starts the job; its payload is still to be sent.
  Attempt Begin(JobSpec spec, const std::vector<float>& expected, size_t hold = 0) {
    Attempt attempt;
    attempt.expected = &expected;
    attempt.recorder = std::make_shared<JobRecorder>(hold);
    auto job = engine_->Admit(std::move(spec), attempt.recorder);
    attempt.refused = job.status();
    if (!job.ok()) return attempt;
    attempt.job = *std::move(job);
    attempt.job->Start();
    return attempt;
  }

  // How it ended.
  absl::Status End(Attempt& attempt) {
    if (!attempt.refused.ok()) return attempt.refused;
    const absl::Status status = attempt.recorder->Wait(kPatience).status();
    EXPECT_FALSE(attempt.recorder->misused());
    attempt.job.reset();
    return status;
  }

  // The bits of the result that are not the product's.
  static int64_t WrongBits(Attempt& attempt) {
    const std::vector<std::byte> got = attempt.recorder->bytes();
    const auto* right = reinterpret_cast<const std::byte*>(attempt.expected->data());
    const size_t bytes = attempt.expected->size() * sizeof(float);
    if (got.size() != bytes) return static_cast<int64_t>(8 * bytes);
    int64_t wrong = 0;
    for (size_t i = 0; i < bytes; ++i) {
      wrong += __builtin_popcount(std::to_integer<unsigned>(got[i] ^ right[i]));
    }
    return wrong;
  }

  // Everything that the engine holds, both devices together; empty if it holds only `matrices`.
  std::string Held(int64_t matrices) {
    const EngineStats stats = engine_->Stats();
    std::string held;
    const auto add = [&held](absl::string_view what, int64_t used) {
      if (used != 0) absl::StrAppend(&held, what, " ", used, "; ");
    };
    add("jobs", stats.jobs.used);
    add("queued", stats.queued_jobs.used);
    add("admitted bytes", stats.admitted_bytes.used);
    add("matrices too many", stats.matrices.used - matrices);
    for (const DeviceStats& device : stats.devices) {
      add(device.name + " streams", device.streams.used);
      add(device.name + " upload staging", device.upload_staging_bytes.used);
      add(device.name + " download staging", device.download_staging_bytes.used);
      add(device.name + " memory", matrices > 0 ? 0 : device.memory_bytes.used);
      add(device.name + " store", matrices > 0 ? 0 : device.store_bytes.used);
      add(device.name + " replicas", matrices > 0 ? 0 : device.replicas.bytes);
    }
    return held;
  }
  // All that the jobs held is back. Memory that a device still works on may take a moment.
  void ExpectAllBack(int64_t matrices = 0) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (!Held(matrices).empty() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(Held(matrices), "");
  }
  void DeleteAll() {
    const absl::StatusOr<MatrixPage> page = engine_->ListMatrices({.every_owner = true});
    for (const MatrixRecord& matrix : page->matrices) {
      EXPECT_TRUE(engine_->DeleteMatrix({.id = matrix.id, .any_owner = true}).ok());
    }
  }

  template <typename Condition>
  static void Await(const Condition& holds) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (!holds() && absl::Now() < deadline) absl::SleepFor(absl::Microseconds(200));
    ASSERT_TRUE(holds());
  }

  JumpClock clock_;
};

}  // namespace gemmd
