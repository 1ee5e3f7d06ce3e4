// The cases of DeviceSuite.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/catalogue.h"
#include "gemm/generate.h"
#include "gemm/kernel.h"
#include "gemm/reference.h"
#include "server/engine/device/device_kinds.h"
#include "tests/engine/device_suite.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

// A matrix that takes a device a while to fill.
gemm::GeneratorTarget LongWork(const Pitched& matrix) {
  return {.data = matrix.data,
          .type = gemm::DType::kF32,
          .rows = matrix.lines,
          .cols = matrix.line_bytes / 4,
          .pitch_bytes = matrix.pitch_bytes};
}

TEST_P(DeviceSuite, DescribesItself) {
  const DeviceInfoRecord& info = device().info();
  const absl::StatusOr<DeviceSpec> spec = ParseDeviceSpec(GetParam(), DeviceKinds());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(info.name, absl::StrCat(spec->kind->name, ":", spec->indices.front()));
  EXPECT_FALSE(info.model.empty());
  EXPECT_EQ(info.memory_bytes, 64 * kMiB);
  EXPECT_EQ(device().memory().capacity(), 64 * kMiB);
  EXPECT_EQ(device().upload_staging().blocks(), 16u);
  EXPECT_EQ(device().download_staging().block_bytes(), 64 * kKiB);
  EXPECT_EQ(device().compute_streams().size(), 3u);
  EXPECT_EQ(device().Health(), absl::OkStatus());
  const bool cuda = info.caps.target == gemm::Target::kCuda;
  EXPECT_EQ(cuda, spec->kind->name == "cuda");
  EXPECT_EQ(info.caps.capability > 0, cuda);
}

TEST_P(DeviceSuite, MatricesOfAnyPitchComeBackThroughRandomRanges) {
  for (int round = 0; round < 40; ++round) {
    const int64_t lines = 1 + random_() % 60;
    const int64_t line_bytes = 1 + random_() % 900;
    const Pitched matrix = Allocate(lines, line_bytes, line_bytes + random_() % 3 * 16);
    const std::vector<std::byte> content = RandomBytes(matrix.dense_bytes());
    std::vector<std::byte> wrong(content.size());
    Put(matrix, 0, wrong);
    for (size_t done = 0; done < content.size();) {
      const size_t size = std::min<size_t>(1 + random_() % 5000, content.size() - done);
      Put(matrix, done, {content.begin() + done, content.begin() + done + size});
      done += size;
    }
    std::vector<std::byte> back;
    while (back.size() < content.size()) {
      const size_t size = std::min<size_t>(1 + random_() % 5000, content.size() - back.size());
      const std::vector<std::byte> piece = Get(matrix, back.size(), size);
      back.insert(back.end(), piece.begin(), piece.end());
    }
    ASSERT_EQ(back, content) << lines << " lines of " << line_bytes << " bytes";
    buffers_.clear();
  }
}

TEST_P(DeviceSuite, UploadsLeaveTheGapsBetweenLinesAlone) {
  const Pitched matrix = Allocate(7, 20, 32);
  const std::vector<std::byte> before = RandomBytes(matrix.pitched_bytes());
  Put({.data = matrix.data, .lines = 1, .line_bytes = 7 * 32, .pitch_bytes = 7 * 32}, 0, before);
  const std::vector<std::byte> content = RandomBytes(matrix.dense_bytes());
  Put(matrix, 0, content);
  std::vector<std::byte> expected = before;
  for (int line = 0; line < 7; ++line) {
    std::copy_n(content.begin() + line * 20, 20, expected.begin() + line * 32);
  }
  EXPECT_EQ(GetPitched(matrix), expected);
}

TEST_P(DeviceSuite, CopiesOutsideOfAMatrixAreRefused) {
  const Pitched matrix = Allocate(4, 16, 16);
  const StagingBlock block = Stage(device().upload_staging());
  const absl::Status up = device().upload_stream().Upload(block.data(), matrix, 60, 5);
  EXPECT_EQ(up.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(up.message()), HasSubstr("5 bytes at 60"));
  const absl::Status down = device().download_stream().Download(matrix, 65, 0, block.data());
  EXPECT_EQ(down.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Finish(device().upload_stream()), absl::OkStatus());
}

