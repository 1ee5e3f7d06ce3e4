// Timed by events in a CUDA graph.
#include <cuda_runtime_api.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/libraries.h"
#include "gemm/machine.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/backend/nvml_energy.h"
#include "kernels/blas/lt_algorithms.h"
#include "kernels/core/cuda_status.h"

namespace gemm::bench {
namespace {

// Pinned memory through which copies to the host go.
constexpr size_t kPinnedBytes = size_t{4} << 20;

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using ExecutableGraph = std::unique_ptr<CUgraphExec_st, DestroyGraph>;

// "0000:3b:00.0" and an end.
constexpr int kPciBusIdBytes = 32;

// "13.0" for 13000, as CUDA counts.
std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

class CudaBackend : public Backend {
 public:
  static absl::StatusOr<std::unique_ptr<Backend>> Create(int ordinal) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || ordinal >= count) {
      return absl::UnavailableError(
          absl::StrCat("there is no CUDA device ", ordinal, "; there are ", count));
    }
    std::unique_ptr<CudaBackend> backend(new CudaBackend(ordinal));
    absl::Status status = CudaStatus(cudaSetDevice(ordinal), "cudaSetDevice");
    status.Update(CudaStatus(cudaGetDeviceProperties(&backend->properties_, ordinal),
                             "cudaGetDeviceProperties"));
    status.Update(CudaStatus(cudaStreamCreateWithFlags(&backend->stream_, cudaStreamNonBlocking),
                             "cudaStreamCreate"));
    status.Update(CudaStatus(cudaEventCreate(&backend->start_), "cudaEventCreate"));
    status.Update(CudaStatus(cudaEventCreate(&backend->end_), "cudaEventCreate"));
    status.Update(CudaStatus(cudaMallocHost(&backend->pinned_, kPinnedBytes), "cudaMallocHost"));
    if (!status.ok()) return status;
    absl::StatusOr<Machine> machine = CudaMachine(ordinal);
    if (!machine.ok()) return machine.status();
    backend->machine_ = *std::move(machine);
    const absl::StatusOr<DeviceCaps> caps = CudaCaps(ordinal);
    if (!caps.ok()) return caps.status();
    backend->caps_ = *caps;
    auto libraries = CreateLibraries(backend->stream_);
    if (!libraries.ok()) return libraries.status();
    backend->libraries_ = *std::move(libraries);
    return backend;
  }

  ~CudaBackend() override {
    libraries_.reset();
    cudaFreeHost(pinned_);
    if (end_ != nullptr) cudaEventDestroy(end_);
    if (start_ != nullptr) cudaEventDestroy(start_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  DeviceCaps caps() const override { return caps_; }

  Metadata metadata() const override {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    return {{"device", properties_.name},
            {"multiprocessors", absl::StrCat(properties_.multiProcessorCount)},
            {"driver", absl::StrCat(machine_.driver, " (CUDA ", CudaVersion(driver), ")")},
            {"CUDA", machine_.cuda},
            {"cuBLAS", machine_.library}};
  }

  size_t cache_bytes() const override { return static_cast<size_t>(properties_.l2CacheSize); }

  size_t free_bytes() const override {
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    return free;
  }

  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    void* data = nullptr;
    if (cudaMalloc(&data, bytes) != cudaSuccess) {
      (void)cudaGetLastError();  // hides it from the next call
      return absl::ResourceExhaustedError(
          absl::StrCat("no ", bytes, " bytes of device memory; ", free_bytes(), " are free"));
    }
    return Buffer(data, [](void* p) { cudaFree(p); });
  }

  absl::Status Fill(void* data, std::byte value, size_t bytes) override {
    return CudaStatus(cudaMemsetAsync(data, std::to_integer<int>(value), bytes, stream_),
                      "cudaMemsetAsync");
  }

  absl::Status Upload(void* device, const void* host, size_t bytes) override {
    return CudaStatus(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_),
                      "copy to the device");
  }

