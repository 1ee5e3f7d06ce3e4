#include "tests/kernels/gpu.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/machine.h"
#include "gemm/run.h"
#include "kernels/core/cuda_status.h"

namespace gemm::testing {
namespace {

bool HasDevice() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

absl::Status LaunchOn(Gpu& gpu, const Kernel& kernel, const ProductData& data,
                      const Operands& operands, Workspace workspace, const LaunchParams& params) {
  return RunProduct(kernel, {.problem = data.product.problem,
                             .operands = operands,
                             .workspace = workspace,
                             .params = params,
                             .stream = gpu.stream(),
                             .libraries = gpu.libraries()});
}

// An allocation of device memory for one matrix: compute-sanitizer knows where it ends.
class ExactBuffer {
 public:
  ExactBuffer(const std::byte* host, size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(cudaMalloc(&data_, std::max<size_t>(bytes, 1)), cudaSuccess);
    if (host != nullptr) {
      EXPECT_EQ(cudaMemcpy(data_, host, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    }
  }
  // The matrix between the guard bands.
  explicit ExactBuffer(const GuardedMatrix& matrix)
      : ExactBuffer(matrix.bytes().data() + GuardedMatrix::kBand,
                    matrix.bytes().size() - 2 * GuardedMatrix::kBand) {}
  ~ExactBuffer() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  ExactBuffer(const ExactBuffer&) = delete;
  ExactBuffer& operator=(const ExactBuffer&) = delete;

  void* data() const { return data_; }
  void ReadInto(GuardedMatrix& matrix) const {
    EXPECT_EQ(cudaMemcpy(matrix.data(), data_, bytes_, cudaMemcpyDeviceToHost), cudaSuccess);
  }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

}  // namespace

Gpu* Gpu::Get() {
  static Gpu* const gpu = Create();
  return gpu;
}

Gpu* Gpu::Create() {
  auto gpu = std::make_unique<Gpu>();
  const absl::StatusOr<DeviceCaps> caps = CudaCaps(0);
  if (!caps.ok()) return nullptr;
  gpu->caps_ = *caps;
  void* memory = nullptr;
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) return nullptr;
  gpu->memory_ = static_cast<std::byte*>(memory);
  if (cudaStreamCreate(&gpu->stream_) != cudaSuccess) return nullptr;
  auto libraries = CreateLibraries(gpu->stream_);
  if (!libraries.ok()) return nullptr;
  gpu->libraries_ = *std::move(libraries);
  return gpu.release();
}

std::byte* Gpu::Allocate(size_t bytes, size_t offset) {
  std::byte* const data = memory_ + used_ + offset;
  used_ += (bytes + offset + 255) / 256 * 256;
  EXPECT_LE(used_, kBytes) << "the test's device memory is too small";
  return data;
}

std::byte* Gpu::Upload(const std::vector<std::byte>& bytes, size_t offset) {
  std::byte* const data = Allocate(bytes.size(), offset);
  EXPECT_EQ(cudaMemcpyAsync(data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_),
            cudaSuccess);
  return data;
}

void Gpu::Download(const std::byte* data, std::vector<std::byte>& bytes) {
  EXPECT_EQ(cudaMemcpyAsync(bytes.data(), data, bytes.size(), cudaMemcpyDeviceToHost, stream_),
            cudaSuccess);
}

absl::Status Gpu::Synchronize() {
  return CudaStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

void GpuTest::SetUp() {
  if (!HasDevice()) GTEST_SKIP() << "skipped: no CUDA device";
  ASSERT_NE(Gpu::Get(), nullptr) << cudaGetErrorString(cudaGetLastError());
}

LaunchParams Defaults(const Kernel& kernel) { return ResolveParams(kernel, {}).value(); }

absl::Status RunOnGpu(const Kernel& kernel, ProductData& data, const LaunchParams& params,
                      size_t offset) {
  Gpu& gpu = *Gpu::Get();
  gpu.Reset();
  constexpr size_t kBand = GuardedMatrix::kBand;
  std::byte* const a = gpu.Upload(data.a.bytes(), offset);
  std::byte* const b = gpu.Upload(data.b.bytes(), offset);
  std::byte* const c = gpu.Upload(data.c.bytes(), offset);
  std::byte* const bias = gpu.Upload(data.bias.bytes(), offset);
  std::byte* const d = gpu.Upload(data.d.bytes(), offset);
  std::byte* const scales_a = gpu.Upload(data.scales_a.bytes(), offset);
  std::byte* const scales_b = gpu.Upload(data.scales_b.bytes(), offset);
  Operands operands = data.ForReference();
  if (HasBlockScales(data.product.problem)) {
    operands.scales_a.data = reinterpret_cast<const float*>(scales_a + kBand);
    operands.scales_b.data = reinterpret_cast<const float*>(scales_b + kBand);
  }
  operands.a = a + kBand;
  operands.b = b + kBand;
  operands.d = d + kBand;
  if (data.reads_c()) operands.c = (data.product.c_is_d ? d : c) + kBand;
  if (data.reads_bias()) operands.bias = bias + kBand;
  const size_t bytes = WorkspaceBytes(kernel, data.product.problem);
  std::byte* const workspace = gpu.Allocate(bytes, 0);
  EXPECT_EQ(cudaMemsetAsync(workspace, 0xFF, bytes, gpu.stream()), cudaSuccess);
  const absl::Status launched = LaunchOn(gpu, kernel, data, operands, {workspace, bytes}, params);
  if (!launched.ok()) return launched;
  gpu.Download(a, data.a.bytes());
  gpu.Download(b, data.b.bytes());
  gpu.Download(c, data.c.bytes());
  gpu.Download(bias, data.bias.bytes());
  gpu.Download(scales_a, data.scales_a.bytes());
  gpu.Download(scales_b, data.scales_b.bytes());
  gpu.Download(d, data.d.bytes());
  return gpu.Synchronize();
}

absl::Status RunInExactBuffers(const Kernel& kernel, ProductData& data) {
  Gpu& gpu = *Gpu::Get();
  const ExactBuffer a(data.a), b(data.b), c(data.c), bias(data.bias), d(data.d);
  const ExactBuffer scales_a(data.scales_a), scales_b(data.scales_b);
  const size_t bytes = WorkspaceBytes(kernel, data.product.problem);
  const ExactBuffer workspace(nullptr, bytes);
  Operands operands = data.ForReference();
  operands.a = a.data();
  operands.b = b.data();
  operands.d = d.data();
  if (data.reads_c()) operands.c = data.product.c_is_d ? d.data() : c.data();
  if (data.reads_bias()) operands.bias = bias.data();
  if (HasBlockScales(data.product.problem)) {
    operands.scales_a.data = static_cast<const float*>(scales_a.data());
    operands.scales_b.data = static_cast<const float*>(scales_b.data());
  }
  absl::Status status =
      LaunchOn(gpu, kernel, data, operands, {workspace.data(), bytes}, Defaults(kernel));
  if (status.ok()) status = gpu.Synchronize();
  d.ReadInto(data.d);
  return status;
}

std::string Describe(const Kernel& kernel, const LaunchParams& params) {
  std::string text;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    absl::StrAppend(&text, " ", kernel.params[i].name, "=", params[i]);
  }
  return text;
}

ProductData InF64OnGpu(const ProductData& data, double (*of)(double)) {
  ProductCase product = data.product;
  product.problem.types = {DType::kF64, DType::kF64, DType::kF64, Compute::kF64};
  ProductData wide(product);
  const auto copy = [of](const GuardedMatrix& from, GuardedMatrix& to) {
    for (int64_t i = 0; i < from.rows(); ++i) {
      for (int64_t j = 0; j < from.cols(); ++j) to.Set(i, j, of(from.At(i, j)));
    }
  };
  copy(data.a, wide.a);
  copy(data.b, wide.b);
  const absl::StatusOr<const Kernel*> cublas = FindKernel("cublas_f64");
  EXPECT_TRUE(cublas.ok()) << cublas.status();
  EXPECT_EQ(RunOnGpu(**cublas, wide, Defaults(**cublas), 0), absl::OkStatus());
  return wide;
}

std::string CheckOnGpu(const Kernel& kernel, const ProductCase& product,
                       const LaunchParams& params) {
  const auto run = [&](const Kernel& row, ProductData& data) {
    return RunOnGpu(row, data, params, 16);
  };
  const std::string wrong = CheckProduct(kernel, product, run, 3000);
  return wrong.empty() ? "" : absl::StrCat(wrong, Describe(kernel, params));
}

}  // namespace gemm::testing