TEST_P(DeviceSuite, AStreamWaitsForAnEventOfAnother) {
  const Pitched large = Allocate(1024, 4096, 4096);
  for (int round = 0; round < 5; ++round) {
    const std::vector<std::byte> content = RandomBytes(256);
    const Pitched last_line = {
        .data = large.data + 1023 * 4096, .lines = 1, .line_bytes = 256, .pitch_bytes = 256};
    StagingBlock from = Stage(device().upload_staging());
    const StagingBlock to = Stage(device().download_staging());
    std::memcpy(from.data(), content.data(), content.size());
    // Written late on one stream, moved on by a second, read by a third.
    const EventPtr written = device().AcquireEvent();
    const EventPtr passed = device().AcquireEvent();
    ASSERT_EQ(compute(0).Generate({.seed = 1}, LongWork(large)), absl::OkStatus());
    ASSERT_EQ(compute(0).Upload(from.data(), last_line, 0, 256), absl::OkStatus());
    ASSERT_EQ(compute(0).Record(*written), absl::OkStatus());
    ASSERT_EQ(compute(1).Wait(*written), absl::OkStatus());
    ASSERT_EQ(compute(1).Record(*passed), absl::OkStatus());
    ASSERT_EQ(device().download_stream().Wait(*passed), absl::OkStatus());
    ASSERT_EQ(device().download_stream().Download(last_line, 0, 256, to.data()), absl::OkStatus());
    ASSERT_EQ(Finish(device().download_stream()), absl::OkStatus());
    EXPECT_EQ(std::memcmp(to.data(), content.data(), 256), 0);
  }
}

TEST_P(DeviceSuite, AnEventThatWasNeverRecordedHoldsNothingUp) {
  const EventPtr event = device().AcquireEvent();
  ASSERT_EQ(compute().Wait(*event), absl::OkStatus());
  EXPECT_EQ(Finish(compute()), absl::OkStatus());
}

TEST_P(DeviceSuite, EventsMeasureTheWorkBetweenThem) {
  const Pitched matrix = Allocate(1024, 2048, 2048);
  const EventPtr start = device().AcquireEvent();
  const EventPtr middle = device().AcquireEvent();
  const EventPtr end = device().AcquireEvent();
  ASSERT_EQ(compute(0).Record(*start), absl::OkStatus());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(compute(0).Generate({.distribution = gemm::Distribution::kNormal}, LongWork(matrix)),
              absl::OkStatus());
  }
  ASSERT_EQ(compute(0).Record(*middle), absl::OkStatus());
  ASSERT_EQ(compute(1).Wait(*middle), absl::OkStatus());
  ASSERT_EQ(compute(1).Generate({}, LongWork(matrix)), absl::OkStatus());
  ASSERT_EQ(compute(1).Record(*end), absl::OkStatus());
  ASSERT_EQ(Finish(compute(1)), absl::OkStatus());
  const absl::Duration first = device().Elapsed(*start, *middle);
  const absl::Duration all = device().Elapsed(*start, *end);
  EXPECT_GT(first, absl::Microseconds(1));
  EXPECT_LT(first, absl::Seconds(60));
  EXPECT_GT(all, first);
}

TEST_P(DeviceSuite, ElapsedIsZeroWhereAnEventWasNeverRecorded) {
  EventPtr recorded = device().AcquireEvent();
  ASSERT_EQ(compute().Record(*recorded), absl::OkStatus());
  ASSERT_EQ(Finish(compute()), absl::OkStatus());
  const EventPtr never = device().AcquireEvent();
  EXPECT_EQ(device().Elapsed(*recorded, *never), absl::ZeroDuration());
  EXPECT_EQ(device().Elapsed(*never, *recorded), absl::ZeroDuration());
  // A recycled event has no record.
  recorded.reset();
  const EventPtr again = device().AcquireEvent();
  const EventPtr now = device().AcquireEvent();
  ASSERT_EQ(compute().Record(*now), absl::OkStatus());
  ASSERT_EQ(Finish(compute()), absl::OkStatus());
  EXPECT_EQ(device().Elapsed(*again, *now), absl::ZeroDuration());
}

TEST_P(DeviceSuite, NotifiesInOrderOnOneThread) {
  Mutex mutex;
  std::vector<int> order;
  std::set<std::thread::id> threads;
  const Pitched matrix = Allocate(256, 1024, 1024);
  for (int i = 0; i < 50; ++i) {
    if (i % 7 == 0) {
      ASSERT_EQ(compute().Generate({}, LongWork(matrix)), absl::OkStatus());
    }
    compute().Notify([&, i](absl::Status status) {
      MutexLock lock(mutex);
      EXPECT_EQ(status, absl::OkStatus());
      order.push_back(i);
      threads.insert(std::this_thread::get_id());
    });
  }
  ASSERT_EQ(Finish(compute()), absl::OkStatus());
  MutexLock lock(mutex);
  ASSERT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0u);
}

