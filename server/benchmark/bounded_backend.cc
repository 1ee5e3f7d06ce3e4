#include "server/benchmark/bounded_backend.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

using gemm::bench::Buffer;

// Launches that nobody can stop any more take no longer than this, unless a
// single one does.
constexpr double kPartSeconds = 0.25;

int LaunchesOfPart(double expected_seconds, int count) {
  if (expected_seconds * count <= kPartSeconds) return count;
  return std::max(1, static_cast<int>(kPartSeconds / expected_seconds));
}

}  // namespace

BoundedBackend::BoundedBackend(std::unique_ptr<gemm::bench::Backend> device, size_t memory_bytes,
                               std::function<absl::Status()> stopped, const std::atomic<bool>* stop)
    : device_(std::move(device)),
      memory_bytes_(memory_bytes),
      stopped_(std::move(stopped)),
      stop_(stop) {}

size_t BoundedBackend::free_bytes() const {
  return std::min(device_->free_bytes(), memory_bytes_ - used_bytes_);
}

absl::StatusOr<Buffer> BoundedBackend::Allocate(size_t bytes) {
  if (bytes > memory_bytes_ - used_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", bytes, " bytes: a benchmark may take ", memory_bytes_,
                     " of the device's memory (the server's flag --benchmark-memory), of which ",
                     used_bytes_, " are taken"));
  }
  absl::StatusOr<Buffer> buffer = device_->Allocate(bytes);
  if (!buffer.ok()) return buffer.status();
  used_bytes_ += bytes;
  std::function<void(void*)> free = buffer->get_deleter();
  return Buffer(buffer->release(), [this, bytes, free = std::move(free)](void* data) {
    free(data);
    used_bytes_ -= bytes;
  });
}

absl::Status BoundedBackend::Fill(void* data, std::byte value, size_t bytes) {
  return device_->Fill(data, value, bytes);
}

absl::Status BoundedBackend::Upload(void* device, const void* host, size_t bytes) {
  if (absl::Status stopped = stopped_(); !stopped.ok()) return stopped;
  return device_->Upload(device, host, bytes);
}

absl::Status BoundedBackend::Read(const void* from, size_t pitch, size_t width, size_t height,
                                  void* to) {
  return device_->Read(from, pitch, width, height, to);
}

gemm::Launch BoundedBackend::MakeLaunch(const gemm::Problem& problem,
                                        const gemm::Operands& operands, gemm::Workspace workspace,
                                        const gemm::LaunchParams& params) {
  gemm::Launch launch = device_->MakeLaunch(problem, operands, workspace, params);
  launch.stop = stop_;
  return launch;
}

absl::StatusOr<double> BoundedBackend::Time(const std::function<absl::Status(int)>& enqueue,
                                            int count, double expected_seconds) {
  double total = 0;
  for (int first = 0; first < count;) {
    const int part = LaunchesOfPart(expected_seconds, count - first);
    const auto launch = [&](int i) -> absl::Status {
      if (absl::Status stopped = stopped_(); !stopped.ok()) return stopped;
      return enqueue(first + i);
    };
    const absl::StatusOr<double> each = device_->Time(launch, part, expected_seconds);
    if (!each.ok()) return each.status();
    total += *each * part;
    first += part;
  }
  return total / count;
}

std::vector<gemm::bench::LaunchFn> BoundedBackend::VendorAlgorithms(const gemm::Problem& problem,
                                                                    const gemm::Operands& operands,
                                                                    int count) {
  return device_->VendorAlgorithms(problem, operands, count);
}

}  // namespace gemmd
