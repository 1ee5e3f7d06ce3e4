// Every row of the catalogue that the GPU runs, against the oracle on the host.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "gemm/libraries.h"
#include "kernels/core/cuda_status.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {
namespace {

bool HasDevice() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

// One stream with its libraries, and device memory handed out front to back.
class Gpu {
 public:
  // Created on first use, for the life of the program; null where it failed.
  static Gpu* Get() {
    static Gpu* const gpu = Create();
    return gpu;
  }

  DeviceCaps caps() const { return {Target::kCuda, capability_}; }
  cudaStream_t stream() const { return stream_; }
  Libraries* libraries() const { return libraries_.get(); }

  // Takes all memory back.
  void Reset() { used_ = 0; }

  // `offset` bytes past a 256-byte boundary.
  std::byte* Allocate(size_t bytes, size_t offset) {
    std::byte* const data = memory_ + used_ + offset;
    used_ += (bytes + offset + 255) / 256 * 256;
    EXPECT_LE(used_, kBytes) << "the test's device memory is too small";
    return data;
  }

  std::byte* Upload(const std::vector<std::byte>& bytes, size_t offset) {
    std::byte* const data = Allocate(bytes.size(), offset);
    EXPECT_EQ(cudaMemcpyAsync(data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_),
              cudaSuccess);
    return data;
  }

  void Download(const std::byte* data, std::vector<std::byte>& bytes) {
    EXPECT_EQ(cudaMemcpyAsync(bytes.data(), data, bytes.size(), cudaMemcpyDeviceToHost, stream_),
              cudaSuccess);
  }

  absl::Status Synchronize() {
    return CudaStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

 private:
  static constexpr size_t kBytes = size_t{1} << 30;

  static Gpu* Create() {
    auto gpu = std::make_unique<Gpu>();
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return nullptr;
    gpu->capability_ = properties.major * 10 + properties.minor;
    void* memory = nullptr;
    if (cudaMalloc(&memory, kBytes) != cudaSuccess) return nullptr;
    gpu->memory_ = static_cast<std::byte*>(memory);
    if (cudaStreamCreate(&gpu->stream_) != cudaSuccess) return nullptr;
    auto libraries = CreateLibraries(gpu->stream_);
    if (!libraries.ok()) return nullptr;
    gpu->libraries_ = *std::move(libraries);
    return gpu.release();
  }

  int capability_ = 0;
  std::byte* memory_ = nullptr;
  size_t used_ = 0;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<Libraries> libraries_;
};

// Matrices start `offset` bytes past a 256-byte boundary; 16 is the least that
// kernels may count on.
absl::Status RunOnGpu(const Kernel& kernel, ProductData& data, size_t offset) {
  Gpu& gpu = *Gpu::Get();
  gpu.Reset();
  constexpr size_t kBand = GuardedMatrix::kBand;
  const Problem& problem = data.product.problem;
  std::byte* const a = gpu.Upload(data.a.bytes(), offset);
  std::byte* const b = gpu.Upload(data.b.bytes(), offset);
  std::byte* const c = gpu.Upload(data.c.bytes(), offset);
  std::byte* const bias = gpu.Upload(data.bias.bytes(), offset);
  std::byte* const d = gpu.Upload(data.d.bytes(), offset);
  Operands operands = data.ForReference();
  operands.a = a + kBand;
  operands.b = b + kBand;
  operands.d = d + kBand;
  if (data.reads_c()) operands.c = (data.product.c_is_d ? d : c) + kBand;
  if (data.reads_bias()) operands.bias = bias + kBand;
  const size_t bytes = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(problem);
  std::byte* const workspace = gpu.Allocate(bytes, 0);
  EXPECT_EQ(cudaMemsetAsync(workspace, 0xFF, bytes, gpu.stream()), cudaSuccess);
  const absl::Status launched = kernel.launch({.problem = problem,
                                               .operands = operands,
                                               .workspace = {workspace, bytes},
                                               .params = ResolveParams(kernel, {}).value(),
                                               .stream = gpu.stream(),
                                               .libraries = gpu.libraries()});
  if (!launched.ok()) return launched;
  gpu.Download(a, data.a.bytes());
  gpu.Download(b, data.b.bytes());
  gpu.Download(c, data.c.bytes());
  gpu.Download(bias, data.bias.bytes());
  gpu.Download(d, data.d.bytes());
  return gpu.Synchronize();
}

absl::Status RunUnaligned(const Kernel& kernel, ProductData& data) {
  return RunOnGpu(kernel, data, 16);
}

std::vector<const Kernel*> CudaKernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->target == Target::kCuda) kernels.push_back(kernel);
  }
  return kernels;
}

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasDevice()) GTEST_SKIP() << "skipped: no CUDA device";
    ASSERT_NE(Gpu::Get(), nullptr) << cudaGetErrorString(cudaGetLastError());
  }
};

