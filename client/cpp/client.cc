#include "gemmd/client/client.h"

#include <atomic>
#include <future>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls/clock.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/renewals.h"
#include "client/cpp/calls/run_task.h"
#include "client/cpp/calls/to_proto.h"
#include "client/cpp/products/multiply.h"
#include "client/cpp/products/product_plan.h"
#include "client/cpp/transfers/downloads.h"
#include "client/cpp/transfers/stripes.h"
#include "client/cpp/transfers/uploads.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;

constexpr absl::Duration kRenewalTimeout = absl::Seconds(2);

v1::PutMatrixHeader PutHeader(const Shape& shape, const PutOptions& put) {
  v1::PutMatrixHeader header;
  *header.mutable_shape() = ToProto(shape);
  *header.mutable_keep() = ToProto(put.keep);
  header.set_device(put.device);
  return header;
}

absl::Status CheckKey(const Resident& matrix) {
  if (matrix.id.empty() != matrix.name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("matrix.id is '", matrix.id,
                                                 "' and matrix.name is '", matrix.name,
                                                 "'; exactly one of them must be set"));
}

// One stripe, or one a channel for a matrix that is large enough.
std::vector<Stripe> StripesFor(Connection& connection, uint64_t bytes) {
  const bool split = bytes >= connection.options().stripe_threshold_bytes;
  const int first = connection.NextChannel();
  if (!split) return {{.channel = first, .offset = 0, .length = bytes}};
  return PlanStripes(bytes, connection.channels(), connection.chunk_bytes(), first);
}

absl::StatusOr<MatrixInfo> StatOf(Connection& connection, const Resident& matrix,
                                  const CallOptions& options) {
  return RunTask(connection, options, "GetMatrix", [&](const auto& task, auto then) {
    Stat(task, ToProto(matrix), std::move(then));
  });
}

// Sets `found` once the server has found the matrix.
absl::StatusOr<FetchedMatrix> Fetch(Connection& connection, const Resident& matrix,
                                    const GetOptions& get, const CallOptions& options,
                                    const std::shared_ptr<std::atomic<bool>>& found) {
  const absl::Time deadline = connection.Deadline(options);
  Resident source = matrix;
  if (get.into) source.shape = get.into->shape;
  if (!source.shape) {
    // Its shape says where the elements go, and whether to split them. By id
    // from here on: a name may come to mean another matrix.
    absl::StatusOr<MatrixInfo> info = StatOf(connection, matrix, options);
    if (!info.ok()) return info.status();
    *found = true;
    source = Resident::Of(*info);
  }
  const Shape shape = *source.shape;
  FetchedMatrix fetched;
  DownloadSpec spec{
      .matrix = ToProto(source), .shape = shape, .remove = matrix.release, .found = found};
  if (get.into) {
    if (absl::Status status = CheckShape(shape, "get.into.shape"); !status.ok()) return status;
    spec.to = get.into->data;
  } else {
    absl::StatusOr<HostMatrix> memory = HostMatrix::Allocate(shape);
    if (!memory.ok()) return memory.status();
    fetched.matrix = *std::move(memory);
    spec.to = fetched.matrix.data();
  }
  spec.stripes = StripesFor(connection, shape.bytes());
  CallOptions rest = options;
  rest.timeout = deadline - SteadyNow();
  absl::StatusOr<MatrixInfo> info =
      RunTask(connection, rest, "GetMatrix",
              [&](const auto& task, auto then) { Download(task, spec, std::move(then)); });
  if (!info.ok()) return info.status();
  fetched.info = *std::move(info);
  return fetched;
}

