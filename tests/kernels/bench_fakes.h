// A device on a clock that the test owns, kernels that take as long as they say, and a benchmark
// of them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gemm/catalogue.h"
#include "gemm/run.h"
#include "kernels/bench/measure/benchmark.h"

namespace gemm::bench::testing {

// The clock; a launch takes as long as its kernel says.
inline absl::Time now;
inline std::vector<std::string> launched;

inline absl::Status Product(const Launch& launch) {
  return RunProduct(**FindKernel("host_reference"), launch);
}

template <int kMicroseconds>
absl::Status Take(const char* name, const Launch& launch) {
  now += absl::Microseconds(kMicroseconds);
  launched.emplace_back(name);
  return Product(launch);
}

inline absl::Status Fast(const Launch& launch) { return Take<1000>("fast", launch); }
inline absl::Status Slow(const Launch& launch) { return Take<2000>("slow", launch); }
inline absl::Status VerySlow(const Launch& launch) { return Take<50000>("very slow", launch); }
inline absl::Status Refusing(const Launch&) {
  return absl::FailedPreconditionError("it needs a device of its own");
}

inline constexpr Types kF32[] = {{DType::kF32, DType::kF32, DType::kF32, Compute::kF32}};

inline Kernel KernelOf(absl::string_view name, absl::Status (*launch)(const Launch&)) {
  return {.name = name,
          .family = "test",
          .target = Target::kHost,
          .types = kF32,
          .workspace_bytes = (*FindKernel("host_reference"))->workspace_bytes,
          .launch = launch};
}

inline const Kernel kFast = KernelOf("fast", Fast), kSlow = KernelOf("slow", Slow),
                    kVerySlow = KernelOf("very slow", VerySlow),
                    kRefusing = KernelOf("refusing", Refusing);

// The host, on the test's clock. A kernel of the catalogue takes `catalogue_time`.
class FakeBackend : public Backend {
 public:
  DeviceCaps caps() const override { return host_->caps(); }
  Metadata metadata() const override { return host_->metadata(); }
  size_t cache_bytes() const override { return 1 << 12; }
  size_t free_bytes() const override { return room; }
  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    if (full || bytes > room) return absl::ResourceExhaustedError("no memory");
    absl::StatusOr<Buffer> buffer = host_->Allocate(bytes);
    room -= bytes;
    std::function<void(void*)> free = buffer->get_deleter();
    return Buffer(buffer->release(), [this, bytes, free](void* data) {
      free(data);
      room += bytes;
    });
  }
  absl::Status Fill(void* data, std::byte value, size_t bytes) override {
    return host_->Fill(data, value, bytes);
  }
  absl::Status Upload(void* device, const void* host, size_t bytes) override {
    return host_->Upload(device, host, bytes);
  }
  absl::Status Synchronize() override {
    return lost ? absl::InternalError("the device is gone") : absl::OkStatus();
  }
  absl::Status Read(const void* from, size_t pitch, size_t width, size_t height,
                    void* to) override {
    bytes_read += width * height;
    return host_->Read(from, pitch, width, height, to);
  }
  Launch MakeLaunch(const Problem& problem, const Operands& operands, Workspace workspace,
                    const LaunchParams& params) override {
    operands_seen.push_back(operands.a);
    return host_->MakeLaunch(problem, operands, workspace, params);
  }
  absl::StatusOr<double> Time(const std::function<absl::Status(int)>& enqueue, int count,
                              double) override {
    const absl::Time start = now;
    for (int i = 0; i < count; ++i) {
      if (const absl::Status status = enqueue(i); !status.ok()) return status;
    }
    if (now == start) now += count * catalogue_time;
    return absl::ToDoubleSeconds(now - start) / count;
  }
  absl::Status Repeat(const std::function<absl::Status(int)>& enqueue, int count,
                      const std::function<bool()>& again) override {
    absl::Time start = now;
    return Backend::Repeat(enqueue, count, [&] {
      if (now == start) now += count * catalogue_time;
      start = now;
      return again();
    });
  }
  std::vector<LaunchFn> VendorAlgorithms(const Problem&, const Operands&, int) override {
    return {Slow, Fast, Refusing};
  }
  absl::StatusOr<EnergyCounter*> energy() override {
    if (counter == nullptr) return host_->energy();
    return counter;
  }

  absl::Duration catalogue_time = absl::Milliseconds(1);
  bool full = false;
  size_t room = size_t{1} << 30;  // bytes that are left
  bool lost = false;
  size_t bytes_read = 0;
  std::vector<const void*> operands_seen;
  EnergyCounter* counter = nullptr;  // null: none

 private:
  const std::unique_ptr<Backend> host_ = CreateHostBackend();
};

class ComparisonTest : public ::testing::Test {
 protected:
  ComparisonTest() {
    now = absl::UnixEpoch();
    launched.clear();
    plan_.shapes = {{33, 17, 5}};
    plan_.rules.iterations = 4;
    plan_.rules.baselines = false;
  }

  void Add(const Kernel& kernel) {
    plan_.candidates.push_back({.kernel = &kernel, .types = kF32[0]});
  }

  absl::Status Run() {
    BenchmarkObserver observer;
    observer.on_rows = [&](absl::Span<const Row> rows) {
      rows_.insert(rows_.end(), rows.begin(), rows.end());
    };
    observer.on_progress = [&](const Progress& progress) { steps_.push_back(progress); };
    observer.cancelled = [&] { return steps_.size() >= cancel_after_; };
    observer.now = [] { return now; };
    return RunBenchmark(backend_, plan_, observer);
  }

  FakeBackend backend_;
  BenchmarkPlan plan_;
  std::vector<Row> rows_;
  std::vector<Progress> steps_;
  size_t cancel_after_ = 1000000;
};

}  // namespace gemm::bench::testing
