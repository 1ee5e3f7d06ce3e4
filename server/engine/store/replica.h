// The copy of a resident matrix on a device other than its own. It is made for the first
// job that needs it there, and kept for later ones.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/engine/store/matrix.h"
#include "server/engine/store/matrix_memory.h"

namespace gemmd {

// Thread-safe. Always held by a shared_ptr, which the copy under way keeps. Its memory
// must not be read before Await has reported OK.
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

  virtual bool complete() const = 0;
  virtual bool failed() const = 0;
};

}  // namespace gemmd