// In one RPC, which nothing can come between.
absl::StatusOr<FetchedMatrix> FetchWhole(Connection& connection, const Resident& matrix,
                                         const GetOptions& get, const CallOptions& options) {
  FetchedMatrix fetched;
  const std::optional<Shape> expected =
      get.into ? std::optional<Shape>(get.into->shape) : matrix.shape;
  const auto place = [&](const MatrixInfo& info) -> absl::StatusOr<std::byte*> {
    const Shape shape = FromProto(info.shape());
    if (expected && !(*expected == shape)) {
      return absl::InvalidArgumentError(absl::StrCat("the shape given is ", ToString(*expected),
                                                     "; the matrix is ", ToString(shape)));
    }
    if (get.into) return get.into->data;
    absl::StatusOr<HostMatrix> memory = HostMatrix::Allocate(shape);
    if (!memory.ok()) return memory.status();
    fetched.matrix = *std::move(memory);
    return fetched.matrix.data();
  };
  absl::StatusOr<MatrixInfo> info =
      RunTask(connection, options, "GetMatrix", [&](const auto& task, auto then) {
        DownloadWhole(task, ToProto(matrix), place, std::move(then));
      });
  if (!info.ok()) return info.status();
  fetched.info = *std::move(info);
  return fetched;
}

// A unary call that changes nothing when it runs again. `method` is one of the generated stub.
template <typename Request, typename Response>
absl::Status Query(Connection& connection,
                   grpc::Status (v1::GemmService::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                   const char* what, const CallOptions& options, const Request& request,
                   Response* response) {
  return Tried(connection, options, what, Repeated::kSame, [&](const CallOptions& rest) {
    return connection.Call(method, what, rest, request, response);
  });
}

// Runs a benchmark on the server, as one streaming RPC. `on_message` gets each message but the
// last, in order. `then` gets the last one, unless the task fails.
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

}  // namespace

class Client::Impl {
 public:
  explicit Impl(std::unique_ptr<Connection> opened)
      : renewals(absl::Seconds(opened->server().limits().unnamed_ttl().seconds()) +
                     absl::Nanoseconds(opened->server().limits().unnamed_ttl().nanos()),
                 [this](const std::string& id, Renewals::Done done) {
                   const CallOptions options{.timeout = kRenewalTimeout, .canceller = ending};
                   const auto task =
                       Task::Begin(*connection, options, "GetMatrix", std::move(done));
                   Stat(task, ToProto(Resident::ById(id)), [](const MatrixInfo&) {});
                   task->Drop();
                 }),
        connection(std::move(opened)) {}
  ~Impl() {
    ending.Cancel();
    renewals.Stop();
  }

  // Renews matrices without a name for which the caller gave no time to live.
  absl::StatusOr<MatrixInfo> OnKept(const Keep& keep, absl::StatusOr<MatrixInfo> kept) {
    const bool unnamed = keep.name.empty() && keep.ttl == absl::InfiniteDuration();
    if (kept.ok() && unnamed) renewals.Add(kept->id());
    return kept;
  }
  void OnProduct(const Product& product, const absl::StatusOr<ProductResult>& result) {
    if (result.ok() && result->kept) (void)OnKept(*product.result.keep, *result->kept);
  }

  const Canceller ending;
  Renewals renewals;  // outlives the calls under way, whose results are added
  std::unique_ptr<Connection> connection;
};

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(ClientOptions options) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(std::move(options));
  if (!connection.ok()) return connection.status();
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(*std::move(connection))));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

const ClientOptions& Client::options() const { return impl_->connection->options(); }
const ServerInfo& Client::server() const { return impl_->connection->server(); }

absl::StatusOr<ProductResult> Client::Multiply(const Product& product, const CallOptions& options) {
  absl::StatusOr<ProductResult> result = BlockingMultiply(*impl_->connection, product, options);
  impl_->OnProduct(product, result);
  return result;
}

Canceller Client::MultiplyAsync(Product product, CallOptions options, MultiplyCallback done) {
  if (!options.canceller) options.canceller.emplace();
  const auto shared = std::make_shared<const Product>(std::move(product));
  StartMultiply(*impl_->connection, shared, options,
                [impl = impl_.get(), shared, done = std::move(done)](auto result) {
                  impl->OnProduct(*shared, result);
                  done(std::move(result));
                });
  return *options.canceller;
}

