#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "tests/wire/latency_session.h"
#include "tests/wire/raw_channel.h"
#include "tests/wire/small_load.h"

namespace gemmd::wire {
namespace {

using ::gemm::v1::GemmService;

// A product of f16 with the server's own answer, which must be right.
absl::StatusOr<SmallProduct> Learn(const std::shared_ptr<grpc::Channel>& channel, int64_t extent,
                                   bool baseline) {
  const auto a = RandomMatrix(extent, extent, 1), b = RandomMatrix(extent, extent, 2);
  SmallProduct product;
  for (const auto& [operand, matrix] :
       {std::pair{product.product.mutable_a(), &a}, std::pair{product.product.mutable_b(), &b}}) {
    operand->mutable_shape()->set_rows(extent);
    operand->mutable_shape()->set_cols(extent);
    operand->mutable_shape()->set_dtype(gemm::v1::DATA_TYPE_F16);
    operand->set_data(matrix->data(), matrix->bytes());
  }
  gemm::v1::MultiplyUnaryRequest request;
  *request.mutable_product() = product.product;
  const auto stub = GemmService::NewStub(channel);
  const auto answer = TimeUnary(*stub, request);
  if (!answer.ok()) return answer.status();
  product.expected = answer->response.data();
  if (product.expected.size() != a.bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an answer has ", product.expected.size(), " bytes of elements, not ",
                     a.bytes(), baseline ? " (--answer-bytes of serve-baseline)" : ""));
  }
  if (baseline) return product;
  auto d = client::HostMatrix::Allocate(a.shape()).value();
  std::memcpy(d.data(), product.expected.data(), d.bytes());
  const absl::Status right = CheckProduct(a, b, d);
  if (!right.ok()) return right;
  return product;
}

struct MeasuredServer {
  Endpoint endpoint;
  bool baseline = false;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  SmallProduct product;
  Samples unary, stream;
};

absl::StatusOr<std::vector<MeasuredServer>> ConnectServers(const SmallOptions& options) {
  std::vector<MeasuredServer> all;
  for (const bool baseline : {true, false}) {
    for (const Endpoint& endpoint : baseline ? options.baselines : options.servers) {
      auto channels = Connect(endpoint.address, options.channels);
      if (!channels.ok()) return channels.status();
      auto product = Learn(channels->front(), options.extent, baseline);
      if (!product.ok()) return product.status();
      all.push_back({endpoint, baseline, *std::move(channels), *std::move(product), {}, {}});
    }
  }
  return all;
}

absl::Status RunSmallRounds(const SmallOptions& options, std::vector<MeasuredServer>& all) {
  for (int round = -1; round < options.rounds; ++round) {  // round -1 warms up
    for (MeasuredServer& one : all) {
      const Rate unary = UnaryRate(one.channels, options.callers, one.product, options.seconds);
      const Rate stream =
          StreamRate(one.channels[0], options.in_flight, one.product, options.seconds);
      for (const absl::Status& status : {unary.status, stream.status}) {
        if (!status.ok()) {
          return absl::Status(status.code(),
                              absl::StrCat(one.endpoint.name, ": ", status.message()));
        }
      }
      if (round < 0) continue;
      one.unary.Add(unary.per_second);
      one.stream.Add(stream.per_second);
    }
  }
  return absl::OkStatus();
}

void ReportSmall(const SmallOptions& options, const std::vector<MeasuredServer>& all,
                 nlohmann::json& report, std::vector<Verdict>& verdicts) {
  const struct {
    std::string name;
    Samples MeasuredServer::*samples;
  } ways[] = {
      {absl::StrCat(options.callers, " callers, unary"), &MeasuredServer::unary},
      {absl::StrCat("one stream, ", options.in_flight, " in flight"), &MeasuredServer::stream}};
  std::printf("%-28s %-16s %10s %10s %10s %8s\n", "products a second", "", "median", "min", "max",
              "ratio");
  for (const auto& way : ways) {
    double strongest = 0;
    for (const MeasuredServer& one : all) {
      if (one.baseline) strongest = std::max(strongest, (one.*way.samples).Median());
    }
    bool judged = false;
    for (const MeasuredServer& one : all) {
      const Samples& samples = one.*way.samples;
      const double ratio = samples.Median() / strongest;
      std::printf("%-28s %-16s %10.0f %10.0f %10.0f %8.3f\n", way.name.c_str(),
                  one.endpoint.name.c_str(), samples.Median(), samples.Percentile(0),
                  samples.Percentile(1), ratio);
      report["rows"].push_back({{"way", way.name},
                                {"name", one.endpoint.name},
                                {"baseline", one.baseline},
                                {"per_second", samples.ToJson(1)},
                                {"of_strongest_baseline", ratio}});
      if (one.baseline || std::exchange(judged, true)) continue;
      verdicts.push_back({absl::StrCat(way.name, ", over the strongest baseline"), ratio, "x",
                          /*at_most=*/false, 0.6});
    }
  }
}

}  // namespace

int BenchSmall(const SmallOptions& options) {
  auto all = ConnectServers(options);
  const absl::Status status = all.ok() ? RunSmallRounds(options, *all) : all.status();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  nlohmann::json report = {{"extent", options.extent}, {"channels", options.channels}};
  std::vector<Verdict> verdicts;
  ReportSmall(options, *all, report, verdicts);
  Print(verdicts);
  report["verdicts"] = ToJson(verdicts);
  if (!WriteJson(options.json, report)) return 1;
  const bool held = std::all_of(verdicts.begin(), verdicts.end(),
                                [](const Verdict& verdict) { return verdict.held(); });
  return options.check && !held ? 1 : 0;
}

}  // namespace gemmd::wire
