// A device on which things go wrong when the test says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/base/timer.h"
#include "server/engine/device/device.h"
#include "server/engine/device/host/host_stream.h"

namespace gemmd {

enum class Fault : uint8_t {
  kSlow,         // the operation begins `delay` later
  kRefused,      // it is refused with INTERNAL: a failing copy, a launch error
  kFailedLate,   // its callback gets INTERNAL (not a copy)
  kSticky,       // the device is lost when the stream gets there
  kHung,         // the stream stands still from there on, until Release
  kWrongBit,     // one bit of the product is wrong (a kernel alone)
  kOtherKernel,  // `kernel` is launched in place of the job's (a kernel alone)
};

enum class Operation : uint8_t {
  kUpload,
  kDownload,
  kPeerCopy,
  kGenerate,
  kLaunch,
  kCheck,
  kRecord
};

// Strikes once: at the operation of the kind that comes after `skip` others.
struct Injection {
  Fault fault = Fault::kRefused;
  Operation operation = Operation::kLaunch;
  int skip = 0;
  absl::Duration delay = absl::Milliseconds(20);
  uint64_t bit = 0;  // of the product, taken modulo its bits
  const gemm::Kernel* kernel = nullptr;
};

// A device whose streams do what those of `inner` do, except for injected faults. kSlow, kSticky,
// kHung and kWrongBit need an inner host device. Thread-safe.
class FaultyDevice final : public Device {
 public:
  explicit FaultyDevice(std::unique_ptr<Device> inner);
  // Releases hung work.
  ~FaultyDevice() override;

  void Inject(const Injection& injection);
  // Takes back what has not struck.
  void ClearInjections();
  // How many injections have struck, of all and of one fault.
  int struck();
  int struck(Fault fault);
  // Whether a stream stands still until Release.
  bool hung();
  // How many operations that hung have a Notify behind them by now: somebody waits for their end.
  int awaited_hangs();
  // Lets the streams that stand still go on.
  void Release();
  // Loses the device as an error does that another thread finds.
  void Break() { inner_->Lose("injected error"); }
  // Takes all free memory, so that allocations fail until the pieces are released.
  std::vector<DeviceBuffer> TakeAllMemory();

  Device& inner() { return *inner_; }

  // Copies between two of these go straight, where set.
  static inline std::atomic<bool> peers = false;
  bool CanCopyFrom(const Device& other) override;
  EventPtr AcquireEvent() override { return inner_->AcquireEvent(); }
  absl::Duration Elapsed(const Event& from, const Event& to) override {
    return inner_->Elapsed(from, to);
  }
  void Execute(absl::AnyInvocable<void()> function) override {
    inner_->Execute(std::move(function));
  }
  absl::Status Health() const override { return inner_->Health(); }
  void Lose(absl::string_view why) override { inner_->Lose(why); }
  bool Idle() override { return inner_->Idle(); }
  int64_t driver_allocations() const override { return inner_->driver_allocations(); }
  bool CompletionThreadIsBusy() override { return inner_->CompletionThreadIsBusy(); }

 private:
  friend class FaultyStream;
  // A pool over all blocks of the inner device's pool.
  std::unique_ptr<StagingPool> Take(StagingPool& pool);
  // The fault that strikes this operation.
  std::optional<Injection> Strike(Operation operation);
  // Makes `stream`, one of the inner device's, stand still: for a time, or until Release.
  void Hold(Stream& stream, absl::Duration time);
  void Hang(Stream& stream);
  void AddAwaitedHangs(int hangs);
  // Runs `function` in the stream's order, before all later work.
  void Call(Stream& stream, absl::AnyInvocable<void()> function);
  void RecycleEvent(Event*) override {}  // the events are the inner device's

  const std::unique_ptr<Device> inner_;
  // All of the inner device's, over which this one has its own arena and pools.
  std::vector<DeviceBuffer> inner_memory_;
  std::vector<StagingBlock> inner_staging_;
  Mutex mutex_;
  std::vector<Injection> injections_ ABSL_GUARDED_BY(mutex_);
  std::vector<Fault> struck_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<HostMark>> hanging_ ABSL_GUARDED_BY(mutex_);
  int awaited_hangs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<HostMark>> slow_ ABSL_GUARDED_BY(mutex_);
  Timer timer_;  // of what is slow; last, so that it stops first
};

// Kinds of device for --devices: "faulty:2" is of host devices, named host:0 and so on, and
// "faulty-cuda:0" of GPUs, named cuda:0. Each has the injections of the environment variable
// GEMMD_FAULTS, such as "host:0 launch hung 3;host:1 upload refused 0". "wrong" is a wrong exponent
// of the first element, of f32 products. On a GPU a launch can be
// "illegal" or "endless" (broken_kernels.h), of f32 products, and anything can be refused.
void AddFaultyDeviceKinds();

}  // namespace gemmd