TEST_P(DeviceSuite, NotifiesOfAnEventThatWasRecordedLast) {
  const Pitched matrix = Allocate(256, 1024, 1024);
  const EventPtr begin = device().AcquireEvent();
  const EventPtr end = device().AcquireEvent();
  ASSERT_EQ(compute().Record(*begin), absl::OkStatus());
  ASSERT_EQ(compute().Generate({}, LongWork(matrix)), absl::OkStatus());
  ASSERT_EQ(compute().Record(*end), absl::OkStatus());
  absl::Duration seen_in_callback;
  compute().Notify(
      [&](absl::Status status) {
        EXPECT_EQ(status, absl::OkStatus());
        seen_in_callback = device().Elapsed(*begin, *end);
      },
      {.last = end.get()});
  ASSERT_EQ(Finish(compute()), absl::OkStatus());
  EXPECT_GT(seen_in_callback, absl::ZeroDuration()) << "called before the event was reached";
  EXPECT_EQ(device().Elapsed(*begin, *end), seen_in_callback) << "the event went to another";
}

TEST_P(DeviceSuite, ACallbackKnowsWhetherOthersWait) {
  std::atomic<bool> begun = false;
  bool at_first = true, later = false;
  compute(0).Notify([&](absl::Status) {
    at_first = device().CompletionThreadIsBusy();
    begun = true;
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!later && absl::Now() < deadline) later = device().CompletionThreadIsBusy();
  });
  while (!begun) std::this_thread::yield();
  ASSERT_EQ(Finish(compute(1)), absl::OkStatus());
  ASSERT_EQ(Finish(compute(0)), absl::OkStatus());
  EXPECT_FALSE(at_first);
  EXPECT_TRUE(later);
}

TEST_P(DeviceSuite, CallbacksMayEnqueueAndNotifyAgain) {
  const Pitched matrix = Allocate(64, 1024, 1024);
  Mutex mutex;
  CondVar changed;
  int left = 20;
  std::function<void(absl::Status)> step = [&](absl::Status status) {
    EXPECT_EQ(status, absl::OkStatus());
    {
      MutexLock lock(mutex);
      if (--left == 0) return changed.NotifyOne();
    }
    EXPECT_EQ(compute(1).Generate({}, LongWork(matrix)), absl::OkStatus());
    compute(1).Notify(step);
  };
  compute(1).Notify(step);
  MutexLock lock(mutex);
  while (left > 0) changed.Wait(mutex);
}

TEST_P(DeviceSuite, GeneratesTheBitsThatTheHostDoes) {
  constexpr int64_t kRows = 33, kCols = 47;
  for (const gemm::DType type :
       {gemm::DType::kF64, gemm::DType::kF32, gemm::DType::kF16, gemm::DType::kBF16}) {
    for (const bool column_major : {false, true}) {
      const gemm::GeneratorSpec spec = {
          .seed = 7,
          .distribution = column_major ? gemm::Distribution::kNormal : gemm::Distribution::kUniform,
          .low_or_mean = -1,
          .high_or_stddev = 2};
      const int64_t line = (column_major ? kRows : kCols) * gemm::SizeOf(type);
      const int64_t pitch = gemm::PitchBytes(column_major ? kRows : kCols, type);
      const Pitched matrix = Allocate(column_major ? kCols : kRows, line, pitch);
      gemm::GeneratorTarget target = {.data = matrix.data,
                                      .type = type,
                                      .rows = kRows,
                                      .cols = kCols,
                                      .pitch_bytes = pitch,
                                      .column_major = column_major};
      ASSERT_EQ(compute().Generate(spec, target), absl::OkStatus());
      ASSERT_EQ(Finish(compute()), absl::OkStatus());

      std::vector<std::byte> expected(matrix.dense_bytes());
      target.data = expected.data();
      target.pitch_bytes = line;
      ASSERT_EQ(gemm::GenerateHost(spec, target), absl::OkStatus());
      EXPECT_EQ(GetAll(matrix), expected) << gemm::Name(type);
    }
  }
}

