// Serves /metrics over HTTP, on a port of its own.
//
// prometheus-cpp's own Exposer cannot serve a CUDA build: its HTTP library
// starts threads with 100 KiB of stack, which is less than the thread-local
// storage of OpenBLAS and cuBLASLt together, so that no thread starts. And it
// has a thread a connection, so that a few clients that say nothing hold up all.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/net/acceptor.h"
#include "server/telemetry/metrics.h"

namespace gemmd {

// Listens from Start to its destruction, on one thread of its own that serves
// all connections at the same time and waits for none. A connection carries one
// request, and ends two seconds after its begin; when there are 64, the oldest
// makes room for the next. A request's head has at most 8 KiB; a body is not
// read.
class HttpEndpoint {
 public:
  // `address` as ParseTcpAddress takes it, errors as it and Listen have them;
  // `flag` is "--metrics-address". `metrics` outlives the endpoint.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(absl::string_view flag,
                                                             absl::string_view address,
                                                             const Metrics& metrics);
  virtual ~HttpEndpoint() = default;

  // The port that is listened on.
  virtual int port() const = 0;
  // "host:port" with that port.
  virtual std::string address() const = 0;
  // `refused` counts the connections that made room.
  virtual ConnectionStats Stats() const = 0;
};

}  // namespace gemmd
