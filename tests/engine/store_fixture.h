// A store of three devices under a test's clock.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/store/store.h"
#include "tests/base/test_clock.h"
#include "tests/engine/fake_device.h"

namespace gemmd {

class StoreTest : public ::testing::Test {
 protected:
  static constexpr int kDevices = 3;
  static constexpr uint64_t kQuota = 1000;
  static constexpr int kMaxMatrices = 4;

  StoreTest() {
    for (int i = 0; i < kDevices; ++i) {
      FakeDevice::Options options;
      options.name = "fake:" + std::to_string(i);
      devices_.push_back(std::make_unique<FakeDevice>(options));
    }
  }
  ~StoreTest() override { timer_.Stop(); }

  // Room for a matrix; the name and the time to live are as given.
  StoreReservation Reserve(size_t device, uint64_t bytes, KeepSpec keep = {}) {
    absl::StatusOr<StoreReservation> room = store_.Reserve(device, bytes, keep);
    EXPECT_TRUE(room.ok()) << room.status();
    return room.ok() ? *std::move(room) : StoreReservation();
  }
  // Adds a matrix, which the store counts as `bytes`, and returns its id.
  std::string Put(size_t device, uint64_t bytes, KeepSpec keep = {}) {
    return Add(Reserve(device, bytes, std::move(keep)), device).id;
  }
  MatrixRecord Add(StoreReservation room, size_t device = 0) {
    absl::StatusOr<MatrixRecord> record = store_.Add(std::move(room), MemoryOn(device));
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *std::move(record) : MatrixRecord();
  }
  std::shared_ptr<MatrixMemory> MemoryOn(size_t device) {
    return devices_[device]->MakeMatrix(kShape);
  }
  MatrixPin Pin(const std::string& id) {
    absl::StatusOr<MatrixPin> pin = store_.Pin({.id = id});
    EXPECT_TRUE(pin.ok()) << pin.status();
    return pin.ok() ? *std::move(pin) : MatrixPin();
  }
  // Complete or under way.
  bool HasReplica(const MatrixPin& pin, size_t device) const {
    return store_.MissingBytes(pin, device) != kShape.pitched_bytes();
  }
  bool IsThere(const std::string& id) { return store_.Pin({.id = id}).ok(); }
  void PassTime(absl::Duration time) {
    clock_.Advance(time);
    RunDue(timer_);
  }

  static constexpr Shape kShape{2, 3, gemm::DType::kF32};

  TestClock clock_;
  std::vector<std::unique_ptr<FakeDevice>> devices_;
  Timer timer_;
  MatrixStore store_{kDevices, kQuota, kMaxMatrices, timer_};
};

}  // namespace gemmd
