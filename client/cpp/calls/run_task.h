// Calls that block their caller: as one task, and as several attempts.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/calls/clock.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/retries.h"
#include "client/cpp/calls/task.h"
#include "gemmd/client/options.h"
#include "gemmd/client/types.h"

namespace gemmd::client {

// Runs `start(task, then)` as a task and waits for its end. `then` takes the
// answer that it ended with.
template <typename Answer = MatrixInfo, typename Start>
absl::StatusOr<Answer> RunTask(Connection& connection, const CallOptions& options, const char* what,
                               Start start) {
  // Shared: the task may still be inside it when this function has returned.
  const auto ended = std::make_shared<std::promise<absl::Status>>();
  Answer answer;
  const auto task = Task::Begin(connection, options, what, [ended](absl::Status status) {
    ended->set_value(std::move(status));
  });
  start(task, [&answer](const Answer& got) { answer = got; });
  task->Drop();
  absl::Status status = ended->get_future().get();
  if (!status.ok()) return status;
  return answer;
}

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& answer) {
  return answer.status();
}

// The answer of `attempt(options)`, which is called again where that is safe and of use.
template <typename Attempt>
auto Tried(Connection& connection, const CallOptions& options, const char* what, Repeated repeated,
           Attempt attempt) -> decltype(attempt(options)) {
  Retries retries(connection.options().retry, connection.retry_budget(), repeated);
  const absl::Time deadline = connection.Deadline(options);
  CallOptions rest = options;
  for (;;) {
    auto answer = attempt(rest);
    if (StatusOf(answer).ok()) return answer;
    const std::optional<absl::Duration> wait = retries.Next(StatusOf(answer), deadline);
    if (!wait) return retries.Told(StatusOf(answer));
    rest.timeout = deadline - SteadyNow();
    // As a task, it ends with the client, too.
    const absl::StatusOr<MatrixInfo> waited = RunTask(
        connection, rest, what, [&wait](const auto& task, const auto&) { task->Wait(*wait); });
    if (!waited.ok()) return waited.status();
    rest.timeout = deadline - SteadyNow();
  }
}

}  // namespace gemmd::client
