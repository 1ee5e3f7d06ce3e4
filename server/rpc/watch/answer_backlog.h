// The answers of unary products that a connection has yet to take.
//
// A device may make results faster than a connection takes them. The queue of the device does not
// see that: its jobs end in time, and their answers wait until the deadline has passed. So what a
// connection takes in a second is measured here, and a product whose answer would come too late is
// refused before it is made. (The answers of a stream are held back by its staging memory.)
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

// Thread-safe. Connections are known by their numbers (connection_number.h).
class AnswerBacklog {
 public:
  // The place of an answer in the backlog, until it is destroyed.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept { *this = std::move(other); }
    Place& operator=(Place&& other) noexcept;
    ~Place() { Leave(/*taken=*/false); }

    // gRPC has the answer from here on.
    void Hand();
    // The answer is with the client, or on its way there.
    void Take() { Leave(/*taken=*/true); }

   private:
    friend class AnswerBacklog;
    Place(AnswerBacklog& backlog, uint64_t connection, uint64_t bytes)
        : backlog_(&backlog), connection_(connection), bytes_(bytes) {}
    void Leave(bool taken);

    AnswerBacklog* backlog_ = nullptr;
    uint64_t connection_ = 0;
    uint64_t bytes_ = 0;
    std::optional<absl::Time> handed_at_;
  };

  AnswerBacklog() = default;
  AnswerBacklog(const AnswerBacklog&) = delete;

  // A place for an answer of `bytes`. RESOURCE_EXHAUSTED, with when to try again, where those
  // before it and it would take more than a quarter of the time until `deadline`: the product needs
  // some, too, and the rate is a guess. DEADLINE_EXCEEDED where that has passed.
  absl::StatusOr<Place> Admit(uint64_t connection, uint64_t bytes, absl::Time deadline);

 private:
  struct Connection {
    uint64_t promised_bytes = 0;  // of all places
    uint64_t handed_bytes = 0;
    int64_t places = 0;
    absl::Time since = absl::InfinitePast();  // when the last of gRPC's answers left
    // Of the last answers that were taken while others waited; older ones count less and less.
    double taken_bytes = 0;
    double taken_seconds = 0;
    double answers = 0;
    absl::Time measured = absl::InfinitePast();  // the last of them

    void Measure(uint64_t bytes, absl::Duration took, absl::Time now);
    // How long `bytes` take; zero where that is not known, or no longer.
    absl::Duration TimeOf(uint64_t bytes, absl::Time now) const;
  };

  void Hand(uint64_t connection, uint64_t bytes);
  void Leave(uint64_t connection, uint64_t bytes, std::optional<absl::Time> handed_at, bool taken);

  // A connection that has nothing to take keeps its rate for the next time, until there are many.
  static constexpr size_t kMostIdle = 4096;

  Mutex mutex_;
  std::unordered_map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // With more than these, idle ones are forgotten. It doubles with those that are not idle, so
  // that looking at all of them stays rare.
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = kMostIdle;
};

}  // namespace gemmd
