// The engine on host devices: products, whatever their operands come from.
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <thread>

#include "tests/engine/engine_fixture.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

// Shapes on both sides of the small path's bound, chunks that cut lines.
class EngineProductTest : public EngineTest,
                          public ::testing::WithParamInterface<std::array<int64_t, 4>> {};

TEST_P(EngineProductTest, SentOperandsGiveTheProduct) {
  Make();
  const auto [m, n, k, chunk] = GetParam();
  const std::vector<float> a = RandomFloats(m * k, 1), b = RandomFloats(k * n, 2);
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(Product(m, n, k), recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  Send(**job, Role::kB, b, chunk);
  Send(**job, Role::kA, a, chunk);
  (*job)->EndOfPayload();
  const absl::StatusOr<JobResult> result = recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectProduct(m, n, k, a, b, recorder->bytes());
  EXPECT_FALSE(recorder->misused());
  EXPECT_EQ(result->report.m, m);
  EXPECT_EQ(result->report.bytes_in, (m * k + k * n) * sizeof(float));
  EXPECT_EQ(result->report.bytes_out, m * n * sizeof(float));
  EXPECT_GT(result->report.phases.kernel, absl::ZeroDuration());
  EXPECT_GT(result->report.phases.total, result->report.phases.kernel);
  ExpectNothingHeld();
}

INSTANTIATE_TEST_SUITE_P(Shapes, EngineProductTest,
                         ::testing::Values(std::array<int64_t, 4>{1, 1, 1, 100},
                                           std::array<int64_t, 4>{1, 7, 3, 5},
                                           std::array<int64_t, 4>{5, 1, 2, 7},
                                           std::array<int64_t, 4>{64, 64, 64, 4096},
                                           std::array<int64_t, 4>{257, 129, 65, 1001},
                                           std::array<int64_t, 4>{301, 503, 207, 70001},
                                           std::array<int64_t, 4>{700, 600, 500, 1000000},
                                           std::array<int64_t, 4>{20000, 3, 5, 65536}));

// Every product of a batch has the bits of a job of its own.
TEST_F(EngineTest, ABatchIsItsProductsOneByOne) {
  Make();
  const int64_t m = 7, n = 5, k = 3, batch = 17;
  const std::vector<float> a = RandomFloats(batch * m * k, 1), b = RandomFloats(k * n, 2),
                           bias = RandomFloats(batch * n, 3);
  const auto product = [&](int64_t count) {
    JobSpec spec = Product(count * m, n, k);
    spec.batch = count;
    spec.shared[Role::kB] = true;
    spec.bias = OperandSpec{Shape{count, n, gemm::DType::kF32}, FromPayload{}};
    spec.activation = gemm::Activation::kGelu;
    return spec;
  };
  // Products [first, first + count) as one job.
  const auto run = [&](int64_t first, int64_t count) {
    auto recorder = std::make_shared<JobRecorder>();
    auto job = engine_->Admit(product(count), recorder);
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return std::vector<std::byte>();
    const auto part = [=](const std::vector<float>& all, int64_t size) {
      return std::vector<float>(all.begin() + first * size, all.begin() + (first + count) * size);
    };
    (*job)->Start();
    Send(**job, Role::kA, part(a, m * k), 100);
    Send(**job, Role::kB, b, 100);
    Send(**job, Role::kBias, part(bias, n), 100);
    const absl::StatusOr<JobResult> result = recorder->Wait();
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) {
      EXPECT_EQ(result->report.batch, count);
      EXPECT_EQ(result->report.m, m);
      EXPECT_EQ(result->report.flops, 2.0 * count * m * n * k);
    }
    return recorder->bytes();
  };
  const std::vector<std::byte> together = run(0, batch);
  std::vector<std::byte> alone;
  for (int64_t i = 0; i < batch; ++i) {
    const std::vector<std::byte> one = run(i, 1);
    alone.insert(alone.end(), one.begin(), one.end());
  }
  EXPECT_EQ(alone.size(), batch * m * n * sizeof(float));
  EXPECT_EQ(together, alone);
  ExpectNothingHeld();
}

