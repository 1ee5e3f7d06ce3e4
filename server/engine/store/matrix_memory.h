// The device memory of one matrix, and its copy on another device.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/engine/device/device.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// Lives as long as it is used: by a job, the store or a copy under way.
struct MatrixMemory {
  Device* device = nullptr;
  DeviceBuffer buffer;
  Shape shape;

  Pitched pitched() const {
    return {buffer.data(), shape.lines(), shape.line_bytes(), shape.pitch_bytes()};
  }
  // Elements from one line to the next.
  int64_t leading_dimension() const {
    return shape.pitch_bytes() / static_cast<int64_t>(gemm::SizeOf(shape.type));
  }
  gemm::GeneratorTarget generator_target() const {
    return {buffer.data(), shape.type,          shape.rows,
            shape.cols,    shape.pitch_bytes(), shape.column_major};
  }
};

// The copy of a resident matrix on a device other than its own. It is made for the first job that
// needs it there, and kept for later ones. Thread-safe. Always held by a shared_ptr, which the copy
// under way keeps. Its memory must not be read before Await has reported OK.
class Replica {
 public:
  virtual ~Replica() = default;

  virtual const std::shared_ptr<MatrixMemory>& memory() const = 0;
  virtual CopyRoute route() const = 0;

  // Calls `done` with the outcome once the copy has ended, or at once if it has. The first
  // call starts the copy.
  virtual void Await(absl::AnyInvocable<void(absl::Status)> done) = 0;
  // Ends a copy that is not complete with CANCELLED, because nobody waits any more. Memory
  // that the devices still use is kept until they no longer do.
  virtual void Abort() = 0;

  // The bytes that have not arrived yet.
  virtual uint64_t missing_bytes() const = 0;
  virtual bool complete() const = 0;
  virtual bool failed() const = 0;
};

}  // namespace gemmd