// The first kernel of the catalogue for f32 on this device.
const gemm::Kernel* AnyKernel(const gemm::DeviceCaps& caps) {
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (gemm::CheckDevice(*kernel, caps).ok() &&
        gemm::CheckTypes(*kernel, gemm::Problem{}.types).ok()) {
      return kernel;
    }
  }
  return nullptr;
}

// Their users are many: an error found late would have no owner.
TEST_P(DeviceSuite, SharedStreamsOnlyCopy) {
  const Pitched matrix = Allocate(4, 16, 16);
  for (Stream* stream : {&device().upload_stream(), &device().download_stream()}) {
    EXPECT_EQ(stream->Generate({}, {matrix.data, gemm::DType::kF32, 4, 4, 16, false}).code(),
              absl::StatusCode::kInternal);
    EXPECT_EQ(Finish(*stream), absl::OkStatus());
  }
}

TEST_P(DeviceSuite, LaunchesKernels) {
  const gemm::Kernel* kernel = AnyKernel(device().info().caps);
  ASSERT_NE(kernel, nullptr);
  const gemm::Problem problem = {.m = 65, .n = 33, .k = 129, .alpha = 0.5};
  const absl::StatusOr<gemm::LaunchParams> params = gemm::ResolveParams(*kernel, {});
  ASSERT_TRUE(params.ok()) << params.status();
  DeviceBuffer workspace;
  if (kernel->workspace_bytes != nullptr && kernel->workspace_bytes(problem) > 0) {
    absl::StatusOr<DeviceBuffer> buffer =
        device().memory().Allocate(kernel->workspace_bytes(problem));
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    workspace = *std::move(buffer);
  }

  const auto dense = [&](int64_t rows, int64_t cols) {
    return Allocate(rows, cols * 4, gemm::PitchBytes(cols, gemm::DType::kF32));
  };
  const Pitched a = dense(problem.m, problem.k);
  const Pitched b = dense(problem.k, problem.n);
  const Pitched d = dense(problem.m, problem.n);
  const gemm::GeneratorSpec normal = {.seed = 3, .distribution = gemm::Distribution::kNormal};
  for (Stream* stream : {&compute(0), &compute(2)}) {
    ASSERT_EQ(stream->Generate(normal, LongWork(a)), absl::OkStatus());
    ASSERT_EQ(stream->Generate({.seed = 4}, LongWork(b)), absl::OkStatus());
    ASSERT_EQ(stream->Launch(*kernel, problem,
                             {.a = a.data,
                              .lda = a.pitch_bytes / 4,
                              .b = b.data,
                              .ldb = b.pitch_bytes / 4,
                              .d = d.data,
                              .ldd = d.pitch_bytes / 4},
                             {.data = workspace.data(), .bytes = workspace.bytes()}, *params),
              absl::OkStatus());
    ASSERT_EQ(Finish(*stream), absl::OkStatus());
    std::vector<std::byte> host_a = GetAll(a), host_b = GetAll(b), host_d = GetAll(d);
    const gemm::Agreement agreement =
        gemm::CompareWithReference(problem,
                                   {.a = host_a.data(),
                                    .lda = problem.k,
                                    .b = host_b.data(),
                                    .ldb = problem.n,
                                    .d = host_d.data(),
                                    .ldd = problem.n},
                                   gemm::Elements::kDrawn, 1 << 20, 1);
    EXPECT_LE(agreement.worst_ratio, 1) << kernel->name;
    EXPECT_EQ(agreement.checked, problem.m * problem.n);
    Put(d, 0, std::vector<std::byte>(d.dense_bytes()));
  }
}

