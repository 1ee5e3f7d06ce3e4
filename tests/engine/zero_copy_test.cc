// Kernels that read and write staging memory, and jobs that are copied. The device refuses copies.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "gemm/problem.h"
#include "tests/engine/fault_fixture.h"

namespace gemmd {
namespace {

class ZeroCopyTest : public FaultTest {
 protected:
  static constexpr int64_t kM = 16, kN = 24, kK = 32;

  void SetUp() override { Make(OneDevice()); }
  ~ZeroCopyTest() override { EndEngine(); }

  static EngineOptions OneDevice() {
    EngineOptions options = TwoFaultyDevices();
    options.devices = "faulty:1";
    return options;
  }

  // The job, with the payload of Whole matrices of seed 1, 2, ... in the order of roles.
  absl::Status Run(const JobSpec& spec, const std::vector<float>& expected) {
    Attempt attempt = Begin(spec, expected);
    if (attempt.job == nullptr) return attempt.refused;
    Send(*attempt.job, Role::kA, spec.a, 1);
    Send(*attempt.job, Role::kB, spec.b, 2);
    if (spec.c.has_value()) Send(*attempt.job, Role::kC, *spec.c, 3);
    const absl::Status status = End(attempt);
    if (status.ok() && spec.stream_result) {
      EXPECT_EQ(WrongBits(attempt), 0);
    }
    return status;
  }
  static void Send(Job& job, Role role, const OperandSpec& operand, uint32_t seed) {
    job.Append(role, 0, AsCord(Whole(operand.shape->rows, operand.shape->cols, seed)), [] {});
  }
  absl::Status RunProduct(int64_t m, int64_t n, int64_t k) {
    return Run(Product(m, n, k), WholeProduct(m, n, k, 1, 2));
  }

