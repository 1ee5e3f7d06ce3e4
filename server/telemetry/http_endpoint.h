// Serves the status page, /metrics, /readyz and /livez over HTTP, on a port of their own.
//
// prometheus-cpp's Exposer cannot serve a CUDA build. Its HTTP library starts threads with 100 KiB
// of stack. OpenBLAS and cuBLASLt together have more thread-local storage than that, so no thread
// starts. It also uses a thread for each connection, so a few silent clients block all others.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/net/acceptor.h"
#include "server/telemetry/http_answer.h"

namespace gemmd {

// Listens from Start to destruction. One thread of its own serves all connections
// concurrently and never blocks on one. A connection carries one request and is closed
// two seconds after it was opened. When there are 64, the oldest is closed for a new
// one. A request's head has at most 8 KiB; its body is not read.
class HttpEndpoint {
 public:
  // `address` and errors as in ParseTcpAddress and Listen. `flag` is
  // "--metrics-address". What the pages use must outlive the endpoint.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(absl::string_view flag,
                                                             absl::string_view address,
                                                             HttpPages pages);
  virtual ~HttpEndpoint() = default;

  // The actual port.
  virtual int port() const = 0;
  // "host:port" with that port.
  virtual std::string address() const = 0;
  // `refused` counts the connections that were closed to make room.
  virtual ConnectionStats Stats() const = 0;
};

}  // namespace gemmd
