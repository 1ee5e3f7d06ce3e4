// The calls under way, so that a server that stops can end them all.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

struct Patience;  // call_guard.h

// A call whose object must outlive gRPC's use of it and the engine's.
class LiveCall : public std::enable_shared_from_this<LiveCall> {
 public:
  virtual ~LiveCall() = default;

  // Take no new work, and end once what is under way has ended. From any
  // thread; may come more than once.
  virtual void BeginDrain() = 0;

  // Ends what its client has kept waiting for too long. From one thread.
  virtual void CheckWaits(const Patience& patience) = 0;

 protected:
  // This object as its own class, for callbacks to hold on to.
  template <typename Call>
  std::shared_ptr<Call> Self() {
    return std::static_pointer_cast<Call>(shared_from_this());
  }
};

// Owns the calls from Add to Remove. Thread-safe.
class LiveCalls {
 public:
  // The call is told to drain if the server is draining already.
  void Add(std::shared_ptr<LiveCall> call);
  // Once gRPC is done with the call. Destroys it, unless someone else holds it.
  void Remove(LiveCall* call);

  // Of all calls.
  void CheckWaits(const Patience& patience);

  // Tells every call, those under way and those to come.
  void Drain();
  // False where calls are left at `deadline`.
  bool WaitUntilNone(absl::Time deadline);

 private:
  std::vector<std::shared_ptr<LiveCall>> All() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar removed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<LiveCall*, std::shared_ptr<LiveCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
