#include "server/server.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gemm/catalogue.h"
#include "grpcpp/ext/channelz_service_plugin.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/keep_grpc.h"
#include "server/base/clock.h"
#include "server/cpu_confinement.h"
#include "server/engine/engine.h"
#include "server/exposure.h"
#include "server/grpc_listener.h"
#include "server/identity/grpc_credentials.h"
#include "server/identity_log.h"
#include "server/job_log.h"
#include "server/logging.h"
#include "server/net/address.h"
#include "server/net/descriptors.h"
#include "server/rpc/context/method.h"
#include "server/rpc/service.h"
#include "server/rpc/watch/live_calls.h"
#include "server/rpc/watch/wait_watch.h"
#include "server/telemetry/http_endpoint.h"
#include "server/telemetry/metrics.h"
#include "server/version.h"

namespace gemmd {
namespace {

constexpr char kServiceName[] = "gemm.v1.GemmService";

// Calls that are told to end get this long to do so, and the transport as long
// to let go of what it sends.
constexpr absl::Duration kGrace = absl::Seconds(2);

// A client that does not answer for this long is gone.
constexpr absl::Duration kHandshakeTimeout = absl::Seconds(10);
constexpr absl::Duration kRefusalLogPeriod = absl::Seconds(10);
// How often the files of callers and TLS are looked at.
constexpr absl::Duration kReloadPeriod = absl::Seconds(1);

// What gRPC itself refuses. Up to there a message over the limit gets an answer
// that says what to do instead.
int TransportMessageLimit(const RpcLimits& limits) {
  return static_cast<int>(std::min<size_t>(2 * limits.max_message_bytes + 64 * kKiB, INT32_MAX));
}

MetricsOptions DescribeForMetrics(absl::Time started) {
  const BuildInfo& build = ThisBuild();
  return {.version = build.version,
          .commit = build.commit,
          .cuda = build.cuda,
          .catalogue = gemm::Catalogue(),
          .methods = MethodNames(),
          .started = started};
}

// gRPC inflates a message before it looks at its length: kilobytes would become
// gigabytes. A call with a compressed message is UNIMPLEMENTED, and gRPC tells
// clients what it takes (grpc-accept-encoding).
void TakeNoCompressedMessages(grpc::ServerBuilder& builder) {
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  // A message may arrive before its call has been refused.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

void LogStall(const Stall& stall) {
  const bool send = stall.on == StalledOn::kSend;
  Log(LogLevel::kWarning,
      stall.drop_connection ? "dropped a connection that takes nothing"
      : send                ? "gave up a client that does not read"
                            : "gave up promised payload",
      {{"method", stall.method},
       {"peer", stall.peer},
       {"jobs", stall.jobs},
       {"seconds", absl::ToDoubleSeconds(stall.waited)}});
}

// How long the peer's TCP may leave bytes unacknowledged, or a ping unanswered, until
// the connection is given up. A connection that takes nothing keeps the blocks of its
// last writes even of cancelled calls, so it must not outlive those by long.
int ConnectionPatienceMs(const RpcLimits& limits) {
  return static_cast<int>(absl::ToInt64Milliseconds(
      std::clamp(limits.send_timeout, absl::Seconds(1), absl::Seconds(20))));
}

void LogRpc(const RpcEnd& end) {
  if (!LogEnabled(LogLevel::kDebug)) return;
  Log(LogLevel::kDebug, "rpc",
      {{"method", end.method},
       {"caller", end.caller},
       {"code", absl::StatusCodeToString(end.code)},
       {"seconds", absl::ToDoubleSeconds(end.elapsed)}});
}

Listens ListensOf(const ServerOptions& options) {
  return {.address = options.address,
          .metrics_address = options.metrics_address,
          .insecure = options.insecure};
}

class ServerImpl final : public Server {
 public:
  ServerImpl() : metrics_(DescribeForMetrics(started_)), observer_(metrics_) {}

  ~ServerImpl() override {
    if (grpc_ != nullptr) Stop(absl::ZeroDuration());
    metrics_.Detach();
  }

  absl::Status Start(const ServerOptions& options) {
    if (absl::Status status = LearnCallers(options); !status.ok()) return status;
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(options.engine, &observer_);
    if (!engine.ok()) return engine.status();
    engine_ = *std::move(engine);
    metrics_.Attach(engine_.get());
    if (!options.metrics_address.empty()) {
      absl::StatusOr<std::unique_ptr<HttpEndpoint>> endpoint =
          HttpEndpoint::Start("--metrics-address", options.metrics_address, Pages(options));
      if (!endpoint.ok()) return endpoint.status();
      endpoint_ = *std::move(endpoint);
      metrics_.AttachListener("metrics", [this] { return endpoint_->Stats(); });
    }
    benchmarks_ = std::make_unique<Benchmarks>(
        *engine_, options.benchmark, [this](bool running) { metrics_.OnBenchmark(running); });
    const BuildInfo& build = ThisBuild();
    context_ = std::make_unique<ServiceContext>(
        ServiceContext{.engine = *engine_,
                       .benchmarks = *benchmarks_,
                       .live_calls = live_calls_,
                       .identity = *identity_,
                       .limits = options.rpc,
                       .version = build.version,
                       .commit = build.commit,
                       .started = started_,
                       .on_end =
                           [this](const RpcEnd& end) {
                             metrics_.OnRpcEnd(end.method, end.code, end.elapsed);
                             LogRpc(end);
                           },
                       .on_stall =
                           [this](const Stall& stall) {
                             if (!stall.drop_connection) {
                               metrics_.OnStall(stall.method, stall.on == StalledOn::kPayload,
                                                std::max<size_t>(stall.jobs, 1));
                             }
                             LogStall(stall);
                           }});
    watch_ = std::make_unique<WaitWatch>(*context_);
    service_ = std::make_unique<GemmService>(*context_);
    return Listen(options);
  }

  std::string address() const override { return listener_->text(); }
  int port() const override { return listener_->address().port; }
  std::string metrics_address() const override {
    return endpoint_ == nullptr ? "" : endpoint_->address();
  }
  Engine& engine() override { return *engine_; }

  absl::Status CheckHealth() override {
    absl::Status health = engine_->Health();
    if (health.ok()) health = listener_->Health();
    if (!health.ok()) Serving(false);
    LogRefusedConnections();
    if (const absl::Time now = SteadyNow(); now - files_checked_ >= kReloadPeriod) {
      files_checked_ = now;
      ReportReloads(identity_->ReloadChanged());
    }
    return health;
  }

  void ReloadIdentity() override { ReportReloads(identity_->ReloadChanged(/*all=*/true)); }

  bool Stop(absl::Duration timeout) override {
    const absl::Time deadline = SteadyNow() + timeout;
    Serving(false);
    engine_->StopAdmitting();
    live_calls_.Drain();
    const bool all_ended = engine_->Drain(deadline);
    // gRPC's own shutdown waits for calls, and for good for one that nobody
    // ends: so they have been ended, and those whose client does not read are
    // cancelled by the deadline here.
    live_calls_.WaitUntilNone(SteadyNow() + kGrace);
    listener_->Stop();
    grpc_->Shutdown(absl::ToChronoTime(absl::Now() + kGrace));
    grpc_->Wait();
    live_calls_.WaitUntilNone(absl::InfiniteFuture());
    grpc_.reset();
    WaitForTransport();
    return all_ended;
  }

 private:
  absl::Status LearnCallers(const ServerOptions& options) {
    absl::StatusOr<std::unique_ptr<Identity>> identity =
        Identity::Create(options.identity, [this](const Refusal& refusal) {
          metrics_.OnRefusedCall(refusal.code);
          LogRefusal(refusal);
        });
    if (!identity.ok()) return identity.status();
    identity_ = *std::move(identity);
    const absl::StatusOr<std::vector<std::string>> open =
        CheckExposure(ListensOf(options), *identity_);
    if (!open.ok()) return open.status();
    LogIdentity(*identity_, *open);
    if (!options.identity.callers_file.empty()) metrics_.OnIdentity("callers", true);
    if (identity_->has_tls()) {
      metrics_.OnIdentity("tls", true);
      metrics_.OnTlsCertificate(identity_->tls().material->expires);
    }
    return absl::OkStatus();
  }

  void ReportReloads(const std::vector<Reload>& reloads) {
    for (const Reload& reload : reloads) {
      LogReload(*identity_, reload);
      metrics_.OnReload(reload.what, reload.status.ok());
    }
    if (identity_->has_tls()) metrics_.OnTlsCertificate(identity_->tls().material->expires);
  }

  HttpPages Pages(const ServerOptions& options) {
    HttpPages pages = {.metrics = [this] { return metrics_.Scrape(); },
                       .ready = [this] { return Readiness(); }};
    if (ScrapesNeedToken(ListensOf(options), *identity_)) {
      pages.may_scrape = [this](std::optional<absl::string_view> authorization) {
        return identity_->CheckScrape(authorization);
      };
    }
    return pages;
  }

  // OK while calls are served; else why not.
  absl::Status Readiness() const {
    if (!serving_) return absl::UnavailableError("starting, draining, or no longer able to serve");
    return engine_->Health();
  }

  // The bound on connections, from the flag and the limit on descriptors.
  static absl::StatusOr<int> MaxConnections(int asked) {
    const int descriptors = DescriptorLimit();
    const int most = ConnectionsFor(descriptors);
    if (asked == 0) return std::min(most, kMostConnections);
    if (asked <= most) return asked;
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-connections: ", asked, "; allowed: up to ", most, ", for which the limit of ",
        descriptors, " open descriptors leaves room; raise that (ulimit -n)"));
  }

