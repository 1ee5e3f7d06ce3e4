// The client library of gemmd: matrix products on a server.
//
//   auto client = gemmd::client::Client::Connect({.address = "127.0.0.1:50051"});
//   if (!client.ok()) return client.status();
//   auto a = HostMatrix::FromDoubles({.rows = 2, .cols = 2}, {1, 2, 3, 4});
//   auto result = (*client)->Multiply({.a = a->view(), .b = a->view()});
//   if (!result.ok()) return result.status();
//   double corner = result->matrix.Get(0, 0);  // 7
//
// A complete program is examples/cpp/hello.cc.
//
// How a product is sent. A small one takes one message each way. A larger one has
// a stream of its own. Large operands are uploaded in ranges over all channels at once,
// multiplied by reference and released. A large result is downloaded in ranges over all
// channels. The matrices that the library
// keeps on the server for this have a time to live, so nothing stays when a client
// dies. CallOptions::transport overrides the choice.
//
// Payload is sent from the caller's memory, without a copy, and received with one
// copy into its place. Products that take one message are copied once more.
//
// Errors are canonical codes. Errors of the server are passed on unchanged. Errors
// of the library (a bad shape, a certificate file) name the field, the value and
// the bound. UNAVAILABLE: the server could not be reached or went away, or it lost the
// device; the call may or may not have run. A call that fails for the server's load or
// absence is tried again first if that is safe: gemmd/client/retry.h. DATA_LOSS: the matrix
// went with its device, or a product failed its check twice (Product::verify).
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemmd/client/matrix.h"
#include "gemmd/client/options.h"
#include "gemmd/client/product.h"
#include "gemmd/client/retry.h"
#include "gemmd/client/types.h"

namespace gemmd::client {

struct PutOptions {
  Keep keep;
  // Such as "cuda:0"; empty: the device with the most room.
  std::string device;
};

struct GetOptions {
  // Memory for the elements; its shape must be the matrix's. Left out: the library
  // allocates.
  std::optional<MutableMatrixView> into;
};

struct FetchedMatrix {
  HostMatrix matrix;  // empty where GetOptions::into was given
  MatrixInfo info;
};

using BenchmarkCallback = std::function<void(const BenchmarkResponse&)>;

using MultiplyCallback = std::function<void(absl::StatusOr<ProductResult>)>;

// Which matrices are listed.
struct ListOptions {
  std::string name_prefix;
  bool shared = false;       // the shared ones, whoever owns them
  bool every_owner = false;  // everybody's; only for administrators
};

// A connection to one server. Thread-safe; any number of calls at once. The
// destructor cancels the calls under way and waits for them, so it must not run
// inside a callback.
class Client {
 public:
  // Connects and asks for the server's limits. INVALID_ARGUMENT names the
  // option; UNAVAILABLE or DEADLINE_EXCEEDED name the address.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const ClientOptions& options() const;
  // The server's version, devices and limits, as of Connect.
  const ServerInfo& server() const;

  // D = act(alpha op(A) op(B) + beta C + bias), in three styles. The memory of the
  // product's views must not change until the call has ended. (A view's owner keeps
  // it alive, not unchanged.)
  //
  // Blocks until the result has arrived.
  absl::StatusOr<ProductResult> Multiply(const Product& product, const CallOptions& options = {});

  // Returns at once. `done` is called once, from a thread of the library or from
  // inside this call, and must not block. The returned canceller ends this call; it
  // is the one of `options` where that has one.
  Canceller MultiplyAsync(Product product, CallOptions options, MultiplyCallback done);

  // Returns at once. Give `options` a canceller to end the call early.
  std::future<absl::StatusOr<ProductResult>> MultiplyFuture(Product product,
                                                            CallOptions options = {});

  // Uploads a matrix and keeps it on the server. `put.keep.replace` replaces a named one.
  absl::StatusOr<MatrixInfo> PutMatrix(const MatrixView& matrix, const PutOptions& put = {},
                                       const CallOptions& options = {});

  // Generates a matrix on the server and keeps it there.
  absl::StatusOr<MatrixInfo> PutGenerated(const Generated& matrix, const PutOptions& put = {},
                                          const CallOptions& options = {});

  // Downloads a resident matrix; with `matrix.release` also deletes it. All bytes
  // are of one matrix. If the name comes to mean another matrix during the download,
  // the download is repeated in one call, which nothing can come between.
  absl::StatusOr<FetchedMatrix> GetMatrix(const Resident& matrix, const GetOptions& get = {},
                                          const CallOptions& options = {});

  // The MatrixInfo of one resident matrix, without its elements. NOT_FOUND where
  // there is none.
  absl::StatusOr<MatrixInfo> StatMatrix(const Resident& matrix, const CallOptions& options = {});

  // The caller's own matrices whose name has this prefix, ordered by id.
  absl::StatusOr<std::vector<MatrixInfo>> ListMatrices(absl::string_view name_prefix = "",
                                                       const CallOptions& options = {});

  // The same, of other matrices than the caller's own.
  absl::StatusOr<std::vector<MatrixInfo>> ListMatrices(const ListOptions& list,
                                                       const CallOptions& options = {});

  // Deletes a resident matrix. NOT_FOUND where there is none. With `matrix.version` only
  // that version: ABORTED for another.
  absl::StatusOr<MatrixInfo> DeleteMatrix(const Resident& matrix, const CallOptions& options = {});

  // The kernels of the catalogue; with `family`, only those of that family.
  absl::StatusOr<std::vector<KernelInfo>> ListKernels(absl::string_view family = "",
                                                      const CallOptions& options = {});

  // The kernels that take a product, first the one that the server picks for it, and why.
  absl::StatusOr<RankKernelsResponse> RankKernels(const RankKernelsRequest& request,
                                                  const CallOptions& options = {});

  // Measures kernels on a device of the server (see Benchmark in the contract), and
  // blocks until the end. `on_message` gets the header, then rows and progress. It is
  // called from a thread of the library, one call at a time and none after this
  // returns; the server waits while it is slow. A canceller in `options` ends the
  // benchmark early.
  absl::StatusOr<BenchmarkEnd> Benchmark(const BenchmarkRequest& request,
                                         const BenchmarkCallback& on_message,
                                         const CallOptions& options = {});

  // The kinds of products that are worth tuning: of those that the server has seen, the `limit`
  // that took the most time, 1 to 1024; 0: 100.
  absl::StatusOr<ListTrafficResponse> ListTraffic(int limit = 0, const CallOptions& options = {});

  // Has the server read its tuning tables again, and says how many entries it has and uses.
  absl::StatusOr<ReloadTuningResponse> ReloadTuning(const CallOptions& options = {});

  // Asks the server again, for its current load and the health of its devices.
  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options = {});

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace gemmd::client
