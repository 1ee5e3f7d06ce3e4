// The live calls, so that a server that stops can end them all.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

struct Patience;  // call_guard.h

// A call whose object must outlive its use by gRPC and by the engine.
class LiveCall : public std::enable_shared_from_this<LiveCall> {
 public:
  virtual ~LiveCall() = default;

  // Accepts no new work, and ends the call when the work under way has ended. Called
  // from any thread, maybe more than once.
  virtual void BeginDrain() = 0;

  // Ends the call, or those of its jobs, that the client has stalled for too long.
  // Called from one thread.
  virtual void CheckWaits(const Patience& patience) = 0;

 protected:
  // A shared_ptr to this object as its own class, for callbacks to hold.
  template <typename Call>
  std::shared_ptr<Call> Self() {
    return std::static_pointer_cast<Call>(shared_from_this());
  }
};

// Owns the calls from Add to Remove. Thread-safe.
class LiveCalls {
 public:
  // Tells the call to drain if the server is already draining; returns whether it is.
  bool Add(std::shared_ptr<LiveCall> call);
  // Called once gRPC is done with the call. Destroys it, unless someone else holds it.
  void Remove(LiveCall* call);

  // Calls CheckWaits of all calls.
  void CheckWaits(const Patience& patience);

  // Tells all calls to drain, also those that are added later.
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