// So has every product of a group, those without rows excepted, which have no bits.
TEST_F(EngineTest, AGroupIsItsProductsOneByOne) {
  Make();
  const int64_t n = 5, k = 3;
  const std::vector<int64_t> rows = {4, 0, 1, 9, 9, 0, 70};
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t m = 4 + 1 + 9 + 9 + 70;
  const std::vector<float> a = RandomFloats(m * k, 1), b = RandomFloats(count * k * n, 2),
                           bias = RandomFloats(count * n, 3);
  const auto run = [&](JobSpec spec, const std::vector<float>& part_a,
                       const std::vector<float>& part_b, const std::vector<float>& part_bias) {
    auto recorder = std::make_shared<JobRecorder>();
    const auto products = static_cast<int64_t>(part_bias.size()) / n;
    spec.bias = OperandSpec{Shape{products, n, gemm::DType::kF32}, FromPayload{}};
    spec.activation = gemm::Activation::kGelu;
    auto job = engine_->Admit(spec, recorder);
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return std::vector<std::byte>();
    (*job)->Start();
    Send(**job, Role::kA, part_a, 100);
    Send(**job, Role::kB, part_b, 100);
    Send(**job, Role::kBias, part_bias, 100);
    const absl::StatusOr<JobResult> result = recorder->Wait();
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) {
      EXPECT_EQ(result->report.batch, 1);
      EXPECT_EQ(result->report.group, static_cast<int64_t>(spec.group.size()));
      EXPECT_EQ(result->report.flops, 2.0 * static_cast<double>(part_a.size()) * n);
    }
    return recorder->bytes();
  };
  JobSpec spec = Product(m, n, k);
  spec.b.shape = Shape{count * k, n, gemm::DType::kF32};
  for (const int64_t extent : rows) spec.group.push_back({extent, n, k});
  const std::vector<std::byte> together = run(spec, a, b, bias);
  std::vector<std::byte> alone;
  int64_t first = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto part = [](const std::vector<float>& all, int64_t from, int64_t size) {
      return std::vector<float>(all.begin() + from, all.begin() + from + size);
    };
    const int64_t own = rows[static_cast<size_t>(i)];
    if (own == 0) continue;
    const std::vector<std::byte> one = run(Product(own, n, k), part(a, first * k, own * k),
                                           part(b, i * k * n, k * n), part(bias, i * n, n));
    alone.insert(alone.end(), one.begin(), one.end());
    first += own;
  }
  EXPECT_EQ(alone.size(), m * n * sizeof(float));
  EXPECT_EQ(together, alone);
  ExpectNothingHeld();
}

TEST_F(EngineTest, ColumnMajorResultTransposesBiasAndC) {
  Make();
  const int64_t m = 3, n = 2, k = 4;
  const std::vector<float> a = RandomFloats(m * k, 1), b = RandomFloats(k * n, 2),
                           c = RandomFloats(m * n, 3), bias = RandomFloats(n, 4);
  JobSpec spec = Product(m, n, k);
  spec.b.shape = Shape{n, k, gemm::DType::kF32, true};  // stored n x k, by columns
  spec.transpose_b = true;
  spec.c = OperandSpec{Shape{m, n, gemm::DType::kF32, true}, FromPayload{}};
  spec.bias = OperandSpec{Shape{1, n, gemm::DType::kF32, true}, FromPayload{}};
  spec.beta = 2;
  spec.alpha = -1;
  spec.activation = gemm::Activation::kLeakyRelu;
  spec.leaky_slope = 0.5;
  spec.output_column_major = true;
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(spec, recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  // b is n x k by columns: element (j, p) at p * n + j, the same bytes as a
  // row-major k x n matrix.
  Send(**job, Role::kA, a, 1000);
  Send(**job, Role::kB, b, 1000);
  Send(**job, Role::kC, c, 1000);
  Send(**job, Role::kBias, bias, 1000);
  ASSERT_TRUE(recorder->Wait().ok());
  const std::vector<std::byte> bytes = recorder->bytes();
  std::vector<float> d(m * n);
  ASSERT_EQ(bytes.size(), d.size() * sizeof(float));
  std::memcpy(d.data(), bytes.data(), bytes.size());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += double{a[i * k + p]} * double{b[p * n + j]};
      const double x = -sum + 2 * c[j * m + i] + bias[j];
      EXPECT_NEAR(d[j * m + i], x > 0 ? x : 0.5 * x, 1e-5) << i << "," << j;
    }
  }
}

