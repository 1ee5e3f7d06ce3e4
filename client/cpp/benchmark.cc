#include "client/cpp/benchmark.h"

#include <optional>
#include <utility>

#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/wire.h"

namespace gemmd::client {

using ::gemm::v1::BenchmarkEnd;
using ::gemm::v1::BenchmarkResponse;

void StreamBenchmark(const std::shared_ptr<Task>& task, const ::gemm::v1::BenchmarkRequest& request,
                     std::function<void(const BenchmarkResponse&)> on_message,
                     std::function<void(const BenchmarkEnd&)> then) {
  const auto end = std::make_shared<std::optional<BenchmarkEnd>>();
  RawCallSpec call{.method = "/gemm.v1.GemmService/Benchmark"};
  call.next = OnlyMessage(Serialize(request));
  call.on_message = [end, on_message = std::move(on_message)](const grpc::ByteBuffer& message) {
    BenchmarkResponse response;
    if (absl::Status status = Parse(message, &response); !status.ok()) return status;
    if (response.has_end()) {
      *end = response.end();
    } else {
      on_message(response);
    }
    return absl::OkStatus();
  };
  call.on_done = [task, end, then = std::move(then)](const absl::Status& status) {
    if (!status.ok()) return;
    if (!*end) return task->Fail(absl::InternalError("the benchmark ended without its last word"));
    then(**end);
  };
  task->Stream(task->connection().NextChannel(), std::move(call));
}

}  // namespace gemmd::client
