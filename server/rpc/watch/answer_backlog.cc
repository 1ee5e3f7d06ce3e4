#include "server/rpc/watch/answer_backlog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/bytes.h"
#include "server/base/clock.h"
#include "server/base/rounded_time.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {
namespace {

// With less than this in its hands gRPC may be waiting for answers, not for the client.
constexpr uint64_t kBusyBytes = kMiB;
constexpr double kKeep = 0.95;                         // of the past, at each answer
constexpr double kEnough = 4;                          // answers, for a guess
constexpr absl::Duration kLately = absl::Seconds(10);  // what was measured before tells nothing
}  // namespace

AnswerBacklog::Place& AnswerBacklog::Place::operator=(Place&& other) noexcept {
  if (this == &other) return *this;
  Leave(/*taken=*/false);
  backlog_ = std::exchange(other.backlog_, nullptr);
  connection_ = other.connection_;
  bytes_ = other.bytes_;
  handed_at_ = other.handed_at_;
  return *this;
}

void AnswerBacklog::Place::Hand() {
  if (backlog_ == nullptr || handed_at_.has_value()) return;
  handed_at_ = SteadyNow();
  backlog_->Hand(connection_, bytes_);
}

void AnswerBacklog::Place::Leave(bool taken) {
  AnswerBacklog* const backlog = std::exchange(backlog_, nullptr);
  if (backlog != nullptr) backlog->Leave(connection_, bytes_, handed_at_, taken);
}

absl::Duration AnswerBacklog::Connection::TimeOf(uint64_t bytes, absl::Time now) const {
  if (answers < kEnough || taken_bytes <= 0 || now - measured > kLately) {
    return absl::ZeroDuration();
  }
  return absl::Seconds(static_cast<double>(bytes) * taken_seconds / taken_bytes);
}

void AnswerBacklog::Connection::Measure(uint64_t bytes, absl::Duration took, absl::Time now) {
  const double keep = now - measured > kLately ? 0 : kKeep;
  taken_bytes = keep * taken_bytes + static_cast<double>(bytes);
  taken_seconds = keep * taken_seconds + absl::ToDoubleSeconds(took);
  answers = keep * answers + 1;
  measured = now;
}

absl::StatusOr<AnswerBacklog::Place> AnswerBacklog::Admit(uint64_t connection, uint64_t bytes,
                                                          absl::Time deadline) {
  const absl::Time now = SteadyNow();
  const absl::Duration left = deadline - now;
  if (left <= absl::ZeroDuration()) {
    return absl::DeadlineExceededError("the deadline passed before the product began");
  }
  MutexLock lock(mutex_);
  if (connections_.size() > forget_at_) {
    std::erase_if(connections_, [](const auto& entry) { return entry.second.places == 0; });
    forget_at_ = std::max(kMostIdle, 2 * connections_.size());
  }
  Connection& its = connections_[connection];
  const absl::Duration wait = its.TimeOf(its.promised_bytes + bytes, now);
  if (its.promised_bytes >= kBusyBytes && wait > left / 4) {
    return BoundError(
        {.bound = "deadline", .retry_after = std::max(wait - left / 4, kRetrySoon)},
        absl::StrCat("deadline: ", its.promised_bytes,
                     " bytes of answers wait for this connection, "
                     "which takes them in about ",
                     Rounded(wait), "; a quarter of the ", Rounded(left),
                     " that the call has left is allowed for that: try again later, or on another "
                     "connection"));
  }
  its.promised_bytes += bytes;
  ++its.places;
  return Place(*this, connection, bytes);
}

void AnswerBacklog::Hand(uint64_t connection, uint64_t bytes) {
  MutexLock lock(mutex_);
  connections_[connection].handed_bytes += bytes;
}

void AnswerBacklog::Leave(uint64_t connection, uint64_t bytes, std::optional<absl::Time> handed_at,
                          bool taken) {
  const absl::Time now = SteadyNow();
  MutexLock lock(mutex_);
  Connection& its = connections_[connection];
  its.promised_bytes -= bytes;
  --its.places;
  if (!handed_at.has_value()) return;
  if (taken && its.handed_bytes >= kBusyBytes) {
    its.Measure(bytes, now - std::max(its.since, *handed_at), now);
  }
  its.handed_bytes -= bytes;
  its.since = now;
}

}  // namespace gemmd