// A problem's memory may be freed before the device gets to it.
TEST_P(DeviceSuite, ALaunchedGroupKeepsItsExtents) {
  const gemm::Kernel* kernel = AnyKernel(device().info().caps);
  ASSERT_NE(kernel, nullptr);
  std::vector<int64_t> extents = {2, 0, 3};
  const gemm::Problem problem = {
      .m = 5, .n = 1, .k = 1, .grouped = gemm::GroupedBy::kM, .extents = extents};
  DeviceBuffer workspace;
  if (const size_t bytes = gemm::WorkspaceBytes(*kernel, problem); bytes > 0) {
    absl::StatusOr<DeviceBuffer> buffer = device().memory().Allocate(bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    workspace = *std::move(buffer);
  }
  const Pitched a = Allocate(5, 4, 16), b = Allocate(3, 4, 16), d = Allocate(5, 4, 16);
  const Pitched before = Allocate(512, 4 * 1024, 4 * 1024);
  const auto put = [&](const Pitched& matrix, const std::vector<float>& values) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    Put(matrix, 0, {bytes, bytes + values.size() * sizeof(float)});
  };
  put(a, {1, 2, 3, 4, 5});
  put(b, {10, 20, 30});
  put(d, {0, 0, 0, 0, 0});
  Stream& stream = compute(0);
  const absl::StatusOr<gemm::LaunchParams> params = gemm::ResolveParams(*kernel, {});
  ASSERT_TRUE(params.ok()) << params.status();
  ASSERT_EQ(stream.Generate({.seed = 4}, LongWork(before)), absl::OkStatus());
  ASSERT_EQ(
      stream.Launch(
          *kernel, problem,
          {.a = a.data, .lda = 4, .b = b.data, .ldb = 4, .d = d.data, .ldd = 4, .stride_b = 4},
          {.data = workspace.data(), .bytes = workspace.bytes()}, *params),
      absl::OkStatus());
  extents = {5, 0, 0};
  ASSERT_EQ(Finish(stream), absl::OkStatus());
  const std::vector<std::byte> got = GetAll(d);
  std::vector<float> values(5);
  std::memcpy(values.data(), got.data(), got.size());
  EXPECT_EQ(values, (std::vector<float>{10, 20, 90, 120, 150}));
}

TEST_P(DeviceSuite, RefusesAKernelOfAnotherKindOfDevice) {
  const bool host = device().info().caps.target == gemm::Target::kHost;
  const gemm::Kernel kernel = {.name = "elsewhere",
                               .target = host ? gemm::Target::kCuda : gemm::Target::kHost};
  const absl::Status status = compute().Launch(kernel, {}, {}, {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("elsewhere"));
}

TEST_P(DeviceSuite, WorkMakesNoDriverAllocations) {
  const int64_t at_start = device().driver_allocations();
  EXPECT_GT(at_start, 0);
  const Pitched matrix = Allocate(100, 100, 112);
  for (int i = 0; i < 20; ++i) {
    const EventPtr event = device().AcquireEvent();
    ASSERT_EQ(compute().Generate({}, LongWork(matrix)), absl::OkStatus());
    ASSERT_EQ(compute().Record(*event), absl::OkStatus());
    ASSERT_EQ(device().upload_stream().Wait(*event), absl::OkStatus());
    Put(matrix, 0, RandomBytes(10));
    Get(matrix, 5, 300);
  }
  EXPECT_EQ(device().driver_allocations(), at_start);
}

TEST_P(DeviceSuite, ManyThreadsShareItsStreams) {
  std::vector<Pitched> matrices;
  for (int t = 0; t < 8; ++t) matrices.push_back(Allocate(50, 300, 304));
  std::atomic<int> notified{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const Pitched& matrix = matrices[t];
      Stream& up = device().upload_stream();
      Stream& down = device().download_stream();
      for (int i = 0; i < 50; ++i) {
        // Every thread its own pattern, checked after a way through two streams.
        StagingBlock from = Stage(device().upload_staging());
        const StagingBlock to = Stage(device().download_staging());
        std::memset(from.data(), t * 50 + i, matrix.dense_bytes());
        const EventPtr event = device().AcquireEvent();
        EXPECT_EQ(up.Upload(from.data(), matrix, 0, matrix.dense_bytes()), absl::OkStatus());
        EXPECT_EQ(up.Record(*event), absl::OkStatus());
        up.Notify([&](absl::Status) { ++notified; });
        EXPECT_EQ(down.Wait(*event), absl::OkStatus());
        EXPECT_EQ(down.Download(matrix, 0, matrix.dense_bytes(), to.data()), absl::OkStatus());
        EXPECT_EQ(Finish(down), absl::OkStatus());
        EXPECT_EQ(std::memcmp(from.data(), to.data(), matrix.dense_bytes()), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Finish(device().upload_stream()), absl::OkStatus());
  EXPECT_EQ(notified, 8 * 50);
}

TEST_P(DeviceSuite, DestructionWaitsForPendingWork) {
  std::atomic<int> called{0};
  for (const std::unique_ptr<Stream>& stream : device().compute_streams()) {
    const Pitched matrix = Allocate(256, 4096, 4096);
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(stream->Generate({}, LongWork(matrix)), absl::OkStatus());
      stream->Notify([&](absl::Status status) { called += status.ok(); });
    }
  }
  buffers_.clear();
  device_.reset();
  EXPECT_EQ(called, 30);
}

}  // namespace
}  // namespace gemmd