std::future<absl::StatusOr<ProductResult>> Client::MultiplyFuture(Product product,
                                                                  CallOptions options) {
  const auto promise = std::make_shared<std::promise<absl::StatusOr<ProductResult>>>();
  MultiplyAsync(
      std::move(product), std::move(options),
      [promise](absl::StatusOr<ProductResult> result) { promise->set_value(std::move(result)); });
  return promise->get_future();
}

absl::StatusOr<MatrixInfo> Client::PutMatrix(const MatrixView& matrix, const PutOptions& put,
                                             const CallOptions& options) {
  if (absl::Status status = CheckView(matrix, "matrix"); !status.ok()) return status;
  Connection& connection = *impl_->connection;
  const auto attempt = [&](const CallOptions& rest) {
    return RunTask(connection, rest, "PutMatrix", [&](const auto& task, auto then) {
      Upload(task, PutHeader(matrix.shape, put), matrix,
             StripesFor(connection, matrix.shape.bytes()), std::move(then));
    });
  };
  return impl_->OnKept(put.keep,
                       Tried(connection, options, "PutMatrix", Repeated::kDifferent, attempt));
}

absl::StatusOr<MatrixInfo> Client::PutGenerated(const Generated& matrix, const PutOptions& put,
                                                const CallOptions& options) {
  if (absl::Status status = CheckShape(matrix.shape, "matrix.shape"); !status.ok()) return status;
  Connection& connection = *impl_->connection;
  const auto attempt = [&](const CallOptions& rest) {
    return RunTask(connection, rest, "PutMatrix", [&](const auto& task, auto then) {
      v1::PutMatrixHeader header = PutHeader(matrix.shape, put);
      *header.mutable_generator() = ToProto(matrix);
      UploadGenerated(task, header, std::move(then));
    });
  };
  return impl_->OnKept(put.keep,
                       Tried(connection, options, "PutMatrix", Repeated::kDifferent, attempt));
}

absl::StatusOr<FetchedMatrix> Client::GetMatrix(const Resident& matrix, const GetOptions& get,
                                                const CallOptions& options) {
  if (absl::Status status = CheckKey(matrix); !status.ok()) return status;
  Connection& connection = *impl_->connection;
  CallOptions rest = options;
  const absl::Time deadline = connection.Deadline(options);
  const auto found = std::make_shared<std::atomic<bool>>(false);
  const Repeated repeated = matrix.release ? Repeated::kDifferent : Repeated::kSame;
  absl::StatusOr<FetchedMatrix> fetched =
      Tried(connection, options, "GetMatrix", repeated,
            [&](const CallOptions& now) { return Fetch(connection, matrix, get, now, found); });
  if (matrix.name.empty() || !*found || !absl::IsNotFound(fetched.status())) return fetched;
  // The matrix that had the name has gone before every stripe had taken hold of it.
  rest.timeout = deadline - SteadyNow();
  return Tried(connection, rest, "GetMatrix", repeated,
               [&](const CallOptions& now) { return FetchWhole(connection, matrix, get, now); });
}

absl::StatusOr<MatrixInfo> Client::StatMatrix(const Resident& matrix, const CallOptions& options) {
  if (absl::Status status = CheckKey(matrix); !status.ok()) return status;
  Connection& connection = *impl_->connection;
  return Tried(connection, options, "GetMatrix", Repeated::kSame,
               [&](const CallOptions& rest) { return StatOf(connection, matrix, rest); });
}

absl::StatusOr<std::vector<MatrixInfo>> Client::ListMatrices(absl::string_view name_prefix,
                                                             const CallOptions& options) {
  return ListMatrices(ListOptions{.name_prefix = std::string(name_prefix)}, options);
}

