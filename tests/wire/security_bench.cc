// The cost of TLS and tokens: the same calls to servers with and without them, in turns.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/security/credentials.h"
#include "tests/wire/raw_channel.h"
#include "tests/wire/raw_download.h"
#include "tests/wire/samples.h"
#include "tests/wire/wire_bench.h"

namespace gemmd::wire {
namespace {

using gemm::v1::GemmService;

constexpr int64_t kExtent = 64;
constexpr uint64_t kPutRowBytes = 4096;
constexpr uint64_t kPutChunkBytes = uint64_t{1} << 20;

double Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Candidate {
  std::string name;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::unique_ptr<GemmService::Stub> stub;
  Samples unary;
  Samples put;
};

gemm::v1::MultiplyUnaryRequest SmallCall() {
  gemm::v1::MultiplyUnaryRequest request;
  for (gemm::v1::Operand* operand :
       {request.mutable_product()->mutable_a(), request.mutable_product()->mutable_b()}) {
    operand->mutable_shape()->set_rows(kExtent);
    operand->mutable_shape()->set_cols(kExtent);
    operand->mutable_shape()->set_dtype(gemm::v1::DATA_TYPE_F32);
    operand->set_data(std::string(kExtent * kExtent * sizeof(float), '\0'));
  }
  return request;
}

absl::Status Multiply(Candidate& candidate, const gemm::v1::MultiplyUnaryRequest& request,
                      bool keep) {
  grpc::ClientContext context;
  gemm::v1::MultiplyUnaryResponse response;
  const auto begin = std::chrono::steady_clock::now();
  const grpc::Status status = candidate.stub->MultiplyUnary(&context, request, &response);
  if (keep) candidate.unary.Add(Since(begin));
  if (!status.ok()) return FromGrpc(status);
  if (response.data().size() == kExtent * kExtent * sizeof(float)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(candidate.name, ": a result of ", response.data().size(), " bytes"));
}

absl::Status Put(Candidate& candidate, absl::Span<const std::byte> data, bool keep) {
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = Upload(candidate.channels, {data, kPutRowBytes, kPutChunkBytes});
  if (keep) candidate.put.Add(static_cast<double>(data.size()) / Since(begin));
  if (!answer.ok()) return answer.status();
  const std::string& id = answer->matrix().id();
  std::vector<std::byte> back(data.size());
  absl::Status status = Download(candidate.channels, id, absl::MakeSpan(back));
  if (status.ok()) status = DeleteMatrix(candidate.channels[0], id);
  if (!status.ok() || absl::c_equal(back, data)) return status;
  return absl::DataLossError(absl::StrCat(candidate.name, ": the matrix came back changed"));
}

absl::Status Add(const std::string& name, const std::string& address,
                 std::shared_ptr<grpc::ChannelCredentials> credentials,
                 std::vector<Candidate>& candidates) {
  if (address.empty()) return absl::OkStatus();
  auto channels = Connect(address, 1, std::move(credentials));
  if (!channels.ok()) return channels.status();
  Candidate& made = candidates.emplace_back();
  made.name = name;
  made.channels = *std::move(channels);
  made.stub = GemmService::NewStub(made.channels[0]);
  return absl::OkStatus();
}

absl::Status ConnectCandidates(const SecurityOptions& options, std::vector<Candidate>& candidates) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = ReadText(options.ca);
  const std::string token = ReadText(options.token_file);
  absl::Status status = Add("plain", options.plain, grpc::InsecureChannelCredentials(), candidates);
  if (status.ok()) status = Add("TLS", options.tls, grpc::SslCredentials(tls), candidates);
  if (!status.ok() || options.tokens.empty()) return status;
  return Add("TLS and a token", options.tokens,
             grpc::CompositeChannelCredentials(
                 grpc::SslCredentials(tls),
                 grpc::AccessTokenCredentials(std::string(absl::StripSuffix(token, "\n")))),
             candidates);
}

absl::Status Measure(const SecurityOptions& options, std::vector<Candidate>& candidates) {
  constexpr int kBlock = 100;
  const gemm::v1::MultiplyUnaryRequest request = SmallCall();
  for (int done = -kBlock; done < options.calls; done += kBlock) {  // the first block warms up
    for (Candidate& candidate : candidates) {
      for (int i = 0; i < kBlock; ++i) {
        const absl::Status status = Multiply(candidate, request, done >= 0);
        if (!status.ok()) return status;
      }
    }
  }
  std::vector<std::byte> data(std::max(options.bytes / kPutRowBytes, uint64_t{1}) * kPutRowBytes);
  std::mt19937 random(1);
  std::generate(data.begin(), data.end(), [&] { return static_cast<std::byte>(random()); });
  for (int round = -1; round < options.rounds; ++round) {
    for (Candidate& candidate : candidates) {
      const absl::Status status = Put(candidate, data, round >= 0);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

int BenchSecurity(const SecurityOptions& options) {
  std::vector<Candidate> candidates;
  absl::Status status = ConnectCandidates(options, candidates);
  if (status.ok()) status = Measure(options, candidates);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  nlohmann::json report = {{"calls", options.calls}, {"bytes", options.bytes}};
  std::printf("%-18s %14s %14s %16s\n", "server", "64^3 p50 us", "64^3 p99 us", "PutMatrix GB/s");
  for (const Candidate& candidate : candidates) {
    std::printf("%-18s %14.1f %14.1f %16.3f\n", candidate.name.c_str(),
                candidate.unary.Median() * 1e6, candidate.unary.Percentile(0.99) * 1e6,
                candidate.put.Median() / 1e9);
    report["servers"][candidate.name] = {{"unary_microseconds", candidate.unary.ToJson(1e6)},
                                         {"put_gb_per_s", candidate.put.ToJson(1e-9)}};
  }
  return WriteJson(options.json, report) ? 0 : 1;
}

}  // namespace gemmd::wire