TEST_F(EngineTest, ResidentGeneratedAndKeptOperandsWork) {
  Make();
  const std::vector<float> a = RandomFloats(40 * 30, 5);
  auto put = Put({40, 30, gemm::DType::kF32}, a, {"weights", std::nullopt});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_TRUE(put->complete);

  JobSpec spec;
  spec.a.source = FromResident{{"", "weights"}, true};
  spec.b.shape = Shape{30, 20, gemm::DType::kF32};
  spec.b.source = FromGenerator{{7, gemm::Distribution::kNormal, 0, 1}};
  spec.keep_result = KeepSpec{"product", std::nullopt};
  spec.stream_result = false;
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(spec, recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  EXPECT_EQ(engine_->DeleteMatrix({"", "weights"}).status().code(), absl::StatusCode::kNotFound);
  const absl::StatusOr<JobResult> result = recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->kept.has_value());
  EXPECT_EQ(result->kept->name, "product");
  EXPECT_TRUE(recorder->bytes().empty());

  std::vector<float> b(30 * 20);
  ASSERT_TRUE(gemm::GenerateHost({7, gemm::Distribution::kNormal, 0, 1},
                                 {b.data(), gemm::DType::kF32, 30, 20, 80, false})
                  .ok());
  auto listener = std::make_shared<DownloadRecorder>();
  auto download = engine_->BeginDownload({{result->kept->id, ""}, true, std::nullopt}, listener);
  ASSERT_TRUE(download.ok()) << download.status();
  (*download)->Start();
  ASSERT_TRUE(listener->Wait().ok());
  ExpectProduct(40, 20, 30, a, b, listener->bytes());
  download->reset();
  ExpectNothingHeld();
  EXPECT_EQ(engine_->Stats().matrices.used, 0);
}

TEST_F(EngineTest, JobsGoToTheDeviceThatHoldsTheirOperands) {
  EngineOptions options = SmallOptions();
  options.devices = "host:4";
  Make(options);
  UploadSpec put;
  put.shape = {8, 8, gemm::DType::kF32};
  put.generator = gemm::GeneratorSpec{1};
  put.device = "host:2";
  put.keep.name = "here";
  UploadRecorder uploaded, elsewhere;
  auto upload = engine_->BeginUpload(put, uploaded.done());
  ASSERT_TRUE(upload.ok()) << upload.status();
  (*upload)->Start();
  ASSERT_TRUE(uploaded.Wait().ok());
  JobSpec spec;
  spec.a.source = spec.b.source = FromResident{{"", "here"}};
  auto recorder = std::make_shared<JobRecorder>();
  auto job = engine_->Admit(spec, recorder);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->Start();
  const absl::StatusOr<JobResult> result = recorder->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.device, "host:2");

  put.device = "cuda:7";
  EXPECT_THAT(engine_->BeginUpload(put, elsewhere.done()).status().ToString(),
              HasSubstr("this server has host:0, host:1, host:2, host:3"));
}

TEST_F(EngineTest, ManyThreadsAtOnceGetTheirOwnProducts) {
  Make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        const int64_t m = 1 + (t * 37 + i * 11) % 200, n = 1 + (i * 29) % 150, k = 1 + i * 13;
        const std::vector<float> a = RandomFloats(m * k, t), b = RandomFloats(k * n, 100 + i);
        auto recorder = std::make_shared<JobRecorder>(i % 3);
        auto job = engine_->Admit(Product(m, n, k), recorder);
        ASSERT_TRUE(job.ok()) << job.status();
        (*job)->Start();
        Send(**job, Role::kA, a, 10000);
        if (i % 7 == 3) {
          (*job)->Cancel(absl::CancelledError("by the test"));
        } else {
          Send(**job, Role::kB, b, 30000);
        }
        while (i % 3 != 0 && i % 7 != 3 && recorder->bytes().size() < size_t(m * n * 4)) {
          absl::SleepFor(absl::Microseconds(100));
        }
        recorder->Release();
        const absl::StatusOr<JobResult> result = recorder->Wait();
        EXPECT_EQ(result.ok(), i % 7 != 3) << result.status();
        if (result.ok()) ExpectProduct(m, n, k, a, b, recorder->bytes());
        EXPECT_FALSE(recorder->misused());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectNothingHeld();
}

}  // namespace
}  // namespace gemmd
