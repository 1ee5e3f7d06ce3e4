// Small products, one at a time.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemmd/client/client.h"
#include "tests/wire/latency_session.h"
#include "tests/wire/raw_channel.h"

namespace gemmd::wire {
namespace {

std::string Bytes(const client::HostMatrix& matrix) {
  return std::string(reinterpret_cast<const char*>(matrix.data()), matrix.bytes());
}

void SetShape(gemm::v1::Operand* operand, int64_t extent) {
  operand->mutable_shape()->set_rows(extent);
  operand->mutable_shape()->set_cols(extent);
  operand->mutable_shape()->set_dtype(gemm::v1::DATA_TYPE_F16);
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

// One product of 64^3 as a unary call, and its baselines. Every answer is checked: it has
// the bytes of one that was looked at element by element, or is looked at itself.
class UnaryProduct {
 public:
  UnaryProduct(Session& session, client::Client& client) : session_(session), client_(client) {
    SetShape(request_.mutable_product()->mutable_a(), kExtent);
    SetShape(request_.mutable_product()->mutable_b(), kExtent);
    request_.mutable_product()->mutable_a()->set_data(Bytes(a_));
    request_.mutable_product()->mutable_b()->set_data(Bytes(b_));
  }

  absl::Status Empty(bool keep) {
    const auto seconds = TimeEmpty(session_);
    if (seconds.ok() && keep) empty_.Add(*seconds);
    return seconds.status();
  }

  // The same bytes to a server that drops them.
  absl::Status Dropped(bool keep) {
    const auto time = TimeUnary(*session_.baseline, request_);
    if (time.ok() && keep) dropped_.Add(time->seconds);
    return time.status();
  }

  absl::Status Raw(bool keep) {
    const auto time = TimeUnary(*session_.server, request_);
    if (!time.ok()) return time.status();
    if (keep) {
      product_.Add(time->seconds);
      kernel_.Add(time->kernel_seconds);
    }
    if (time->response.data() == verified_) return absl::OkStatus();
    if (time->response.data().size() != d_.bytes()) return absl::DataLossError("short result");
    std::memcpy(d_.data(), time->response.data().data(), d_.bytes());
    verified_ = time->response.data();
    return CheckProduct(a_, b_, d_);
  }

  absl::Status Library(bool keep) {
    return ThroughLibrary(keep ? &library_ : nullptr,
                          [this](const client::Product& into) { return client_.Multiply(into); });
  }

  // The answer is awaited in a thread of its own.
  absl::Status Future(bool keep) {
    return ThroughLibrary(keep ? &future_ : nullptr, [this](const client::Product& into) {
      return client_.MultiplyFuture(into).get();
    });
  }

  void Report() {
    session_.Line("empty unary call", empty_);
    session_.Line("empty handler, the same 16 KiB of operands", dropped_);
    session_.Line("MultiplyUnary f16 64^3", product_);
    session_.Line("  of that, kernel", kernel_);
    session_.Line("  the same through the client library", library_);
    session_.Line("  the same through the client library, a future", future_);
    session_.verdicts.push_back({"MultiplyUnary f16 64^3 above an empty call",
                                 (product_.Median() - empty_.Median()) * 1e6, "us", true, 80});
    session_.verdicts.push_back({"the client library above a raw call, f16 64^3",
                                 (library_.Median() - product_.Median()) * 1e6, "us", true, 20});
  }

 private:
  static constexpr int64_t kExtent = 64;

  template <typename Multiply>
  absl::Status ThroughLibrary(Samples* samples, const Multiply& multiply) {
    std::memset(d_.data(), 0xFF, d_.bytes());
    client::Product into{.a = a_.view(), .b = b_.view()};
    into.result.into = d_.mutable_view();
    const auto begin = Clock::now();
    const auto result = multiply(into);
    if (samples != nullptr) samples->Add(SecondsSince(begin));
    if (!result.ok()) return result.status();
    // A look at each element would leave the server idle before the next call, and its
    // threads would have to be woken: other calls are not measured so.
    return Bytes(d_) == verified_ ? absl::OkStatus() : CheckProduct(a_, b_, d_);
  }

  Session& session_;
  client::Client& client_;
  const client::HostMatrix a_ = RandomMatrix(kExtent, kExtent, 1);
  const client::HostMatrix b_ = RandomMatrix(kExtent, kExtent, 2);
  client::HostMatrix d_ = client::HostMatrix::Allocate(a_.shape()).value();
  gemm::v1::MultiplyUnaryRequest request_;
  std::string verified_;
  Samples empty_, dropped_, product_, kernel_, library_, future_;
};

}  // namespace

absl::Status BenchUnary(Session& session) {
  auto client = client::Client::Connect({.address = session.options.server});
  if (!client.ok()) return client.status();
  UnaryProduct product(session, **client);
  const absl::Status status =
      Interleave(session.options.small_calls, {[&](bool keep) { return product.Empty(keep); },
                                               [&](bool keep) { return product.Dropped(keep); },
                                               [&](bool keep) { return product.Raw(keep); },
                                               [&](bool keep) { return product.Library(keep); },
                                               [&](bool keep) { return product.Future(keep); }});
  if (status.ok()) product.Report();
  return status;
}

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

}  // namespace gemmd::wire
