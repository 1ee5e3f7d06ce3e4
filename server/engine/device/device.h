// A device that stores and multiplies matrices: the interface between the engine and
// CUDA. Each kind of device is a folder beside this file and a row in device_kinds.cc.
//  The benchmark's Backend (kernels/bench/backend/backend.h) is a separate abstraction on purpose:
// it waits for the work that it enqueues and measures its time itself. It belongs to a library that
// is also used without a server.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gemm/check.h"
#include "gemm/estimates.h"
#include "gemm/generate.h"
#include "gemm/kernel.h"
#include "gemm/machine.h"
#include "server/base/waiting.h"
#include "server/engine/bounds/options.h"
#include "server/engine/device/arena.h"
#include "server/engine/device/staging.h"

namespace gemmd {

// A matrix in device memory: `lines` lines of `line_bytes`, each starting `pitch_bytes`
// after the one before. Its dense form, as on the wire, has no gaps between lines.
struct Pitched {
  std::byte* data = nullptr;
  int64_t lines = 0;
  int64_t line_bytes = 0;
  int64_t pitch_bytes = 0;

  size_t dense_bytes() const { return static_cast<size_t>(lines * line_bytes); }
  size_t pitched_bytes() const { return static_cast<size_t>(lines * pitch_bytes); }
};

// A point on a stream, for ordering and for timing. Recycled by its device.
class Event {
 public:
  virtual ~Event() = default;
};
struct EventRecycler {
  class Device* device = nullptr;
  void operator()(Event* event) const;
};
using EventPtr = std::unique_ptr<Event, EventRecycler>;

// How a stream tells of the end of work.
struct Notice {
  // Recorded on the stream after all other work, it lives until the callback is called, and saves
  // the device a mark of its own. May be null.
  const Event* last = nullptr;
  // How the end is waited for, where the device has to be polled. kCanWait where more of the same
  // follows anyway, as behind a block of a large transfer.
  Urgency urgency = Urgency::kPrompt;
};

// Set: nobody needs the result any more. A device that can stop the work does, and Notify reports
// CANCELLED. May be null.
using StopFlag = std::shared_ptr<const std::atomic<bool>>;

// How a product is launched. All of it may be left out.
struct LaunchHow {
  // Recorded after the transposes of operands, if the kernel makes any before its product.
  Event* transposed = nullptr;
  // The piece to enqueue, where the product takes many launches, and whether another one is to
  // follow it (gemm::LaunchPiece). Null: everything is enqueued at once.
  gemm::LaunchPiece* piece = nullptr;
  StopFlag stop;
};

// An in-order queue of device work. Calls enqueue and return. They are thread-safe,
// except Launch: one thread at a time. Errors: wrong arguments, or UNAVAILABLE if the
// device is lost.
//
// The device's shared streams run only copies, which do not fail once enqueued. Generate
// and Launch are for the compute streams. Those have one user at a time, so an error
// that is found late belongs to that user.
//
// Work begins at the latest when Notify is called behind it, or another stream waits for an event
// that was recorded behind it.
class Stream {
 public:
  virtual ~Stream() = default;

  // Copies from staging memory to dense bytes [offset, offset + bytes) of `to`. The
  // staging memory must stay until the copy is done.
  virtual absl::Status Upload(const std::byte* staging, const Pitched& to, size_t offset,
                              size_t bytes) = 0;
  // Copies dense bytes [offset, offset + bytes) of `from` to staging memory.
  virtual absl::Status Download(const Pitched& from, size_t offset, size_t bytes,
                                std::byte* staging) = 0;
  // Copies `bytes` from the memory of `device`, which this device CanCopyFrom.
  virtual absl::Status CopyFrom(const class Device& device, const std::byte* from, std::byte* to,
                                size_t bytes);
  virtual absl::Status Generate(const gemm::GeneratorSpec& spec,
                                const gemm::GeneratorTarget& target, StopFlag stop = nullptr) = 0;
  // The memory that the problem refers to is borrowed until this returns.
  virtual absl::Status Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                              const gemm::Operands& operands, gemm::Workspace workspace,
                              const gemm::LaunchParams& params, const LaunchHow& how = {}) = 0;
  // Enqueues the check of a product that was launched on this stream. check_outcome() has its
  // outcome once Notify's callback is called for later work, until the next check.
  virtual absl::Status Check(const gemm::Check& check) = 0;
  virtual gemm::CheckOutcome check_outcome() const = 0;
  // Enqueues the epilogue over accumulators that a product has left (gemm/check.h).
  virtual absl::Status Finish(const gemm::Problem& problem, const gemm::Operands& operands,
                              void* accumulators) = 0;
  virtual absl::Status Record(Event& event) = 0;
  // Later work on this stream waits for `event`, which may be recorded on any stream.
  virtual absl::Status Wait(const Event& event) = 0;

