// What is said to an HTTP request.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace gemmd {

// The longest request head that is read.
inline constexpr size_t kMaxRequestBytes = 8192;

// The whole answer, head and body, to a request of which `request` is the head
// (RFC 9112): 200 with `metrics()` for GET and HEAD of /metrics, a status 4xx
// with a sentence for anything else. The connection closes behind it.
std::string AnswerRequest(absl::string_view request, absl::FunctionRef<std::string()> metrics);

}  // namespace gemmd
