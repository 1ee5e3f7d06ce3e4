// The host as a device. Work is done when a call returns.
#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gemm/machine.h"
#include "kernels/bench/backend/backend.h"

namespace gemm::bench {
namespace {

constexpr size_t kHostAlignment = 256;
// Used if the system does not say.
constexpr size_t kUsualCacheBytes = size_t{32} << 20;

// Bytes that can be allocated without swapping. More than is free, as files in the page cache make
// room.
size_t AvailableBytes() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  for (size_t kibibytes = 0; info >> name >> kibibytes; info.ignore(16, '\n')) {
    if (name == "MemAvailable:") return kibibytes * 1024;
  }
  return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) *
         static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

class HostBackend : public Backend {
 public:
  DeviceCaps caps() const override { return {Target::kHost, 0}; }

  Metadata metadata() const override {
    return {{"device", HostMachine().device},
            {"threads", absl::StrCat(openblas_get_num_threads(), " of OpenBLAS, on ",
                                     std::thread::hardware_concurrency(), " CPUs")}};
  }

  size_t cache_bytes() const override {
    const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? static_cast<size_t>(bytes) : kUsualCacheBytes;
  }

  size_t free_bytes() const override { return AvailableBytes(); }

  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    const size_t whole =
        (std::max<size_t>(bytes, 1) + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
    // Linux promises more than there is, and ends the program that takes it at its word.
    if (const size_t available = AvailableBytes(); whole > available) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no ", bytes, " bytes of host memory: ", available, " are available"));
    }
    void* const data = std::aligned_alloc(kHostAlignment, whole);
    if (data == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("no ", bytes, " bytes of host memory"));
    }
    return Buffer(data, [](void* p) { std::free(p); });
  }

  absl::Status Fill(void* data, std::byte value, size_t bytes) override {
    std::memset(data, std::to_integer<int>(value), bytes);
    return absl::OkStatus();
  }

  absl::Status Upload(void* device, const void* host, size_t bytes) override {
    std::memcpy(device, host, bytes);
    return absl::OkStatus();
  }

  absl::Status Synchronize() override { return absl::OkStatus(); }

  absl::Status Read(const void* from, size_t pitch, size_t width, size_t height,
                    void* to) override {
    for (size_t line = 0; line < height; ++line) {
      std::memcpy(static_cast<std::byte*>(to) + line * width,
                  static_cast<const std::byte*>(from) + line * pitch, width);
    }
    return absl::OkStatus();
  }

  Launch MakeLaunch(const Problem& problem, const Operands& operands, Workspace workspace,
                    const LaunchParams& params) override {
    return {.problem = problem, .operands = operands, .workspace = workspace, .params = params};
  }

  absl::StatusOr<double> Time(const std::function<absl::Status(int)>& enqueue, int count,
                              double) override {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      if (const absl::Status status = enqueue(i); !status.ok()) return status;
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return taken.count() / count;
  }

  std::vector<LaunchFn> VendorAlgorithms(const Problem&, const Operands&, int) override {
    return {};
  }
};

}  // namespace

std::unique_ptr<Backend> CreateHostBackend() { return std::make_unique<HostBackend>(); }

}  // namespace gemm::bench
