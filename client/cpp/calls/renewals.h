// The matrices without a name that a client has put, whose time to live it renews.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gemmd::client {

// Renews each matrix four times within a time to live, from one thread, which the first matrix
// starts. After one that the server does not answer, the others wait for the next time. A matrix
// that is gone is forgotten, so that there are never more than the server has. Thread-safe.
class Renewals {
 public:
  // Uses the matrix of an id once. Returns at once, and calls `done` later, on any thread.
  using Done = std::function<void(const absl::Status&)>;
  using Renew = std::function<void(const std::string& id, Done done)>;

  // At a time. A server has at most 65,536 matrices by default. If each takes 41 ms, four at a
  // time take 672 s: less than the 900 s from one time to the next at the default time to live.
  static constexpr int kAtOnce = 4;

  // `ttl` 0: such matrices stay, and nothing is renewed.
  Renewals(absl::Duration ttl, Renew renew) : ttl_(ttl), renew_(std::move(renew)) {}
  ~Renewals() { Stop(); }

  // Never throws. If the system gives no thread, the next Add asks for one again.
  void Add(std::string id);
  void Remove(const std::string& id);
  // Waits for what `renew` has under way. Nothing is renewed from then on.
  void Stop();

 private:
  void Run();
  void RenewAll(std::unique_lock<std::mutex>& lock);
  void Ended(const std::string& id, const absl::Status& status);

  const absl::Duration ttl_;
  const Renew renew_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> ids_;  // under mutex_, as what follows
  std::string last_;           // that was renewed, or was to be
  int under_way_ = 0;
  bool unanswered_ = false;  // one of this time
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace gemmd::client
