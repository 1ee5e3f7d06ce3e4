// A device that holds matrices and multiplies them. Each kind of device is a folder
// beside this file and a row in device_kinds.cc.
//
// The benchmark's Backend (kernels/bench/backend.h) is another abstraction on purpose:
// it waits for what it enqueues, counts its own time, and belongs to a library that is
// used without a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gemm/generate.h"
#include "gemm/kernel.h"
#include "server/engine/bounds/options.h"
#include "server/engine/device/arena.h"
#include "server/engine/device/staging.h"

namespace gemmd {

// A matrix in device memory: `lines` lines of `line_bytes`, each starting
// `pitch_bytes` after the one before. Its dense form, as it goes over the wire,
// has no gap between lines.
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

// An in-order queue of device work. Calls enqueue and return, and are
// thread-safe, but for Launch: one thread at a time. An error is either of the
// call's arguments, or the device is lost (UNAVAILABLE).
//
// The device's shared streams take copies alone, which do not fail once they are
// enqueued. Generate and Launch are for the compute streams: those have one user
// at a time, so that an error found late is always of that user's own work.
class Stream {
 public:
  virtual ~Stream() = default;

  // Copies dense bytes [offset, offset + bytes) of `to` from staging memory,
  // which must stay until the copy is done.
  virtual absl::Status Upload(const std::byte* staging, const Pitched& to, size_t offset,
                              size_t bytes) = 0;
  // Copies dense bytes [offset, offset + bytes) of `from` to staging memory.
  virtual absl::Status Download(const Pitched& from, size_t offset, size_t bytes,
                                std::byte* staging) = 0;
  // Copies `bytes` from the memory of another device that this one CanCopyFrom.
  virtual absl::Status CopyFrom(const class Device& device, const std::byte* from, std::byte* to,
                                size_t bytes);
  virtual absl::Status Generate(const gemm::GeneratorSpec& spec,
                                const gemm::GeneratorTarget& target) = 0;
  // `staged`, which may be null, is recorded after the operands' transposes where
  // the kernel makes any before its product.
  virtual absl::Status Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                              const gemm::Operands& operands, gemm::Workspace workspace,
                              const gemm::LaunchParams& params, Event* staged) = 0;
  virtual absl::Status Record(Event& event) = 0;
  // Later work on this stream starts after `event`, recorded on any stream.
  virtual absl::Status Wait(const Event& event) = 0;

  // Calls `done` on the device's completion thread once all work enqueued so
  // far has ended: OK, the first error of a host kernel since the last Notify
  // (on a compute stream), or UNAVAILABLE where the device is lost. Called
  // exactly once, in order.
  virtual void Notify(absl::AnyInvocable<void(absl::Status)> done) = 0;
};

struct DeviceInfoRecord {
  std::string name;   // "cuda:0", "host:1"
  std::string model;  // as the driver names it
  gemm::DeviceCaps caps;
  size_t memory_bytes = 0;  // the arena's
};

// Thread-safe. Destroyed when no work is left on it.
class Device {
 public:
  virtual ~Device() = default;

  const DeviceInfoRecord& info() const { return info_; }
  Arena& memory() { return *memory_; }
  StagingPool& upload_staging() { return *upload_staging_; }
  StagingPool& download_staging() { return *download_staging_; }
  // Shared by all transfers, for copies alone.
  Stream& upload_stream() { return *upload_stream_; }
  Stream& download_stream() { return *download_stream_; }
  // The pool that the scheduler hands out, one job at a time on each.
  absl::Span<const std::unique_ptr<Stream>> compute_streams() { return compute_streams_; }

  // Events are pooled; none is created once the pool has grown to the load.
  virtual EventPtr AcquireEvent() = 0;
  // From one completed event to another, on any streams of this device; zero
  // where either was never recorded.
  virtual absl::Duration Elapsed(const Event& from, const Event& to) = 0;

  // Whether streams of this device can copy straight from the memory of `other`.
  virtual bool CanCopyFrom(const Device& /*other*/) { return false; }

  // Runs `function`, which enqueues work, now on this thread or soon on the
  // device's own: one that is awake anyway and has the driver's code and data in
  // its caches enqueues several times faster than one that has just been woken.
  virtual void Execute(absl::AnyInvocable<void()> function) { function(); }

  // OK, or UNAVAILABLE with the error that lost the device; once lost, lost.
  virtual absl::Status Health() const = 0;

  // Driver allocations, frees and pinnings made by this process on this
  // device so far. Level once the server is warm.
  virtual int64_t driver_allocations() const = 0;

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
};

inline void EventRecycler::operator()(Event* event) const { device->RecycleEvent(event); }

}  // namespace gemmd