  absl::Status Listen(const ServerOptions& options) {
    const absl::StatusOr<std::vector<Address>> addresses = ParseAddresses(options.address);
    if (!addresses.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--address: '", options.address,
                                                     "': ", addresses.status().message(),
                                                     "; allowed: ", kAddressForm));
    }
    const absl::StatusOr<int> max_connections = MaxConnections(options.max_connections);
    if (!max_connections.ok()) return max_connections.status();
    absl::StatusOr<std::unique_ptr<GrpcListener>> listener =
        GrpcListener::Open("--address", *addresses, *max_connections,
                           absl::Milliseconds(ConnectionPatienceMs(options.rpc)));
    if (!listener.ok()) return listener.status();
    listener_ = *std::move(listener);
    metrics_.AttachListener("grpc", [this] { return listener_->Stats(); });
    return StartGrpc(options);
  }

  absl::Status StartGrpc(const ServerOptions& options) {
    const CpuConfinement confinement(options.rpc_cpus);  // of the threads gRPC starts here
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::channelz::experimental::InitChannelzService();
    KeepGrpc();
    grpc::ServerBuilder builder;
    credentials_ = MakeServerCredentials(*identity_);
    listener_->AddTo(builder, credentials_);
    builder.RegisterService(service_.get());
    builder.SetMaxReceiveMessageSize(TransportMessageLimit(options.rpc));
    builder.SetMaxSendMessageSize(-1);
    TakeNoCompressedMessages(builder);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams_per_connection);
    // A client that is gone without a word is noticed, and its jobs cancelled.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
    // With it gRPC sets TCP_USER_TIMEOUT.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ConnectionPatienceMs(options.rpc));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    // A connection that does not speak HTTP/2 holds its place no longer than this.
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(absl::ToInt64Milliseconds(kHandshakeTimeout)));
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    grpc_ = builder.BuildAndStart();
    if (grpc_ == nullptr) return absl::UnavailableError("gRPC cannot start; its log says why");
    listener_->Start();
    Serving(true);
    return absl::OkStatus();
  }

  // One line for many: a client that is refused comes again, and again.
  void LogRefusedConnections() {
    const absl::Time now = SteadyNow();
    if (now - refusal_logged_ < kRefusalLogPeriod) return;
    if (listener_->Refused() == refused_connections_) return;
    const ConnectionStats stats = listener_->Stats();
    Log(LogLevel::kWarning, "connections refused: --max-connections is reached",
        {{"refused", stats.refused - refused_connections_},
         {"open", stats.open},
         {"limit", stats.limit}});
    refused_connections_ = stats.refused;
    refusal_logged_ = now;
  }

  void Serving(bool serving) {
    serving_ = serving;
    grpc::HealthCheckServiceInterface* health = grpc_->GetHealthCheckService();
    health->SetServingStatus("", serving);
    health->SetServingStatus(kServiceName, serving);
  }

  // Result bytes that the transport had queued refer to the engine's memory.
  void WaitForTransport() {
    const absl::Time deadline = SteadyNow() + kGrace;
    while (SteadyNow() < deadline) {
      const EngineStats stats = engine_->Stats();
      const bool held = std::any_of(
          stats.devices.begin(), stats.devices.end(),
          [](const DeviceStats& device) { return device.download_staging_bytes.used > 0; });
      if (!held) return;
      absl::SleepFor(absl::Milliseconds(2));
    }
    Log(LogLevel::kWarning, "the transport still holds result bytes");
  }

  // What is below uses what is above it.
  const absl::Time started_ = absl::Now();
  Metrics metrics_;
  JobLog observer_;
  std::unique_ptr<Identity> identity_;
  absl::Time files_checked_ = SteadyNow();
  std::atomic<bool> serving_{false};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Benchmarks> benchmarks_;
  std::unique_ptr<HttpEndpoint> endpoint_;
  LiveCalls live_calls_;
  std::unique_ptr<ServiceContext> context_;
  std::unique_ptr<GemmService> service_;
  std::unique_ptr<GrpcListener> listener_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<grpc::Server> grpc_;
  int64_t refused_connections_ = 0;  // of which the log has told
  absl::Time refusal_logged_ = absl::InfinitePast();
  std::unique_ptr<WaitWatch> watch_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  auto server = std::make_unique<ServerImpl>();
  if (absl::Status status = server->Start(options); !status.ok()) return status;
  return server;
}

}  // namespace gemmd