  // Whether the next copy of that kind, of all that the function does, was asked for.
  template <typename Function>
  bool Copies(Operation operation, const Function& function) {
    const int before = device(0).struck();
    device(0).Inject({Fault::kRefused, operation});
    const absl::Status status = function();
    device(0).ClearInjections();
    const bool copied = device(0).struck() > before;
    EXPECT_EQ(status.code(), copied ? absl::StatusCode::kInternal : absl::StatusCode::kOk)
        << status;
    return copied;
  }
  bool CopiesOf(Operation operation, int64_t m, int64_t n, int64_t k) {
    return Copies(operation, [&] { return RunProduct(m, n, k); });
  }
};

TEST_F(ZeroCopyTest, NothingOfASmallProductIsCopied) {
  EXPECT_FALSE(CopiesOf(Operation::kUpload, kM, kN, kK));
  EXPECT_FALSE(CopiesOf(Operation::kDownload, kM, kN, kK));
  ExpectAllBack();
}

// 100 bytes a line, 112 from one to the next; 76 and 80 of the result.
TEST_F(ZeroCopyTest, LinesOfThePayloadMayHaveGapsAndThoseOfTheResultMayNot) {
  EXPECT_FALSE(CopiesOf(Operation::kUpload, 16, 19, 25));
  EXPECT_TRUE(CopiesOf(Operation::kDownload, 16, 19, 25));
  EXPECT_EQ(RunProduct(16, 19, 25), absl::OkStatus());
}

// 16 KiB of payload and of result, and a line more of each.
TEST_F(ZeroCopyTest, WhatIsLargerIsCopied) {
  EXPECT_FALSE(CopiesOf(Operation::kUpload, 64, 64, 32));
  EXPECT_FALSE(CopiesOf(Operation::kDownload, 64, 64, 32));
  EXPECT_TRUE(CopiesOf(Operation::kUpload, 81, 48, 32));
  EXPECT_TRUE(CopiesOf(Operation::kDownload, 65, 64, 8));
}

// Many tiles would read the payload again.
TEST_F(ZeroCopyTest, APayloadIsCopiedWhereTheResultIsLarger) {
  EXPECT_TRUE(CopiesOf(Operation::kUpload, 65, 64, 8));
}

TEST_F(ZeroCopyTest, ThePayloadOfABatchIsCopied) {
  const auto run = [&](int64_t batch) {
    JobSpec spec = Product(8, 8, 8);
    spec.batch = batch;
    spec.a.shape->rows = spec.b.shape->rows = 8 * batch;
    std::vector<float> expected;
    const std::vector<float>& a = Whole(8 * batch, 8, 1);
    const std::vector<float>& b = Whole(8 * batch, 8, 2);
    for (int64_t i = 0; i < 8 * batch; ++i) {
      for (int64_t j = 0; j < 8; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < 8; ++l) sum += a[i * 8 + l] * b[(i / 8 * 8 + l) * 8 + j];
        expected.push_back(sum);
      }
    }
    return Run(spec, expected);
  };
  EXPECT_TRUE(Copies(Operation::kUpload, [&] { return run(4); }));
  EXPECT_FALSE(Copies(Operation::kDownload, [&] { return run(4); }));
}

// A kernel that waits for each tile along k would do so three times.
TEST_F(ZeroCopyTest, APayloadIsCopiedWhereKIsDeep) {
  JobSpec deep = Product(4, 4, 65);
  deep.kernel.name = "host_openblas";
  EXPECT_TRUE(Copies(Operation::kUpload, [&] { return Run(deep, WholeProduct(4, 4, 65, 1, 2)); }));
  EXPECT_FALSE(CopiesOf(Operation::kUpload, 4, 4, 64));
}

TEST_F(ZeroCopyTest, TheFlagTurnsItOff) {
  EndEngine();
  EngineOptions options = OneDevice();
  options.zero_copy_bytes = 0;
  Make(options);
  EXPECT_TRUE(CopiesOf(Operation::kUpload, kM, kN, kK));
  EXPECT_TRUE(CopiesOf(Operation::kDownload, kM, kN, kK));
}

// A library adds it to a D that it has written, which it would read over the bus.
TEST_F(ZeroCopyTest, CIsReadInHostMemoryAndTheSumIsInDeviceMemory) {
  JobSpec spec = Product(kM, kN, kK);
  spec.beta = 2;
  spec.c = OperandSpec{Shape{kM, kN, gemm::DType::kF32}, FromPayload{}};
  std::vector<float> expected = WholeProduct(kM, kN, kK, 1, 2);
  const std::vector<float>& c = Whole(kM, kN, 3);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += 2 * c[i];
  EXPECT_FALSE(Copies(Operation::kUpload, [&] { return Run(spec, expected); }));
  EXPECT_TRUE(Copies(Operation::kDownload, [&] { return Run(spec, expected); }));
  EXPECT_EQ(Run(spec, expected), absl::OkStatus());
}

// It is written into device memory, where it stays.
TEST_F(ZeroCopyTest, AResultThatIsKeptIsInDeviceMemory) {
  JobSpec spec = Product(kM, kN, kK);
  spec.keep_result = KeepSpec{.name = "d"};
  EXPECT_TRUE(
      Copies(Operation::kDownload, [&] { return Run(spec, WholeProduct(kM, kN, kK, 1, 2)); }));
  EXPECT_EQ(Run(spec, WholeProduct(kM, kN, kK, 1, 2)), absl::OkStatus());
  JobSpec next = Product(kM, kM, kN);
  next.a = {std::nullopt, FromResident{{.name = "d"}}};
  const std::vector<float>& d = WholeProduct(kM, kN, kK, 1, 2);
  const std::vector<float>& b = Whole(kN, kM, 2);
  std::vector<float> expected(kM * kM);
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t l = 0; l < kN; ++l) {
      for (int64_t j = 0; j < kM; ++j) expected[i * kM + j] += d[i * kN + l] * b[l * kM + j];
    }
  }
  Attempt attempt = Begin(next, expected);
  Send(*attempt.job, Role::kB, next.b, 2);
  EXPECT_EQ(End(attempt), absl::OkStatus());
  EXPECT_EQ(WrongBits(attempt), 0);
  DeleteAll();
  ExpectAllBack();
}

// The check, and the second kernel, read the operands again.
TEST_F(ZeroCopyTest, OfACheckedProductAllIsCopied) {
  JobSpec spec = Product(kM, kN, kK);
  spec.verify = Verify::kAlways;
  for (const Operation operation : {Operation::kUpload, Operation::kDownload}) {
    EXPECT_TRUE(Copies(operation, [&] { return Run(spec, WholeProduct(kM, kN, kK, 1, 2)); }));
  }
}

// The receiver holds its share of the blocks: the product goes through device memory.
TEST_F(ZeroCopyTest, WithoutABlockForTheResultItWaitsInDeviceMemory) {
  StagingPool& blocks = device(0).download_staging();
  std::vector<StagingBlock> taken;
  while (StagingBlock block = blocks.TryAcquire()) taken.push_back(std::move(block));
  Attempt attempt = Begin(Product(kM, kN, kK), WholeProduct(kM, kN, kK, 1, 2));
  Send(*attempt.job, Role::kA, Product(kM, kN, kK).a, 1);
  Send(*attempt.job, Role::kB, Product(kM, kN, kK).b, 2);
  ASSERT_NO_FATAL_FAILURE(Await([&] { return StatsOf(0).streams.used == 0; }));
  taken.clear();
  EXPECT_EQ(End(attempt), absl::OkStatus());
  EXPECT_EQ(WrongBits(attempt), 0);
  ExpectAllBack();
}

}  // namespace
}  // namespace gemmd