class GpuKernel : public GpuTest, public ::testing::WithParamInterface<const Kernel*> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const absl::Status status = CheckDevice(kernel(), Gpu::Get()->caps());
    if (!status.ok()) GTEST_SKIP() << "skipped: " << status.message();
  }

  const Kernel& kernel() const { return *GetParam(); }

  // The combinations in turn, so that each gets its share of the cases.
  const Types& NextTypes() { return kernel().types[next_types_++ % kernel().types.size()]; }

  void Check(const ProductCase& product) {
    EXPECT_EQ(CheckProduct(kernel(), product, RunUnaligned, 3000), "");
  }

 private:
  size_t next_types_ = 0;
};

TEST_P(GpuKernel, RandomShapesLayoutsAndEpilogues) {
  std::mt19937_64 random(11);
  std::uniform_int_distribution<int64_t> dim(1, 300);
  for (int round = 0; round < 60; ++round) {
    const Types& types = NextTypes();
    Check(RandomCase(types, dim(random), dim(random), dim(random), random));
  }
}

// One element, vectors, primes, one beside the sizes that tiles have, and more
// rows or columns than a grid's second dimension has blocks.
TEST_P(GpuKernel, EdgeShapes) {
  constexpr int64_t kShapes[][3] = {
      {1, 1, 1},       {1, 1, 4099},    {1, 517, 33},     {523, 1, 31},      {2, 2, 2},
      {7, 11, 13},     {31, 33, 32},    {64, 64, 64},     {63, 65, 127},     {128, 128, 128},
      {129, 127, 129}, {256, 256, 256}, {257, 255, 259},  {8, 8, 8},         {16, 16, 16},
      {17, 1031, 3},   {1031, 17, 3},   {3, 5, 70001},    {600011, 1, 2},    {1, 600011, 2},
      {70001, 3, 5},   {509, 521, 541}, {1023, 511, 255}, {2049, 2047, 2053}};
  std::mt19937_64 random(12);
  for (const auto& [m, n, k] : kShapes) {
    const Types& types = NextTypes();
    Check(RandomCase(types, m, n, k, random));
  }
}

TEST_P(GpuKernel, EveryTransposeBiasAndActivation) {
  uint64_t seed = 1;
  for (const int transposes : {0, 1, 2, 3}) {
    for (const BiasAxis bias : {BiasAxis::kNone, BiasAxis::kColumns, BiasAxis::kRows}) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kLeakyRelu}) {
        ProductCase product;
        product.problem = {.m = 131,
                           .n = 77,
                           .k = 40,
                           .types = NextTypes(),
                           .trans_a = transposes % 2 == 1,
                           .trans_b = transposes / 2 == 1,
                           .alpha = 1.25,
                           .beta = seed % 3 == 0 ? 0.0 : -0.75,
                           .bias = bias,
                           .activation = activation};
        product.c_is_d = seed % 3 == 1;
        product.extra_pitch_bytes = 32;
        product.seed = seed++;
        Check(product);
      }
    }
  }
}

