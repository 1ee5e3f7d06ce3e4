#include "tests/wire/latency_session.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "absl/strings/str_cat.h"
#include "gemmd/client/client.h"
#include "tests/wire/raw_channel.h"

namespace gemmd::wire {

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double ToSeconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + duration.nanos() * 1e-9;
}

client::HostMatrix RandomMatrix(int64_t rows, int64_t cols, uint64_t seed) {
  auto matrix =
      client::HostMatrix::Allocate({.rows = rows, .cols = cols, .dtype = client::kF16}).value();
  std::mt19937_64 bits(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < rows * cols; ++i) {
    client::StoreElement(matrix.data(), i, client::kF16, normal(bits));
  }
  return matrix;
}

absl::Status CheckProduct(const client::HostMatrix& a, const client::HostMatrix& b,
                          const client::HostMatrix& d) {
  const int64_t k = a.shape().cols;
  const auto* bits = reinterpret_cast<const uint16_t*>(d.data());
  for (int64_t i = 0; i < d.shape().elements(); ++i) {
    if ((bits[i] & 0x7FFF) > 0x7C00) {
      return absl::DataLossError(absl::StrCat("element ", i, " of the result was not written"));
    }
  }
  std::mt19937_64 random(7);
  for (int sample = 0; sample < 64; ++sample) {
    const auto i = static_cast<int64_t>(random() % d.shape().rows);
    const auto j = static_cast<int64_t>(random() % d.shape().cols);
    double sum = 0, magnitude = 0;
    for (int64_t l = 0; l < k; ++l) {
      const double term = a.Get(i, l) * b.Get(l, j);
      sum += term;
      magnitude += std::abs(term);
    }
    const double bound = static_cast<double>(k) * 0x1p-23 * magnitude;
    if (!(std::abs(d.Get(i, j) - sum) <= bound + 0x1p-11 * (std::abs(sum) + bound) + 0x1p-25)) {
      return absl::DataLossError(
          absl::StrCat("D[", i, ",", j, "] is ", d.Get(i, j), ", not ", sum));
    }
  }
  return absl::OkStatus();
}

void Session::Line(const std::string& name, const Samples& samples) {
  std::printf("%-72s %9.1f %9.1f %9.1f\n", name.c_str(), samples.Median() * 1e6,
              samples.Percentile(0.9) * 1e6, samples.Percentile(0.99) * 1e6);
  std::fflush(stdout);
  report["microseconds"][name] = samples.ToJson(1e6);
}

absl::StatusOr<double> TimeEmpty(Session& session) {
  grpc::ClientContext context;
  gemm::v1::GetServerInfoResponse response;
  const auto begin = Clock::now();
  const grpc::Status status = session.baseline->GetServerInfo(&context, {}, &response);
  const double seconds = SecondsSince(begin);
  return status.ok() ? absl::StatusOr<double>(seconds) : FromGrpc(status);
}

absl::StatusOr<UnaryTime> TimeUnary(gemm::v1::GemmService::Stub& stub,
                                    const gemm::v1::MultiplyUnaryRequest& request) {
  grpc::ClientContext context;
  UnaryTime time;
  const auto begin = Clock::now();
  const grpc::Status status = stub.MultiplyUnary(&context, request, &time.response);
  time.seconds = SecondsSince(begin);
  if (!status.ok()) return FromGrpc(status);
  time.kernel_seconds = ToSeconds(time.response.report().phases().kernel());
  return time;
}

absl::Status Interleave(int calls, const std::vector<Step>& steps) {
  constexpr int kBlock = 100;
  for (int done = -kBlock; done < calls; done += kBlock) {
    for (const Step& step : steps) {
      for (int i = 0; i < std::min(kBlock, calls - std::max(done, 0)); ++i) {
        const absl::Status status = step(done >= 0);
        if (!status.ok()) return status;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace gemmd::wire
