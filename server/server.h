// A whole server in one object: engine, metrics and gRPC, wired together.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/benchmark/benchmarks.h"
#include "server/engine/bounds/options.h"
#include "server/rpc/service_context.h"

namespace gemmd {

class Engine;

// Without --max-connections. Each costs gRPC tens of kilobytes.
inline constexpr int kMostConnections = 8192;

struct ServerOptions {
  EngineOptions engine;
  RpcLimits rpc;
  BenchmarkLimits benchmark;
  // What gRPC listens on: "host:port" or "unix:path". Port 0 takes any free one.
  std::string address = "127.0.0.1:50051";
  // "host:port" of /metrics; empty: nothing is served.
  std::string metrics_address = "127.0.0.1:9464";
  // Connections at the same time; 0: as many as the limit on open descriptors
  // leaves room for, at most kMostConnections.
  int max_connections = 0;
  int max_streams_per_connection = 1024;
  // gRPC's threads share this many CPUs; 0: all.
  int rpc_cpus = 6;
};

// Serves from Start to Stop or destruction.
class Server {
 public:
  // INVALID_ARGUMENT names the flag, the value and what is allowed;
  // FAILED_PRECONDITION for devices that are not there; UNAVAILABLE for an
  // address that cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  virtual ~Server() = default;

  // "host:port" with the port that is listened on; as given for a Unix socket.
  virtual std::string address() const = 0;
  virtual int port() const = 0;  // 0 for a Unix socket
  // Of /metrics; empty where it is off.
  virtual std::string metrics_address() const = 0;
  virtual Engine& engine() = 0;

  // Why the server is of no more use, which the health service tells from now on:
  // no device is left, or connections are accepted no more. Else OK. To be called
  // now and then: it also logs what concerns nobody's call.
  virtual absl::Status CheckHealth() = 0;

  // Tells NOT_SERVING, admits nothing more, lets what runs end within
  // `timeout`, cancels the rest, ends every call and closes the port. True where
  // nothing had to be cancelled. Once.
  virtual bool Stop(absl::Duration timeout) = 0;
};

}  // namespace gemmd
