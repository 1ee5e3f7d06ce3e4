#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemmd/client/client.h"
#include "tests/wire/latency_session.h"
#include "tests/wire/raw_channel.h"

namespace gemmd::wire {
namespace {

using ::gemm::v1::GemmService;

// The Python server of torch_server.py: m, n, k, then A and B, for D.
absl::Status BenchTorch(Session& session, const client::HostMatrix& a,
                        const client::HostMatrix& b) {
  const auto channels = Connect(session.options.torch, 1);
  if (!channels.ok()) return channels.status();
  const auto extent = static_cast<uint32_t>(a.shape().rows);
  const uint32_t dims[] = {extent, extent, extent};
  const auto bytes = [](const void* data, size_t size) {
    return absl::MakeConstSpan(static_cast<const std::byte*>(data), size);
  };
  auto d = client::HostMatrix::Allocate(a.shape()).value();
  Samples samples;
  for (int call = -2; call < session.options.torch_calls; ++call) {
    std::memset(d.data(), 0xFF, d.bytes());
    const auto begin = Clock::now();
    const auto answer = CallUnary(
        (*channels)[0], "/torch.Matmul/Multiply",
        {bytes(dims, sizeof(dims)), bytes(a.data(), a.bytes()), bytes(b.data(), b.bytes())});
    if (!answer.ok()) return answer.status();
    std::vector<grpc::Slice> slices;
    (void)answer->Dump(&slices);
    size_t at = 0;
    for (const grpc::Slice& slice : slices) {
      if (at + slice.size() > d.bytes())
        return absl::DataLossError("the torch server sent too much");
      std::memcpy(d.data() + at, slice.begin(), slice.size());
      at += slice.size();
    }
    if (call >= 0) samples.Add(SecondsSince(begin));
    const absl::Status right = CheckProduct(a, b, d);
    if (!right.ok()) return right;
  }
  session.Line(absl::StrCat("Python server around torch, f16 ", extent, "^3"), samples);
  return absl::OkStatus();
}

absl::Status BenchSmall(Session& session) {
  absl::Status status = BenchUnary(session);
  for (const int64_t extent : {int64_t{64}, int64_t{1024}}) {
    if (status.ok())
      status = BenchResident(session, std::min(extent, session.options.large_extent));
  }
  return status;
}

absl::Status RunAll(Session& session) {
  absl::Status status = session.options.large_only ? absl::OkStatus() : BenchSmall(session);
  if (!status.ok()) return status;
  const int64_t extent = session.options.large_extent;
  const auto a = RandomMatrix(extent, extent, 3), b = RandomMatrix(extent, extent, 4);
  status = BenchLarge(session, a, b);
  if (status.ok() && !session.options.torch.empty()) status = BenchTorch(session, a, b);
  return status;
}

}  // namespace

int BenchLatency(const LatencyOptions& options) {
  const auto server = Connect(options.server, 1);
  const auto baseline = Connect(options.baseline, 1);
  for (const absl::Status& status : {server.status(), baseline.status()}) {
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  Session session{options, GemmService::NewStub((*server)[0]),
                  GemmService::NewStub((*baseline)[0])};
  std::printf("%-72s %9s %9s %9s  (us)\n", "", "p50", "p90", "p99");
  const absl::Status status = RunAll(session);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  Print(session.verdicts);
  session.report["verdicts"] = ToJson(session.verdicts);
  if (!WriteJson(options.json, session.report)) return 1;
  const bool held = std::all_of(session.verdicts.begin(), session.verdicts.end(),
                                [](const Verdict& verdict) { return verdict.held(); });
  return options.check && !held ? 1 : 0;
}

}  // namespace gemmd::wire
