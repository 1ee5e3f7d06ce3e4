// Runs a benchmark on the server, as one streaming RPC.
#pragma once

#include <functional>
#include <memory>

#include "client/cpp/calls/task.h"
#include "gemm/v1/gemm.pb.h"

namespace gemmd::client {

// `on_message` gets each message but the last, in order. `then` gets the last one,
// unless the task fails.
void StreamBenchmark(const std::shared_ptr<Task>& task, const ::gemm::v1::BenchmarkRequest& request,
                     std::function<void(const ::gemm::v1::BenchmarkResponse&)> on_message,
                     std::function<void(const ::gemm::v1::BenchmarkEnd&)> then);

}  // namespace gemmd::client