TEST_P(GpuKernel, SameBitsEveryTime) {
  if (!kernel().deterministic) GTEST_SKIP() << "skipped: not a deterministic kernel";
  constexpr int64_t kShapes[][3] = {{300, 200, 100}, {64, 64, 8192}, {1021, 1019, 1013}};
  std::mt19937_64 random(13);
  for (const auto& [m, n, k] : kShapes) {
    const ProductCase product = RandomCase(NextTypes(), m, n, k, random);
    const ProductData fresh(product);
    ProductData first = fresh;
    ASSERT_EQ(RunOnGpu(kernel(), first, 0), absl::OkStatus());
    for (int run = 1; run < 20; ++run) {
      ProductData again = fresh;
      ASSERT_EQ(RunOnGpu(kernel(), again, 0), absl::OkStatus());
      ASSERT_EQ(again.d.bytes(), first.d.bytes()) << "run " << run << " of " << product;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuKernel, ::testing::ValuesIn(CudaKernels()),
                         [](const auto& info) { return std::string(info.param->name); });

using GpuGenerator = GpuTest;

TEST_F(GpuGenerator, SameBitsAsTheHost) {
  Gpu& gpu = *Gpu::Get();
  const GeneratorSpec specs[] = {{17, Distribution::kUniform, -1, 3},
                                 {~uint64_t{0}, Distribution::kNormal, 0.5, 2}};
  for (const DType type : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    for (const GeneratorSpec& spec : specs) {
      for (const bool column_major : {false, true}) {
        GuardedMatrix host(1031, 517, type, 48);
        // Of a column-major matrix the lines are the columns.
        const auto target = [&](void* data) {
          GeneratorTarget t = host.TargetAt(data);
          if (column_major) std::swap(t.rows, t.cols);
          t.column_major = column_major;
          return t;
        };
        GuardedMatrix device = host;
        ASSERT_EQ(GenerateHost(spec, target(host.data())), absl::OkStatus());
        gpu.Reset();
        std::byte* const data = gpu.Upload(device.bytes(), 16);
        ASSERT_EQ(GenerateCuda(spec, target(data + GuardedMatrix::kBand), gpu.stream()),
                  absl::OkStatus());
        gpu.Download(data, device.bytes());
        ASSERT_EQ(gpu.Synchronize(), absl::OkStatus());
        EXPECT_TRUE(device.bytes() == host.bytes())
            << Name(type) << (column_major ? " column-major" : " row-major");
        EXPECT_TRUE(device.GuardIntact());
      }
    }
  }
}

TEST_F(GpuGenerator, OtherTypesAreUnimplemented) {
  const absl::Status status =
      GenerateCuda({}, {nullptr, DType::kS8, 1, 1, 16, false}, Gpu::Get()->stream());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
}

using GpuLibraries = GpuTest;

// A factor that f16 cannot hold is refused, not turned into infinity.
TEST_F(GpuLibraries, FactorBeyondTheScaleTypeIsAnError) {
  for (const char* name : {"cublas_f16acc16", "cublaslt_f16acc16"}) {
    const Kernel& kernel = **FindKernel(name);
    ProductCase product;
    product.problem = {.m = 8, .n = 8, .k = 8, .types = kernel.types[0], .alpha = 1e6};
    ProductData data(product);
    const absl::Status status = RunUnaligned(kernel, data);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()),
              "alpha is 1e+06, too large for f16, in which this kernel scales");
  }
}

// More problems than the cache of plans holds, then the first ones again.
TEST_F(GpuLibraries, PlansComeBackAfterTheyWereForgotten) {
  const Kernel& kernel = **FindKernel("cublaslt_f32");
  std::mt19937_64 random(14);
  std::vector<ProductCase> products;
  for (int64_t m = 1; m <= 300; ++m) {
    products.push_back(RandomCase(kernel.types[0], m, 9, 10, random));
  }
  for (int64_t m = 1; m <= 20; ++m) products.push_back(products[static_cast<size_t>(m - 1)]);
  for (const ProductCase& product : products) {
    ASSERT_EQ(CheckProduct(kernel, product, RunUnaligned, 3000), "");
  }
}

}  // namespace
}  // namespace gemm::testing