absl::StatusOr<std::vector<MatrixInfo>> Client::ListMatrices(const ListOptions& list,
                                                             const CallOptions& options) {
  Connection& connection = *impl_->connection;
  const absl::Time deadline = connection.Deadline(options);
  std::vector<MatrixInfo> matrices;
  v1::ListMatricesRequest request;
  request.set_name_prefix(list.name_prefix);
  request.set_shared(list.shared);
  request.set_every_owner(list.every_owner);
  do {
    CallOptions rest = options;
    rest.timeout = deadline - SteadyNow();
    v1::ListMatricesResponse page;
    absl::Status status = Query(connection, &v1::GemmService::Stub::ListMatrices, "ListMatrices",
                                rest, request, &page);
    if (!status.ok()) return status;
    for (MatrixInfo& info : *page.mutable_matrices()) matrices.push_back(std::move(info));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return matrices;
}

absl::StatusOr<MatrixInfo> Client::DeleteMatrix(const Resident& matrix,
                                                const CallOptions& options) {
  if (absl::Status status = CheckKey(matrix); !status.ok()) return status;
  v1::DeleteMatrixRequest request;
  *request.mutable_matrix() = ToProto(matrix);
  request.mutable_matrix()->set_release(false);
  v1::DeleteMatrixResponse response;
  Connection& connection = *impl_->connection;
  absl::Status status = Tried(connection, options, "DeleteMatrix", Repeated::kDifferent,
                              [&](const CallOptions& rest) {
                                return connection.Call(&v1::GemmService::Stub::DeleteMatrix,
                                                       "DeleteMatrix", rest, request, &response);
                              });
  if (!status.ok()) return status;
  impl_->renewals.Remove(response.matrix().id());
  return response.matrix();
}

absl::StatusOr<std::vector<KernelInfo>> Client::ListKernels(absl::string_view family,
                                                            const CallOptions& options) {
  v1::ListKernelsRequest request;
  request.set_family(std::string(family));
  v1::ListKernelsResponse response;
  absl::Status status = Query(*impl_->connection, &v1::GemmService::Stub::ListKernels,
                              "ListKernels", options, request, &response);
  if (!status.ok()) return status;
  return std::vector<KernelInfo>(response.kernels().begin(), response.kernels().end());
}

absl::StatusOr<RankKernelsResponse> Client::RankKernels(const RankKernelsRequest& request,
                                                        const CallOptions& options) {
  RankKernelsResponse response;
  absl::Status status = Query(*impl_->connection, &v1::GemmService::Stub::RankKernels,
                              "RankKernels", options, request, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<BenchmarkEnd> Client::Benchmark(const BenchmarkRequest& request,
                                               const BenchmarkCallback& on_message,
                                               const CallOptions& options) {
  Connection& connection = *impl_->connection;
  const auto attempt = [&](const CallOptions& rest) {
    return RunTask<BenchmarkEnd>(connection, rest, "Benchmark", [&](const auto& task, auto then) {
      StreamBenchmark(task, request, on_message, std::move(then));
    });
  };
  return Tried(connection, options, "Benchmark", Repeated::kDifferent, attempt);
}

absl::StatusOr<ListTrafficResponse> Client::ListTraffic(int limit, const CallOptions& options) {
  v1::ListTrafficRequest request;
  request.set_limit(limit);
  ListTrafficResponse response;
  absl::Status status = Query(*impl_->connection, &v1::GemmService::Stub::ListTraffic,
                              "ListTraffic", options, request, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<ReloadTuningResponse> Client::ReloadTuning(const CallOptions& options) {
  ReloadTuningResponse response;
  absl::Status status = Query(*impl_->connection, &v1::GemmService::Stub::ReloadTuning,
                              "ReloadTuning", options, v1::ReloadTuningRequest(), &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<ServerInfo> Client::GetServerInfo(const CallOptions& options) {
  ServerInfo info;
  absl::Status status = Query(*impl_->connection, &v1::GemmService::Stub::GetServerInfo,
                              "GetServerInfo", options, v1::GetServerInfoRequest(), &info);
  if (!status.ok()) return status;
  return info;
}

}  // namespace gemmd::client
