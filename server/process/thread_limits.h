// How many threads the process may have, and how many it needs.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gemmd {

// The threads that gRPC 1.51 may make on this machine, from its start on. It makes some of them
// at its first calls alone, and takes no notice where one does not start: what is queued for that
// one waits for ever.
int ThreadsOfGrpc();

// OK where `count` more threads can run beside those of the process. They are made, and ended.
// UNAVAILABLE says what the limits are, and what is needed. `of`: whose they are.
absl::Status CheckThreads(int count, absl::string_view of);

// The threads of the process, and the limits on them, for messages.
std::string DescribeThreads();

}  // namespace gemmd