  absl::Status Synchronize() override {
    return CudaStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  absl::Status Read(const void* from, size_t pitch, size_t width, size_t height,
                    void* to) override {
    const size_t bytes = width * height;
    // Narrow lines are slow to copy into memory that is not pinned.
    const bool through_pinned = bytes <= kPinnedBytes;
    absl::Status status = CudaStatus(
        height == 1 ? cudaMemcpyAsync(through_pinned ? pinned_ : to, from, width,
                                      cudaMemcpyDeviceToHost, stream_)
                    : cudaMemcpy2DAsync(through_pinned ? pinned_ : to, width, from, pitch, width,
                                        height, cudaMemcpyDeviceToHost, stream_),
        "copy from the device");
    status.Update(Synchronize());
    if (status.ok() && through_pinned) std::memcpy(to, pinned_, bytes);
    return status;
  }

  Launch MakeLaunch(const Problem& problem, const Operands& operands, Workspace workspace,
                    const LaunchParams& params) override {
    return {.problem = problem,
            .operands = operands,
            .workspace = workspace,
            .params = params,
            .stream = stream_,
            .libraries = libraries_.get()};
  }

  absl::StatusOr<double> Time(const std::function<absl::Status(int)>& enqueue, int count,
                              double expected_seconds) override {
    const auto enqueue_all = [&](unsigned flags) {
      absl::Status status =
          CudaStatus(cudaEventRecordWithFlags(start_, stream_, flags), "cudaEventRecord");
      for (int i = 0; status.ok() && i < count; ++i) status = enqueue(i);
      status.Update(CudaStatus(cudaEventRecordWithFlags(end_, stream_, flags), "cudaEventRecord"));
      return status;
    };
    // A first run may have to prepare, which it cannot do while it is captured.
    absl::Status status = expected_seconds == 0
                              ? enqueue_all(cudaEventRecordDefault)
                              : RunAsGraph([&] { return enqueue_all(cudaEventRecordExternal); });
    status.Update(Synchronize());
    if (!status.ok()) return status;
    float milliseconds = 0;
    status = CudaStatus(cudaEventElapsedTime(&milliseconds, start_, end_), "cudaEventElapsedTime");
    if (!status.ok()) return status;
    return static_cast<double>(milliseconds) * 1e-3 / count;
  }

  absl::Status Repeat(const std::function<absl::Status(int)>& enqueue, int count,
                      const std::function<bool()>& again) override {
    const absl::StatusOr<ExecutableGraph> batch = Capture([&] {
      absl::Status status;
      for (int i = 0; status.ok() && i < count; ++i) status = enqueue(i);
      return status;
    });
    absl::Status status = batch.status();
    const auto begin = [&](cudaEvent_t end) {
      if (status.ok()) status = Enqueue(*batch);
      if (status.ok()) status = CudaStatus(cudaEventRecord(end, stream_), "cudaEventRecord");
    };
    // The ends of the batch that runs and of the one that waits for it.
    cudaEvent_t running = start_, waiting = end_;
    begin(running);
    while (status.ok()) {
      begin(waiting);
      if (status.ok()) status = CudaStatus(cudaEventSynchronize(running), "cudaEventSynchronize");
      if (!status.ok() || !again()) break;
      std::swap(running, waiting);
    }
    status.Update(Synchronize());
    return status;
  }

  absl::StatusOr<EnergyCounter*> energy() override {
    if (energy_ != nullptr) return energy_.get();
    char bus[kPciBusIdBytes] = "";
    const absl::Status status =
        CudaStatus(cudaDeviceGetPCIBusId(bus, kPciBusIdBytes, ordinal_), "cudaDeviceGetPCIBusId");
    if (!status.ok()) return status;
    absl::StatusOr<std::unique_ptr<EnergyCounter>> opened = OpenNvmlEnergy(bus);
    if (!opened.ok()) return opened.status();
    energy_ = *std::move(opened);
    return energy_.get();
  }

  std::vector<LaunchFn> VendorAlgorithms(const Problem& problem, const Operands& operands,
                                         int count) override {
    auto algorithms = LtAlgorithms(*libraries_, problem, operands, count);
    return algorithms.ok() ? *std::move(algorithms) : std::vector<LaunchFn>();
  }

 private:
  explicit CudaBackend(int ordinal) : ordinal_(ordinal) {}

  // Captures what `enqueue` enqueues into one CUDA graph. The device then does not wait for the
  // host between kernels, however short they are.
  absl::StatusOr<ExecutableGraph> Capture(const std::function<absl::Status()>& enqueue) {
    absl::Status status =
        CudaStatus(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                   "cudaStreamBeginCapture");
    if (!status.ok()) return status;
    status = enqueue();
    cudaGraph_t captured = nullptr;
    status.Update(CudaStatus(cudaStreamEndCapture(stream_, &captured), "cudaStreamEndCapture"));
    const std::unique_ptr<CUgraph_st, DestroyGraph> graph(captured);
    cudaGraphExec_t instantiated = nullptr;
    if (status.ok()) {
      status = CudaStatus(cudaGraphInstantiate(&instantiated, captured, 0), "cudaGraphInstantiate");
    }
    ExecutableGraph executable(instantiated);
    // Otherwise the first launch would upload it.
    if (status.ok()) status = CudaStatus(cudaGraphUpload(instantiated, stream_), "cudaGraphUpload");
    if (status.ok()) return executable;
    (void)cudaGetLastError();  // hides it from the next call
    return status;
  }

  // Enqueues a graph.
  absl::Status Enqueue(const ExecutableGraph& graph) {
    const absl::Status status =
        CudaStatus(cudaGraphLaunch(graph.get(), stream_), "cudaGraphLaunch");
    if (!status.ok()) (void)cudaGetLastError();  // hides it from the next call
    return status;
  }

  absl::Status RunAsGraph(const std::function<absl::Status()>& enqueue) {
    const absl::StatusOr<ExecutableGraph> graph = Capture(enqueue);
    absl::Status status = graph.ok() ? Enqueue(*graph) : graph.status();
    status.Update(Synchronize());
    return status;
  }

  const int ordinal_;
  cudaDeviceProp properties_{};
  DeviceCaps caps_;
  Machine machine_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t end_ = nullptr;
  void* pinned_ = nullptr;
  std::shared_ptr<Libraries> libraries_;
  std::unique_ptr<EnergyCounter> energy_;  // null until it is asked for
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int ordinal) {
  return CudaBackend::Create(ordinal);
}

}  // namespace gemm::bench
