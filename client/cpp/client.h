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
// How a product goes. A small one is one message each way. A larger one has a
// stream of its own. Where the matrices are large, operands are uploaded in
// ranges over all channels at once, multiplied by reference and released, and
// the result is fetched in ranges over all channels; what the library keeps on
// the server meanwhile has a time to live, so that nothing stays when a client
// dies. CallOptions::transport overrides the choice.
//
// Payload is sent from where it lies and received straight into its place: one
// copy in this process on the way in, none on the way out (but for products
// that go as one message).
//
// Errors are canonical codes. What the server says comes through unchanged;
// what fails here (a bad shape, a file of certificates) names the field, the
// value and the bound. UNAVAILABLE: the server could not be reached or went
// away; the call may or may not have run.
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
#include "client/cpp/matrix.h"
#include "client/cpp/options.h"
#include "client/cpp/product.h"
#include "client/cpp/types.h"

namespace gemmd::client {

struct PutOptions {
  Keep keep;
  // Such as "cuda:0"; empty: the device with the most room.
  std::string device;
};

struct GetOptions {
  // Put the elements here; the shape must be the matrix's. Left out: the
  // library allocates.
  std::optional<MutableMatrixView> into;
};

struct FetchedMatrix {
  HostMatrix matrix;  // empty where GetOptions::into was given
  MatrixInfo info;
};

using BenchmarkCallback = std::function<void(const BenchmarkResponse&)>;

using MultiplyCallback = std::function<void(absl::StatusOr<ProductResult>)>;

// A connection to one server. Thread-safe; any number of calls at once. Not to
// be destroyed from inside a callback: the destructor cancels what is under way
// and waits for it.
class Client {
 public:
  // Connects and asks for the server's limits. INVALID_ARGUMENT names the
  // option; UNAVAILABLE or DEADLINE_EXCEEDED name the address.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const ClientOptions& options() const;
  // As the server told it at Connect: version, devices, limits.
  const ServerInfo& server() const;

  // D = act(alpha op(A) op(B) + beta C + bias), in three styles. Memory that
  // the product's views name must stay as it is until the call has ended (a
  // view's owner keeps it alive, not unchanged).
  //
  // Blocks until the result is there.
  absl::StatusOr<ProductResult> Multiply(const Product& product, const CallOptions& options = {});

  // Returns at once. `done` is called once, from a thread of the library's or
  // from inside this call, and must not block. What the returned canceller ends
  // is this call (or, where `options` brought a canceller, all of that one's).
  Canceller MultiplyAsync(Product product, CallOptions options, MultiplyCallback done);

  // Returns at once. Give `options` a canceller to end the call early.
  std::future<absl::StatusOr<ProductResult>> MultiplyFuture(Product product,
                                                            CallOptions options = {});

  // Uploads a matrix and keeps it on the server.
  absl::StatusOr<MatrixInfo> PutMatrix(const MatrixView& matrix, const PutOptions& put = {},
                                       const CallOptions& options = {});

  // Draws a matrix on the server and keeps it there.
  absl::StatusOr<MatrixInfo> PutGenerated(const Generated& matrix, const PutOptions& put = {},
                                          const CallOptions& options = {});

  // Downloads a resident matrix; with `matrix.release` also deletes it. The bytes
  // are one matrix's, also where the name comes to mean another one meanwhile: then
  // it is asked for once more, and ABORTED where that happens again.
  absl::StatusOr<FetchedMatrix> GetMatrix(const Resident& matrix, const GetOptions& get = {},
                                          const CallOptions& options = {});

  // What is known of one resident matrix, without its elements. NOT_FOUND.
  absl::StatusOr<MatrixInfo> StatMatrix(const Resident& matrix, const CallOptions& options = {});

  // All pages, ordered by id. Only names that begin with `name_prefix`.
  absl::StatusOr<std::vector<MatrixInfo>> ListMatrices(absl::string_view name_prefix = "",
                                                       const CallOptions& options = {});

  // Forgets a resident matrix. NOT_FOUND where there is none.
  absl::StatusOr<MatrixInfo> DeleteMatrix(const Resident& matrix, const CallOptions& options = {});

  // The catalogue; with `family`, that family alone.
  absl::StatusOr<std::vector<KernelInfo>> ListKernels(absl::string_view family = "",
                                                      const CallOptions& options = {});

  // Measures kernels on a device of the server, as the contract's Benchmark says,
  // and blocks until the end. `on_message` takes the header, then rows and
  // progress, from a thread of the library's, one call at a time and none after
  // the return; while it takes its time the server waits. A canceller in
  // `options` ends the benchmark early.
  absl::StatusOr<BenchmarkEnd> Benchmark(const BenchmarkRequest& request,
                                         const BenchmarkCallback& on_message,
                                         const CallOptions& options = {});

  // Asks again: present load and health of the devices.
  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options = {});

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace gemmd::client
