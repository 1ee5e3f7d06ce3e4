// Serves /metrics over HTTP, on a port of its own.
//
// prometheus-cpp's own Exposer cannot serve a CUDA build: its HTTP library
// starts threads with 100 KiB of stack, which is less than the thread-local
// storage of OpenBLAS and cuBLASLt together, so that no thread starts.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/telemetry/listen_socket.h"
#include "server/telemetry/metrics.h"

namespace gemmd {

// Listens from Start to its destruction, on one thread of its own that answers
// one request after the other: a scrape takes a millisecond. A client that
// neither sends nor reads is given up after two seconds.
class HttpEndpoint {
 public:
  // `address` and errors as Listen has them; `flag` is "--metrics-address".
  // `metrics` outlives the endpoint.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(absl::string_view flag,
                                                             absl::string_view address,
                                                             const Metrics& metrics);
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  // The port that is listened on.
  int port() const { return socket_.port; }
  // "host:port" with that port.
  std::string address() const;

 private:
  HttpEndpoint(ListenSocket socket, UniqueFd stop, const Metrics& metrics);

  void Serve();
  void ServeConnection(int fd);

  const ListenSocket socket_;
  const UniqueFd stop_;  // an eventfd that becomes readable when the endpoint goes
  const Metrics& metrics_;
  std::thread thread_;
};

}  // namespace gemmd
