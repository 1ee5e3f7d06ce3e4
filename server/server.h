// A complete server in one object: engine, metrics and gRPC.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/benchmark/benchmarks.h"
#include "server/benchmark/first_times.h"
#include "server/engine/bounds/options.h"
#include "server/identity/identity.h"
#include "server/listening/exposure.h"
#include "server/listening/grpc_arguments.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

class Engine;

// The bound without --max-connections. Each connection costs gRPC tens of kilobytes.
inline constexpr int kMostConnections = 8192;

struct ServerOptions {
  EngineOptions engine;
  RpcLimits rpc;
  IdentityOptions identity;
  // Serve other machines without TLS, or whoever calls.
  Insecure insecure = Insecure::kNone;
  BenchmarkLimits benchmark;
  EstimatesFrom estimates = EstimatesFrom::kModel;
  // Where gRPC listens: "host:port" or "unix:path", or several with commas between them.
  // Port 0: any free one.
  std::string address = "127.0.0.1:50051";
  // "host:port" of the status page, /metrics, /readyz and /livez. Empty: not served.
  std::string metrics_address = "127.0.0.1:9464";
  // The most open connections. 0: as many as the limit on open descriptors allows, at
  // most kMostConnections.
  int max_connections = 0;
  ConnectionLimits connections;
  // Clients of a Unix socket may give tensors in shared memory
  // (rpc/inference/shared_memory.h).
  bool client_shared_memory = false;
  // The number of CPUs that gRPC's threads share. 0: all.
  int rpc_cpus = 10;
};

// Serves from Start to Stop or destruction.
class Server {
 public:
  // INVALID_ARGUMENT names the flag, the value and what is allowed.
  // FAILED_PRECONDITION: a device does not exist. UNAVAILABLE: cannot listen on an
  // address.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  virtual ~Server() = default;

  // "host:port" with the actual port; for a Unix socket, as given. Several with commas
  // between them, as ServerOptions has them.
  virtual std::string address() const = 0;
  virtual int port() const = 0;  // of the first address; 0 for a Unix socket
  // The address of /metrics; empty where it is off.
  virtual std::string metrics_address() const = 0;
  virtual Engine& engine() = 0;

  // OK, or why the server can no longer serve: no device is left, or connections are no
  // longer accepted. The health service reports the same from then on. Call this
  // regularly: it also logs events that belong to no call, and once a second reads
  // certificates and the files of callers and quotas again where they have changed.
  virtual absl::Status CheckHealth() = 0;

  // Reads certificates and the files of callers and quotas again. On the thread of CheckHealth.
  virtual void ReloadIdentity() = 0;

  // Reports NOT_SERVING, and goes on serving: so that balancers look elsewhere before
  // calls are refused.
  virtual void LeaveRotation() = 0;

  // Reports NOT_SERVING, refuses new calls with UNAVAILABLE, waits for running work, cancels
  // the rest, ends every call and connection and closes the port. The last 4 s of `timeout`, or
  // half of it where it is shorter than 8 s, are for the end of what was cancelled. It takes no
  // longer, also with clients that read nothing, but those 4 s and the time in which gRPC lets
  // result bytes go. Returns whether nothing had to be
  // cancelled. Call once.
  virtual bool Stop(absl::Duration timeout) = 0;
};

}  // namespace gemmd
