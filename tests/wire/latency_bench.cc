#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "gemmd/client/client.h"
#include "tests/wire/raw_channel.h"
#include "tests/wire/samples.h"
#include "tests/wire/wire_bench.h"

namespace gemmd::wire {
namespace {

using ::gemm::v1::GemmService;
using Clock = std::chrono::steady_clock;

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

std::string Bytes(const client::HostMatrix& matrix) {
  return std::string(reinterpret_cast<const char*>(matrix.data()), matrix.bytes());
}

// Whether 64 elements of d = a b agree with sums in double within the rounding
// of an f32 accumulation that truncates and of the f16 result, and no element
// is NaN (which `d` was filled with).
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

struct Session {
  const LatencyOptions& options;
  std::unique_ptr<GemmService::Stub> server;
  std::unique_ptr<GemmService::Stub> baseline;
  nlohmann::json report = nlohmann::json::object();
  std::vector<Verdict> verdicts;

  void Line(const std::string& name, const Samples& samples) {
    std::printf("%-52s %9.1f %9.1f %9.1f\n", name.c_str(), samples.Median() * 1e6,
                samples.Percentile(0.9) * 1e6, samples.Percentile(0.99) * 1e6);
    std::fflush(stdout);
    report["microseconds"][name] = samples.ToJson(1e6);
  }
};

// The baseline's empty calls: with nothing to carry, and with two operands that
// it drops.
absl::StatusOr<double> TimeEmpty(Session& session) {
  grpc::ClientContext context;
  gemm::v1::GetServerInfoResponse response;
  const auto begin = Clock::now();
  const grpc::Status status = session.baseline->GetServerInfo(&context, {}, &response);
  const double seconds = SecondsSince(begin);
  return status.ok() ? absl::StatusOr<double>(seconds) : FromGrpc(status);
}

struct UnaryTime {
  double seconds = 0;
  double kernel_seconds = 0;
  gemm::v1::MultiplyUnaryResponse response;
};
absl::StatusOr<UnaryTime> TimeUnary(GemmService::Stub& stub,
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

// Calls in alternating blocks, so that what disturbs one disturbs the other;
// the first block of each warms up. `steps` are called as often as each other.
using Step = std::function<absl::Status(bool keep)>;
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

void SetShape(gemm::v1::Operand* operand, int64_t extent) {
  operand->mutable_shape()->set_rows(extent);
  operand->mutable_shape()->set_cols(extent);
  operand->mutable_shape()->set_dtype(gemm::v1::DATA_TYPE_F16);
}

absl::Status BenchUnary(Session& session) {
  constexpr int64_t kExtent = 64;
  const auto a = RandomMatrix(kExtent, kExtent, 1), b = RandomMatrix(kExtent, kExtent, 2);
  gemm::v1::MultiplyUnaryRequest request;
  SetShape(request.mutable_product()->mutable_a(), kExtent);
  SetShape(request.mutable_product()->mutable_b(), kExtent);
  request.mutable_product()->mutable_a()->set_data(Bytes(a));
  request.mutable_product()->mutable_b()->set_data(Bytes(b));

  Samples empty, dropped, product, kernel;
  auto d = client::HostMatrix::Allocate(a.shape()).value();
  std::string verified;  // the last answer that was looked at element by element
  const Step time_empty = [&](bool keep) -> absl::Status {
    const auto seconds = TimeEmpty(session);
    if (seconds.ok() && keep) empty.Add(*seconds);
    return seconds.status();
  };
  const Step time_dropped = [&](bool keep) -> absl::Status {
    const auto time = TimeUnary(*session.baseline, request);
    if (time.ok() && keep) dropped.Add(time->seconds);
    return time.status();
  };
  const Step time_product = [&](bool keep) -> absl::Status {
    const auto time = TimeUnary(*session.server, request);
    if (!time.ok()) return time.status();
    if (keep) {
      product.Add(time->seconds);
      kernel.Add(time->kernel_seconds);
    }
    if (time->response.data() == verified) return absl::OkStatus();
    if (time->response.data().size() != d.bytes()) return absl::DataLossError("short result");
    std::memcpy(d.data(), time->response.data().data(), d.bytes());
    verified = time->response.data();
    return CheckProduct(a, b, d);
  };
  const absl::Status status =
      Interleave(session.options.small_calls, {time_empty, time_dropped, time_product});
  if (!status.ok()) return status;
  session.Line("empty unary call", empty);
  session.Line("empty handler, the same 16 KiB of operands", dropped);
  session.Line("MultiplyUnary f16 64^3", product);
  session.Line("  of that, kernel", kernel);
  session.verdicts.push_back({"MultiplyUnary f16 64^3 above an empty call",
                              (product.Median() - empty.Median()) * 1e6, "us", true, 80});
  return absl::OkStatus();
}

// Jobs on resident operands whose result stays resident, one at a time.
class ResidentJobs {
 public:
  ResidentJobs(Session& session, int64_t extent) : session_(session) {
    for (gemm::v1::Operand* operand : {product_.mutable_a(), product_.mutable_b()}) {
      const auto matrix = Put(extent, ids_.size() + 1);
      if (!matrix.ok()) {
        status_ = matrix.status();
        return;
      }
      ids_.push_back(*matrix);
      operand->mutable_matrix()->set_id(*matrix);
    }
    product_.mutable_result()->mutable_keep();
    stream_ = session_.server->Multiply(&context_);
  }
  ~ResidentJobs() {
    if (stream_ != nullptr) {
      stream_->WritesDone();
      gemm::v1::MultiplyResponse response;
      while (stream_->Read(&response)) {
      }
      stream_->Finish();
    }
    for (const std::string& id : ids_) (void)Delete(id);
  }

  const absl::Status& status() const { return status_; }

  // Seconds of one call, and of them the kernel's.
  absl::StatusOr<std::pair<double, double>> Unary() {
    gemm::v1::MultiplyUnaryRequest request;
    *request.mutable_product() = product_;
    const auto time = TimeUnary(*session_.server, request);
    if (!time.ok()) return time.status();
    const absl::Status deleted = Delete(time->response.kept().id());
    if (!deleted.ok()) return deleted;
    return std::make_pair(time->seconds, time->kernel_seconds);
  }

  // The same on a stream that stays open: header out, to result in.
  absl::StatusOr<std::pair<double, double>> Streamed() {
    gemm::v1::MultiplyRequest request;
    request.mutable_header()->set_job_id(++job_id_);
    *request.mutable_header()->mutable_product() = product_;
    gemm::v1::MultiplyResponse response;
    const auto begin = Clock::now();
    if (!stream_->Write(request) || !stream_->Read(&response)) {
      return absl::UnavailableError("the Multiply stream has ended");
    }
    const double seconds = SecondsSince(begin);
    if (!response.has_result()) return absl::InternalError(response.error().message());
    const absl::Status deleted = Delete(response.result().kept().id());
    if (!deleted.ok()) return deleted;
    return std::make_pair(seconds, ToSeconds(response.result().report().phases().kernel()));
  }

 private:
  absl::StatusOr<std::string> Put(int64_t extent, uint64_t seed) {
    grpc::ClientContext context;
    gemm::v1::PutMatrixResponse response;
    const auto writer = session_.server->PutMatrix(&context, &response);
    gemm::v1::PutMatrixRequest request;
    gemm::v1::PutMatrixHeader* header = request.mutable_header();
    header->mutable_shape()->set_rows(extent);
    header->mutable_shape()->set_cols(extent);
    header->mutable_shape()->set_dtype(gemm::v1::DATA_TYPE_F16);
    header->mutable_generator()->set_seed(seed);
    header->mutable_generator()->mutable_normal();
    writer->Write(request);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpc(status);
    return response.matrix().id();
  }

  absl::Status Delete(const std::string& id) {
    grpc::ClientContext context;
    gemm::v1::DeleteMatrixRequest request;
    request.mutable_matrix()->set_id(id);
    gemm::v1::DeleteMatrixResponse response;
    return FromGrpc(session_.server->DeleteMatrix(&context, request, &response));
  }

  Session& session_;
  absl::Status status_;
  std::vector<std::string> ids_;
  gemm::v1::Product product_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<gemm::v1::MultiplyRequest, gemm::v1::MultiplyResponse>>
      stream_;
  uint64_t job_id_ = 0;
};

absl::Status BenchResident(Session& session, int64_t extent) {
  ResidentJobs jobs(session, extent);
  if (!jobs.status().ok()) return jobs.status();
  Samples empty;
  const Step time_empty = [&](bool keep) -> absl::Status {
    const auto seconds = TimeEmpty(session);
    if (seconds.ok() && keep) empty.Add(*seconds);
    return seconds.status();
  };
  struct Way {
    std::string name;
    absl::StatusOr<std::pair<double, double>> (ResidentJobs::*run)();
    Samples whole, kernel, rest;
  };
  std::vector<Way> ways = {{"unary", &ResidentJobs::Unary, {}, {}, {}},
                           {"on a stream", &ResidentJobs::Streamed, {}, {}, {}}};
  std::vector<Step> steps = {time_empty};
  for (Way& way : ways) {
    steps.push_back([&jobs, &way](bool keep) -> absl::Status {
      const auto times = (jobs.*way.run)();
      if (!times.ok()) return times.status();
      if (keep) {
        way.whole.Add(times->first);
        way.kernel.Add(times->second);
        way.rest.Add(times->first - times->second);
      }
      return absl::OkStatus();
    });
  }
  const absl::Status status = Interleave(session.options.small_calls, steps);
  if (!status.ok()) return status;
  const std::string what = absl::StrCat("resident f16 ", extent, "^3, ");
  session.Line(what + "empty call beside it", empty);
  for (const Way& way : ways) {
    session.Line(what + way.name, way.whole);
    session.Line("  of that, kernel (" + way.name + absl::StrCat(", ", extent, "^3)"), way.kernel);
    session.verdicts.push_back({what + way.name + ": all but kernel above empty",
                                (way.rest.Median() - empty.Median()) * 1e6, "us", true, 60});
  }
  return absl::OkStatus();
}

// Operands sent, result returned, through the client library.
absl::Status BenchLarge(Session& session, const client::HostMatrix& a, const client::HostMatrix& b,
                        const std::string& name, int channels, client::Transport transport,
                        double bound_ms) {
  auto client = client::Client::Connect({.address = session.options.server, .channels = channels});
  if (!client.ok()) return client.status();
  auto d = client::HostMatrix::Allocate(
               {.rows = a.shape().rows, .cols = b.shape().cols, .dtype = client::kF16})
               .value();
  Samples samples;
  for (int call = -3; call < session.options.large_calls; ++call) {
    std::memset(d.data(), 0xFF, d.bytes());
    client::Product product{.a = a.view(), .b = b.view()};
    product.result.into = d.mutable_view();
    const auto begin = Clock::now();
    const auto result = (*client)->Multiply(product, {.transport = transport});
    const double seconds = SecondsSince(begin);
    if (!result.ok()) return result.status();
    if (call >= 0) samples.Add(seconds);
    const absl::Status right = CheckProduct(a, b, d);
    if (!right.ok()) return right;
  }
  session.Line(name, samples);
  if (bound_ms > 0) {
    session.verdicts.push_back({name, samples.Median() * 1e3, "ms", true, bound_ms});
  }
  return absl::OkStatus();
}

// The Python server of torch_peer.py: m, n, k, then A and B, for D.
absl::Status BenchPeer(Session& session, const client::HostMatrix& a, const client::HostMatrix& b) {
  const auto channels = Connect(session.options.peer, 1);
  if (!channels.ok()) return channels.status();
  const auto extent = static_cast<uint32_t>(a.shape().rows);
  const uint32_t dims[] = {extent, extent, extent};
  const auto bytes = [](const void* data, size_t size) {
    return absl::MakeConstSpan(static_cast<const std::byte*>(data), size);
  };
  auto d = client::HostMatrix::Allocate(a.shape()).value();
  Samples samples;
  for (int call = -2; call < session.options.peer_calls; ++call) {
    std::memset(d.data(), 0xFF, d.bytes());
    const auto begin = Clock::now();
    const auto answer = CallUnary(
        (*channels)[0], "/peer.Matmul/Multiply",
        {bytes(dims, sizeof(dims)), bytes(a.data(), a.bytes()), bytes(b.data(), b.bytes())});
    if (!answer.ok()) return answer.status();
    std::vector<grpc::Slice> slices;
    (void)answer->Dump(&slices);
    size_t at = 0;
    for (const grpc::Slice& slice : slices) {
      if (at + slice.size() > d.bytes()) return absl::DataLossError("the peer sent too much");
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

absl::Status RunAll(Session& session) {
  absl::Status status = BenchUnary(session);
  for (const int64_t extent : {int64_t{64}, int64_t{1024}}) {
    if (status.ok())
      status = BenchResident(session, std::min(extent, session.options.large_extent));
  }
  if (!status.ok()) return status;
  const int64_t extent = session.options.large_extent;
  const auto a = RandomMatrix(extent, extent, 3), b = RandomMatrix(extent, extent, 4);
  const std::string name = absl::StrCat("Multiply f16 ", extent, "^3 sent and returned, ");
  status = BenchLarge(session, a, b, name + "4 channels", 4, client::Transport::kStriped, 0);
  if (status.ok()) {
    status = BenchLarge(session, a, b, name + "8 channels", 8, client::Transport::kStriped, 25);
  }
  if (status.ok()) {
    status = BenchLarge(session, a, b, name + "one stream", 1, client::Transport::kStream, 0);
  }
  if (status.ok() && !session.options.peer.empty()) status = BenchPeer(session, a, b);
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
  std::printf("%-52s %9s %9s %9s  (us)\n", "", "p50", "p90", "p99");
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
