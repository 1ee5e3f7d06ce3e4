// The matrices without a name that a client has put, whose time to live it renews.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gemmd::client {

// One thread, which is started with the first matrix. It renews each of them four times within a
// time to live; after one that the server does not answer, the others wait for the next time. A
// matrix that is gone is forgotten, so that there are never more than the server has. Thread-safe.
class Renewals {
 public:
  // Uses the matrix of an id once.
  using Renew = std::function<absl::Status(const std::string& id)>;

  // `ttl` 0: such matrices stay, and nothing is renewed.
  Renewals(absl::Duration ttl, Renew renew) : ttl_(ttl), renew_(std::move(renew)) {}
  ~Renewals() { Stop(); }

  void Add(std::string id);
  void Remove(const std::string& id);
  // Waits for the call of `renew` that is under way. Nothing is renewed from then on.
  void Stop();

 private:
  void Run();
  void RenewAll(std::unique_lock<std::mutex>& lock);

  const absl::Duration ttl_;
  const Renew renew_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  std::set<std::string> ids_;  // under mutex_, as what follows
  std::string last_;           // that was renewed, or was to be
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace gemmd::client
