// The base of the device cases: a device, its memory, copies through staging.
#include "tests/engine/device_suite.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/engine/device/device_kinds.h"

namespace gemmd {

EngineOptions SmallDeviceOptions(const std::string& devices) {
  EngineOptions options;
  options.devices = devices;
  options.device_memory_bytes = 64 * kMiB;
  options.staging_bytes = kMiB;
  options.staging_block_bytes = 64 * kKiB;
  options.streams_per_device = 3;
  return options;
}

absl::Status Finish(Stream& stream) {
  Mutex mutex;
  CondVar changed;
  bool called = false;
  absl::Status status;
  stream.Notify([&](absl::Status ended) {
    MutexLock lock(mutex);
    status = std::move(ended);
    called = true;
    changed.NotifyOne();
  });
  MutexLock lock(mutex);
  while (!called) changed.Wait(mutex);
  return status;
}

void DeviceSuite::SetUp() {
  // Only kinds that a machine may lack can be absent: a kind that is made never is.
  const absl::Status present = ParseDeviceSpec(GetParam(), DeviceKinds()).status();
  if (absl::IsFailedPrecondition(present)) GTEST_SKIP() << "skipped: " << present.message();
  auto devices = CreateDevices(SmallDeviceOptions(GetParam()));
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u);
  device_ = std::move(devices->front());
}

Pitched DeviceSuite::Allocate(int64_t lines, int64_t line_bytes, int64_t pitch_bytes) {
  absl::StatusOr<DeviceBuffer> buffer = device().memory().Allocate(lines * pitch_bytes);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  if (!buffer.ok()) return {};
  buffers_.push_back(*std::move(buffer));
  return {.data = buffers_.back().data(),
          .lines = lines,
          .line_bytes = line_bytes,
          .pitch_bytes = pitch_bytes};
}

StagingBlock DeviceSuite::Stage(StagingPool& pool) {
  Mutex mutex;
  CondVar changed;
  StagingBlock taken;
  pool.Acquire([&](StagingBlock block) {
    MutexLock lock(mutex);
    taken = std::move(block);
    changed.NotifyOne();
  });
  MutexLock lock(mutex);
  while (!taken) changed.Wait(mutex);
  return taken;
}

void DeviceSuite::Put(const Pitched& matrix, size_t offset, const std::vector<std::byte>& bytes) {
  const size_t block_bytes = device().upload_staging().block_bytes();
  for (size_t done = 0; done < bytes.size(); done += block_bytes) {
    const size_t size = std::min(block_bytes, bytes.size() - done);
    StagingBlock block = Stage(device().upload_staging());
    std::memcpy(block.data(), bytes.data() + done, size);
    Stream& stream = device().upload_stream();
    EXPECT_EQ(stream.Upload(block.data(), matrix, offset + done, size), absl::OkStatus());
    stream.Notify([held = std::make_shared<StagingBlock>(std::move(block))](absl::Status) {});
  }
  EXPECT_EQ(Finish(device().upload_stream()), absl::OkStatus());
}

std::vector<std::byte> DeviceSuite::Get(const Pitched& matrix, size_t offset, size_t bytes) {
  const size_t block_bytes = device().download_staging().block_bytes();
  std::vector<std::byte> result(bytes);
  for (size_t done = 0; done < bytes; done += block_bytes) {
    const size_t size = std::min(block_bytes, bytes - done);
    const StagingBlock block = Stage(device().download_staging());
    Stream& stream = device().download_stream();
    EXPECT_EQ(stream.Download(matrix, offset + done, size, block.data()), absl::OkStatus());
    EXPECT_EQ(Finish(stream), absl::OkStatus());
    std::memcpy(result.data() + done, block.data(), size);
  }
  return result;
}

std::vector<std::byte> DeviceSuite::GetPitched(const Pitched& matrix) {
  return GetAll({.data = matrix.data,
                 .lines = 1,
                 .line_bytes = static_cast<int64_t>(matrix.pitched_bytes()),
                 .pitch_bytes = static_cast<int64_t>(matrix.pitched_bytes())});
}

std::vector<std::byte> DeviceSuite::RandomBytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
  return bytes;
}

}  // namespace gemmd
