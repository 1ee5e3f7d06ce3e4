// When a call is tried again.
//
// A call is tried again where that is safe and of use:
//
// - RESOURCE_EXHAUSTED, if the server says when to try again. Then it has done nothing of the
//   call, and every call is tried again.
// - UNAVAILABLE: the server may have run the call. Only calls are tried again that do the same
//   when they run twice: queries, downloads, and products that neither keep their result nor
//   release an operand. Never a product into a kept name, never one whose operand may be gone, no
//   PutMatrix, no DeleteMatrix and no Benchmark.
//
// Connect, and calls that fail for other reasons, have one attempt. If several attempts fail with
// UNAVAILABLE for different reasons, the message of the last one begins with that of the first:
// the server may have gone in between.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gemmd::client {

// Waits end with the call's deadline or its canceller: a call whose time would be over is not
// tried again, and gets the error of its last attempt. A product and its progress begin again
// with each attempt.
struct RetryOptions {
  // Attempts of a call, the first one included: 1 to 100. 1: none is tried again.
  int attempts = 5;
  // The wait before an attempt is the time that the server says and a random time on top: up to
  // `first_wait` before the second attempt, up to twice as much before the third, and so on up to
  // `longest_wait` ("full jitter"). If the server says a longer time than `longest_wait`, its
  // error is returned.
  absl::Duration first_wait = absl::Milliseconds(100);
  absl::Duration longest_wait = absl::Seconds(2);
  // Bounds what all calls of a client add to the load of a server in trouble. Each call pays in
  // `budget_per_call`. Each further attempt takes 1, and is not made if less is left. At most
  // `budget` is saved up; a client begins with as much.
  double budget = 20;
  double budget_per_call = 0.2;
};

// The time from the error after which the server says to try again; nullopt if it does not say.
// With RESOURCE_EXHAUSTED, the server has then done nothing of the call.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

}  // namespace gemmd::client
