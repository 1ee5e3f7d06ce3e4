// The behaviour of every device: device_test.cc runs these cases on the host device,
// gpu_device_test.cc on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/device/device.h"

namespace gemmd {

// A small device: 64 MiB of memory, 16 staging blocks of 64 KiB each way, three
// compute streams.
EngineOptions SmallDeviceOptions(const std::string& devices);

// Waits until the stream's work has ended. Returns the status of its Notify.
absl::Status Finish(Stream& stream);

// The parameter is a device spec of one device, such as "host" or "cuda:0". The case is skipped if
// the machine has no such device.
class DeviceSuite : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override;

  Device& device() { return *device_; }
  Stream& compute(int i = 0) { return *device_->compute_streams()[i]; }

  // Memory for a matrix; lives until the end of the case.
  Pitched Allocate(int64_t lines, int64_t line_bytes, int64_t pitch_bytes);
  // A free block, waited for.
  StagingBlock Stage(StagingPool& pool);
  // Copy a range through staging, and wait for it.
  void Put(const Pitched& matrix, size_t offset, const std::vector<std::byte>& bytes);
  std::vector<std::byte> Get(const Pitched& matrix, size_t offset, size_t bytes);
  std::vector<std::byte> GetAll(const Pitched& matrix) {
    return Get(matrix, 0, matrix.dense_bytes());
  }
  // The gaps between lines as well.
  std::vector<std::byte> GetPitched(const Pitched& matrix);

  std::vector<std::byte> RandomBytes(size_t count);

  std::mt19937_64 random_{42};
  std::unique_ptr<Device> device_;
  std::vector<DeviceBuffer> buffers_;
};

}  // namespace gemmd
