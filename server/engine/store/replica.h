// The copy of a resident matrix on another device than its own: made for the
// first job that needs it there, kept for later ones.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/engine/store/matrix.h"
#include "server/engine/store/matrix_memory.h"

namespace gemmd {

// Thread-safe; always held by a shared_ptr, which the copy under way keeps. Its
// memory may be read once Await has said OK, and never before.
class Replica {
 public:
  virtual ~Replica() = default;

  virtual const std::shared_ptr<MatrixMemory>& memory() const = 0;
  virtual CopyRoute route() const = 0;

  // Calls `done` once the copy has ended, with how: at once where it has. The
  // first caller's call begins the copy.
  virtual void Await(absl::AnyInvocable<void(absl::Status)> done) = 0;
  // Nobody waits any more: ends a copy that is not complete with CANCELLED.
  // What the devices still work on keeps its memory until they have let go of
  // it.
  virtual void Abort() = 0;

  virtual bool complete() const = 0;
  virtual bool failed() const = 0;
};

}  // namespace gemmd
