// When a call is tried again.
//
// A call is tried again where that is safe and of use:
//
// - RESOURCE_EXHAUSTED, if the server says when to try again. Then it has done nothing of
//   what was asked for: every call is tried again.
// - UNAVAILABLE: what was asked for may have been done. Only calls are tried again that do
//   the same when they run twice: queries, downloads, and products that neither keep their
//   result nor release an operand. Never a product into a kept name, never one whose operand
//   may be gone, no PutMatrix, no DeleteMatrix and no Benchmark.
//
// Connect, and calls that fail for other reasons, have one attempt. Where the last attempt fails
// with UNAVAILABLE for another reason than the first such one, as when the server could no longer
// be reached, the message has that of the first one before its own.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gemmd::client {

// Waits end with the call's deadline or its canceller: a call whose time would be over is not
// tried again, and gets the error of its last attempt. A product starts anew with each
// attempt, also its progress.
struct RetryOptions {
  // Attempts of a call, the first one included: 1 to 100. 1: none is tried again.
  int attempts = 5;
  // The wait before an attempt: what the server says, and on top a random time of up to
  // `first_wait`, twice as much before the third attempt, and so on up to `longest_wait`
  // ("full jitter"). An error whose server wants a longer wait than `longest_wait` is returned.
  absl::Duration first_wait = absl::Milliseconds(100);
  absl::Duration longest_wait = absl::Seconds(2);
  // What all calls of a client may add to the load of a server in trouble: each call that
  // begins pays in `budget_per_call`, each further attempt takes 1 and is not made where
  // there is less, and at most `budget` is saved up, which is also what a client begins with.
  double budget = 20;
  double budget_per_call = 0.2;
};

// When the server says to try again, counted from the error; nullopt where it does not say.
// With RESOURCE_EXHAUSTED: nothing of what was asked for was done.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

}  // namespace gemmd::client