  // Calls `done` on the device's completion thread once all work enqueued so far has
  // ended, exactly once and in order. The status is OK, the first error of a host kernel
  // since the last Notify (on a compute stream), or UNAVAILABLE if the device is lost.
  //  A cancelled job or transfer no longer keeps the engine, but its callback may still be due. It
  // may come while the device is destroyed, on the completion thread, which the device waits for.
  // Such a callback releases what it holds, and uses nothing of the device.
  virtual void Notify(absl::AnyInvocable<void(absl::Status)> done, const Notice& how = {}) = 0;
};

struct DeviceInfoRecord {
  std::string name;       // "cuda:0", "host:1"
  std::string model;      // as the driver names it
  gemm::Machine machine;  // what its measured times depend on
  gemm::DeviceCaps caps;
  size_t memory_bytes = 0;  // the arena's
};

// Thread-safe. Must be destroyed only when no work is left on it.
class Device {
 public:
  virtual ~Device() = default;

  const DeviceInfoRecord& info() const { return info_; }
  // How long kernels take here. Set before the first job: those of the model if it was measured,
  // those of this very device, or none.
  const gemm::DeviceEstimates& estimates() const { return estimates_; }
  void UseEstimatesOfModel() {
    estimates_ = gemm::BuiltInEstimates(info_.machine.device, info_.caps.capability);
  }
  void UseEstimates(std::optional<gemm::Estimates> measured) {
    own_estimates_ = std::move(measured);
    estimates_ = {.estimates = own_estimates_ ? &*own_estimates_ : nullptr};
  }
  Arena& memory() { return *memory_; }
  StagingPool& upload_staging() { return *upload_staging_; }
  StagingPool& download_staging() { return *download_staging_; }
  // Shared by all transfers; for copies only.
  Stream& upload_stream() { return *upload_stream_; }
  Stream& download_stream() { return *download_stream_; }
  // The pool that the scheduler assigns, one job at a time on each.
  absl::Span<const std::unique_ptr<Stream>> compute_streams() { return compute_streams_; }
  // More of them, for quick jobs alone (policy/cost_model.h). A device that has priorities
  // runs their work before that of the other streams. May be empty.
  absl::Span<const std::unique_ptr<Stream>> quick_streams() { return quick_streams_; }

  // Events are pooled: no more are created once the pool is as large as the load needs.
  virtual EventPtr AcquireEvent() = 0;
  // The time from one completed event to another, on any streams of this device. Zero if
  // either was never recorded.
  virtual absl::Duration Elapsed(const Event& from, const Event& to) = 0;

  // Whether streams of this device can copy directly from the memory of `other`.
  virtual bool CanCopyFrom(const Device& /*other*/) { return false; }

  // Runs `function`, which enqueues work, either now on this thread or soon on the
  // device's own. A thread that is awake and has the driver's code and data in its caches
  // enqueues several times faster than one that has just been woken.
  virtual void Execute(absl::AnyInvocable<void()> function) { function(); }

  // OK, or UNAVAILABLE with the error that lost the device. A lost device stays lost.
  virtual absl::Status Health() const = 0;
  // Gives the device up, as an error does that loses it: for work that does not end, which nothing
  // can stop. Every callback, pending or later, gets the status of Health(), also while the work
  // before it runs. The work may still use the device's memory, so a lost device must not be
  // destroyed before it is Idle.
  virtual void Lose(absl::string_view why) = 0;
  // Whether nothing that was enqueued runs, or may still run.
  virtual bool Idle() = 0;

  // Driver allocations, frees and pinnings by this process on this device so far.
  // Constant once the server is warm.
  virtual int64_t driver_allocations() const = 0;

  // Whether the completion thread, on which this is called, has other work in hand, or has it so
  // often that more is about to come. Then what need not run there is better handed to another
  // thread.
  virtual bool CompletionThreadIsBusy() = 0;

 protected:
  friend struct EventRecycler;
  virtual void RecycleEvent(Event* event) = 0;

  DeviceInfoRecord info_;
  std::unique_ptr<Arena> memory_;
  std::unique_ptr<StagingPool> upload_staging_;
  std::unique_ptr<StagingPool> download_staging_;
  std::unique_ptr<Stream> upload_stream_;
  std::unique_ptr<Stream> download_stream_;
  std::vector<std::unique_ptr<Stream>> compute_streams_;
  std::vector<std::unique_ptr<Stream>> quick_streams_;

 private:
  gemm::DeviceEstimates estimates_;
  std::optional<gemm::Estimates> own_estimates_;
};

// The index of the device of that name, or the first one where it is empty. INVALID_ARGUMENT has
// the names that there are.
absl::StatusOr<size_t> IndexOfDevice(absl::Span<const std::unique_ptr<Device>> devices,
                                     absl::string_view name);

// Waits until all callbacks that the device's streams have by now have run.
void AwaitCallbacks(Device& device);

inline void EventRecycler::operator()(Event* event) const { device->RecycleEvent(event); }

}  // namespace gemmd
