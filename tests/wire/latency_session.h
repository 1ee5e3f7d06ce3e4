// Shared by the latency benchmarks: the servers, the report, and how calls are timed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "gemmd/client/matrix.h"
#include "gemmd/client/options.h"
#include "nlohmann/json.hpp"
#include "tests/wire/samples.h"
#include "tests/wire/wire_bench.h"

namespace gemmd::wire {

using Clock = std::chrono::steady_clock;
double SecondsSince(Clock::time_point begin);
double ToSeconds(const google::protobuf::Duration& duration);

// f16, normal.
client::HostMatrix RandomMatrix(int64_t rows, int64_t cols, uint64_t seed);

// Whether 64 elements of d = a b agree with sums in double, and no element is NaN (which `d` was
// filled with). They may differ by the rounding of an f32 accumulation that truncates and of the
// f16 result.
absl::Status CheckProduct(const client::HostMatrix& a, const client::HostMatrix& b,
                          const client::HostMatrix& d);

struct Session {
  const LatencyOptions& options;
  std::unique_ptr<gemm::v1::GemmService::Stub> server;
  std::unique_ptr<gemm::v1::GemmService::Stub> baseline;
  nlohmann::json report = nlohmann::json::object();
  std::vector<Verdict> verdicts;

  void Line(const std::string& name, const Samples& samples);
};

// Seconds of the baseline's empty call, which carries nothing.
absl::StatusOr<double> TimeEmpty(Session& session);

struct UnaryTime {
  double seconds = 0;
  double kernel_seconds = 0;
  gemm::v1::MultiplyUnaryResponse response;
};
absl::StatusOr<UnaryTime> TimeUnary(gemm::v1::GemmService::Stub& stub,
                                    const gemm::v1::MultiplyUnaryRequest& request);

// Calls in alternating blocks, so that what disturbs one disturbs the other; the first
// block of each warms up. `steps` are called as often as each other.
using Step = std::function<absl::Status(bool keep)>;
absl::Status Interleave(int calls, const std::vector<Step>& steps);

// One product of 64^3 in one message: beside an empty call, beside an empty handler, and
// through the client library.
absl::Status BenchUnary(Session& session);

// How a large product may be sent, by the name of --transport.
struct LargeTransport {
  absl::string_view name;
  client::Transport transport;
};
const std::vector<LargeTransport>& LargeTransports();

// D = A B with operands sent and the result returned, for every transport of the options and each
// number of channels. In turns with the baseline, which sends and then receives the same bytes raw.
absl::Status BenchLarge(Session& session, const client::HostMatrix& a, const client::HostMatrix& b);

// Products of `extent`^3 on resident operands whose result stays resident.
absl::Status BenchResident(Session& session, int64_t extent);

}  // namespace gemmd::wire
