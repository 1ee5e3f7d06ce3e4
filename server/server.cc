#include "server/server.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gemm/catalogue.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/keep_grpc.h"
#include "server/base/clock.h"
#include "server/base/workers.h"
#include "server/benchmark/idle_tuner.h"
#include "server/engine/engine.h"
#include "server/floods/call_counting.h"
#include "server/floods/frame_floods.h"
#include "server/floods/unfinished_calls.h"
#include "server/identity/aborting_header.h"
#include "server/identity/grpc_credentials.h"
#include "server/listening/exposure.h"
#include "server/listening/grpc_listener.h"
#include "server/listening/own_call.h"
#include "server/listening/readiness.h"
#include "server/logs/identity_log.h"
#include "server/logs/job_log.h"
#include "server/logs/logging.h"
#include "server/logs/tuning_log.h"
#include "server/net/address.h"
#include "server/net/descriptors.h"
#include "server/process/thread_limits.h"
#include "server/process/version.h"
#include "server/rpc/context/method.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/reflection_service.h"
#include "server/rpc/service.h"
#include "server/rpc/watch/caller_traffic.h"
#include "server/rpc/watch/drop_connection.h"
#include "server/rpc/watch/live_calls.h"
#include "server/rpc/watch/wait_watch.h"
#include "server/status/job_history.h"
#include "server/status/status_page.h"
#include "server/status/status_report.h"
#include "server/telemetry/http_endpoint.h"
#include "server/telemetry/metrics.h"

namespace gemmd {
namespace {

constexpr char kServiceName[] = "gemm.v1.GemmService";
constexpr char kHealthName[] = "grpc.health.v1.Health";

// Fewer are said at the start, where nobody has asked for so few.
constexpr int kFewConnections = 100;

constexpr char kDraining[] = "draining";
constexpr char kUnanswered[] = "calls are not answered";

// The longest time of the server's first call to itself.
constexpr absl::Duration kLongestFirstCall = absl::Seconds(30);

// A part of the time to stop in. Calls that are told to end get this much, and gRPC as much to
// close its connections. Then, in the worst case, result bytes as much to leave the transport.
constexpr absl::Duration kGrace = absl::Seconds(2);

// A client may have reset as many calls as it has open several times over, and the server be busy.
constexpr int64_t kUnfinishedCallsPerStream = 4;
// With few streams a client whose calls come one after the other may have more than that: gRPC
// tells of their ends on threads that are behind now and then.
constexpr int64_t kLeastUnfinishedCalls = 256;

// Threads that the server makes once gRPC has started.
constexpr int kOwnThreads = 4;

constexpr absl::Duration kRefusalLogPeriod = absl::Seconds(10);
// How often the files of callers and TLS are looked at.
constexpr absl::Duration kReloadPeriod = absl::Seconds(1);

MetricsOptions DescribeForMetrics(absl::Time started) {
  const BuildInfo& build = ThisBuild();
  std::vector<std::string> methods = MethodNames();
  for (std::string& method : InferenceMethodNames()) methods.push_back(std::move(method));
  return {.version = build.version,
          .commit = build.commit,
          .cuda = build.cuda,
          .catalogue = gemm::Catalogue(),
          .methods = std::move(methods),
          .started = started};
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
  ServerImpl()
      : metrics_(DescribeForMetrics(started_)),
        history_(metrics_, gemm::Catalogue()),
        observer_(history_) {}

  ~ServerImpl() override {
    if (grpc_ != nullptr) Stop(absl::ZeroDuration());
    status_.Detach();
    metrics_.Detach();
  }

  absl::Status Start(const ServerOptions& options) {
    if (absl::Status status = LearnCallers(options); !status.ok()) return status;
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(options.engine, &observer_);
    if (!engine.ok()) return engine.status();
    engine_ = *std::move(engine);
    SetEstimates(engine_->devices(), options.estimates, options.benchmark, LogFirstTimes);
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
    if (absl::Status status = TuneWhileIdle(options); !status.ok()) return status;
    const BuildInfo& build = ThisBuild();
    context_ = std::make_unique<ServiceContext>(ServiceContext{
        .engine = *engine_,
        .benchmarks = *benchmarks_,
        .live_calls = live_calls_,
        .traffic = traffic_,
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
              if (stall.drop_connection) {
                metrics_.OnDroppedConnection("unread");
              } else {
                metrics_.OnStall(stall.method, stall.on == StalledOn::kPayload,
                                 std::max<size_t>(stall.jobs, 1));
              }
              LogStall(stall);
            },
        .on_call = [this](const std::string& peer) { return frame_floods_->CallBegins(peer); }});
    watch_ = std::make_unique<WaitWatch>(*context_);
    service_ = std::make_unique<GemmService>(*context_);
    inference_ = std::make_unique<InferenceService>(
        *context_, [this] { return readiness_.Get().ok(); }, options.client_shared_memory);
    if (absl::Status status = Listen(options); !status.ok()) return status;
    status_.Attach(DescribeForStatus());
    return absl::OkStatus();
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
    if (!health.ok()) readiness_.Withdraw(health.message());
    LookAtOwnCall();
    frame_floods_->Look();
    LogRefusedConnections();
    if (const absl::Time now = SteadyNow(); now - files_checked_ >= kReloadPeriod) {
      files_checked_ = now;
      ReportReloads(identity_->ReloadChanged());
    }
    return health;
  }

  void ReloadIdentity() override { ReportReloads(identity_->ReloadChanged(/*all=*/true)); }

  void LeaveRotation() override { readiness_.Withdraw(kDraining); }

  bool Stop(absl::Duration timeout) override {
    const absl::Time jobs_end = SteadyNow() + std::max(timeout - 2 * kGrace, timeout / 2);
    LeaveRotation();
    if (idle_tuner_ != nullptr) idle_tuner_->Stop();
    engine_->StopAdmitting();
    live_calls_.Drain();
    const bool all_ended = engine_->Drain(jobs_end);
    // gRPC's own shutdown waits for calls, and for good for one that nobody ends: so they have
    // been ended. An answer outlives its job, and its client may read it for as long as jobs may
    // run. Calls that are left then, as of clients that do not read, gRPC cancels at once.
    const absl::Time answers_end = std::max(SteadyNow(), jobs_end) + kGrace;
    const bool none_left = live_calls_.WaitUntilNone(answers_end);
    listener_->Stop();
    ShutDownGrpc(none_left ? kGrace / 4 : absl::ZeroDuration(), kGrace / 2);
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
    if (!options.identity.quotas_file.empty()) metrics_.OnIdentity("quotas", true);
    if (identity_->has_tls()) {
      metrics_.OnIdentity("tls", true);
      metrics_.OnTlsCertificate(identity_->tls().material->expires);
    }
    return absl::OkStatus();
  }

  absl::Status TuneWhileIdle(const ServerOptions& options) {
    const std::string& file = options.engine.idle_tuning;
    if (file.empty()) return absl::OkStatus();
    if (options.benchmark.time == absl::ZeroDuration()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--idle-tuning: '", file, "'; requires --benchmark-limit above 0"));
    }
    if (file == "-") {
      return absl::InvalidArgumentError("--idle-tuning: '-'; allowed: a file that can be read");
    }
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::absolute(file, error).parent_path();
    if (access(folder.c_str(), W_OK | X_OK) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--idle-tuning: '", file, "': ", std::strerror(errno),
                       "; allowed: a file in a folder that can be written"));
    }
    idle_tuner_ = std::make_unique<IdleTuner>(
        *engine_,
        [this](BenchmarkSpec spec, std::shared_ptr<BenchmarkListener> listener) {
          return benchmarks_->Start(std::move(spec), std::move(listener));
        },
        options.benchmark.time, file, idle_log_);
    idle_tuner_->Start();
    return absl::OkStatus();
  }

  void ReportReloads(const std::vector<Reload>& reloads) {
    for (const Reload& reload : reloads) {
      LogReload(*identity_, reload);
      metrics_.OnReload(reload.what, reload.status.ok());
    }
    if (identity_->has_tls()) metrics_.OnTlsCertificate(identity_->tls().material->expires);
  }

  StatusSources DescribeForStatus() {
    StatusSources sources = {.version = ThisBuild().version,
                             .commit = ThisBuild().commit,
                             .started = started_,
                             .engine = engine_.get(),
                             .benchmarks = benchmarks_.get(),
                             .history = &history_,
                             .listeners = {}};
    sources.listeners.emplace_back("grpc", [this] { return listener_->Stats(); });
    if (endpoint_ != nullptr) {
      sources.listeners.emplace_back("metrics", [this] { return endpoint_->Stats(); });
    }
    return sources;
  }

  HttpPages Pages(const ServerOptions& options) {
    HttpPages pages = {.metrics = [this] { return metrics_.Scrape(); },
                       .ready = [this] { return readiness_.Get(); },
                       .page = StatusPage,
                       .status = [this](absl::string_view query) { return status_.Answer(query); }};
    if (ScrapesNeedToken(ListensOf(options), *identity_)) {
      pages.may_scrape = [this](std::optional<absl::string_view> authorization) {
        return identity_->CheckScrape(authorization);
      };
    }
    return pages;
  }

  // The bound on connections, from the flag and the limit on descriptors.
  static absl::StatusOr<int> MaxConnections(int asked) {
    const int descriptors = DescriptorLimit();
    const int most = ConnectionsFor(descriptors);
    if (asked == 0 && most < kFewConnections) {
      Log(LogLevel::kWarning,
          "the limit on open descriptors leaves room for few connections: raise it (ulimit -n)",
          {{"descriptors", descriptors}, {"connections", most}});
    }
    if (asked == 0) return std::min(most, kMostConnections);
    if (asked <= most) return asked;
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-connections: ", asked, "; allowed: up to ", most, ", for which the limit of ",
        descriptors, " open descriptors leaves room; raise that (ulimit -n)"));
  }

  AcceptorLimits LimitsOf(const ServerOptions& options, int max_connections) const {
    return {.connections = max_connections,
            .handshakes = identity_->has_tls() ? options.connections.handshakes : 0,
            // gRPC lets each live up to a tenth longer.
            .age = options.rpc.max_connection_age * 1.1,
            .proof = options.connections.proof,
            .own_user = options.client_shared_memory};
  }

  absl::Status Listen(const ServerOptions& options) {
    const absl::StatusOr<std::vector<Address>> addresses = ParseAddresses(options.address);
    if (!addresses.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--address: '", options.address,
                                                     "': ", addresses.status().message(),
                                                     "; allowed: ", kAddressForm));
    }
    if (options.client_shared_memory &&
        std::none_of(addresses->begin(), addresses->end(),
                     [](const Address& one) { return one.is_unix(); })) {
      return absl::InvalidArgumentError(
          absl::StrCat("--client-shared-memory: 'on'; allowed: off, unless --address has a unix: "
                       "address, which '",
                       options.address, "' has not"));
    }
    const absl::StatusOr<int> max_connections = MaxConnections(options.max_connections);
    if (!max_connections.ok()) return max_connections.status();
    absl::StatusOr<std::unique_ptr<GrpcListener>> listener =
        GrpcListener::Open("--address", *addresses, LimitsOf(options, *max_connections),
                           ConnectionPatience(options.rpc), options.connections.calls_per_caller,
                           [this](const TooManyCalls& excess) { OnTooManyCalls(excess); });
    if (!listener.ok()) return listener.status();
    listener_ = *std::move(listener);
    metrics_.AttachListener("grpc", [this, enabled = options.client_shared_memory] {
      ConnectionStats stats = listener_->Stats();
      stats.regions = static_cast<int64_t>(inference_->regions());
      stats.regions_limit = enabled ? int64_t{SharedMemory::kMostOfAll} : 0;
      return stats;
    });
    return StartGrpc(options);
  }

  absl::Status StartGrpc(const ServerOptions& options) {
    const CpuConfinement confinement(options.rpc_cpus);  // of the threads gRPC starts here
    grpc::EnableDefaultHealthCheckService(true);
    if (absl::Status status = CheckThreads(ThreadsOfGrpc() + kOwnThreads, "gRPC"); !status.ok()) {
      return status;
    }
    if (!KeepGrpc()) {
      return absl::UnavailableError(absl::StrCat("gRPC's threads do not start. ", DescribeThreads(),
                                                 ". Is a limit too low?"));
    }
    if (absl::Status status = DropAbortingHeader(); !status.ok()) return status;
    grpc::ServerBuilder builder;
    const int64_t most_unfinished =
        std::max(kUnfinishedCallsPerStream * options.connections.streams, kLeastUnfinishedCalls);
    unfinished_calls_ = std::make_unique<UnfinishedCalls>(
        most_unfinished, [this](const std::string& peer) { DropFlood(peer); },
        [this](const std::string& peer, const std::string& caller) {
          listener_->Prove(peer);
          listener_->calls().Know(peer, caller);
        },
        [this] { listener_->calls().Ended(); });
    FrameFloods::Gates gates = listener_->GatesOfFloods();
    gates.first_call_waits = [this] { return unfinished_calls_->FirstCallWaits(); };
    gates.on_flood = [this](const FrameFlood& flood) { OnFrameFlood(flood); };
    frame_floods_ =
        std::make_unique<FrameFloods>(TransportMessageLimit(options.rpc), std::move(gates));
    credentials_ = MakeServerCredentials(
        *identity_, [this](uint64_t connection, const absl::StatusOr<CallerPtr>& caller) {
          return AtHeaders(connection, caller);
        });
    listener_->AddTo(builder, credentials_);
    builder.RegisterService(service_.get());
    builder.RegisterService(inference_.get());
    const std::vector<std::string> services = {kServiceName, InferenceService::Name(), kHealthName,
                                               Reflection::Name(), ReflectionAlpha::Name()};
    reflection_ = std::make_unique<Reflection>(*context_, services);
    reflection_alpha_ = std::make_unique<ReflectionAlpha>(*context_, services);
    builder.RegisterService(reflection_.get());
    builder.RegisterService(reflection_alpha_.get());
    SetArguments(builder, options.rpc, options.connections);
    CountEnds(*unfinished_calls_, builder);
    grpc_ = builder.BuildAndStart();
    if (grpc_ == nullptr) return absl::UnavailableError("gRPC cannot start; its log says why");
    // Before anyone is told that calls are served, and through the threads that gRPC makes late.
    own_call_ = std::make_unique<OwnCall>(*grpc_);
    if (!own_call_->Wait(kLongestFirstCall)) {
      return absl::UnavailableError(absl::StrCat("gRPC has started, but a call got no answer in ",
                                                 absl::FormatDuration(kLongestFirstCall), ". ",
                                                 DescribeThreads(), ". Is a limit too low?"));
    }
    listener_->Start();
    readiness_.Begin(grpc_->GetHealthCheckService(), {"", kServiceName, InferenceService::Name()});
    return absl::OkStatus();
  }

  void LookAtOwnCall() {
    if (own_call_->Look()) {
      if (readiness_.Restore(kUnanswered)) Log(LogLevel::kInfo, "calls are answered again", {});
    } else if (readiness_.Withdraw(kUnanswered)) {
      Log(LogLevel::kError,
          "calls are not answered: the server's own call to itself is not. Not ready until it is; "
          "restart the server where that lasts",
          {{"threads", DescribeThreads()}});
    }
  }

  absl::Status AtHeaders(uint64_t connection, const absl::StatusOr<CallerPtr>& caller) {
    listener_->calls().Began();
    if (!caller.ok()) return caller.status();
    const bool known = *caller != nullptr;
    const std::string name = known ? (*caller)->name : "";
    if (absl::Status may = listener_->calls().MayBegin(name); !may.ok()) return may;
    return CountAtHeaders(*unfinished_calls_, connection, known, name);
  }

  void OnTooManyCalls(const TooManyCalls& excess) {
    for (int64_t i = 0; i < excess.closed; ++i) metrics_.OnDroppedConnection("calls");
    if (excess.bound == 0) return;  // told before
    Log(LogLevel::kWarning,
        "connections closed and refused: too many calls that are not over (--max-calls-per-caller)",
        {{"caller", excess.caller},
         {"address", excess.address},
         {"calls", excess.calls},
         {"limit", excess.bound},
         {"closed", excess.closed}});
  }

  void DropFlood(const std::string& peer) {
    const bool dropped = DropConnection(peer);
    if (dropped) metrics_.OnDroppedConnection("resets");
    Log(LogLevel::kWarning,
        dropped ? "dropped a connection that resets its calls faster than they end"
                : "refused calls of a connection that resets them faster than they end, and cannot "
                  "be closed",
        {{"peer", peer}});
  }

  void OnFrameFlood(const FrameFlood& flood) {
    for (int64_t i = 0; i < flood.closed; ++i) metrics_.OnDroppedConnection("frames");
    Log(LogLevel::kWarning,
        "connections closed that send much that no call wants, such as control frames",
        {{"peer", flood.peer}, {"bytes", flood.bytes}, {"closed", flood.closed}});
  }

  // One line for many: a client that is refused comes again, and again.
  void LogRefusedConnections() {
    const absl::Time now = SteadyNow();
    if (now - refusal_logged_ < kRefusalLogPeriod) return;
    if (listener_->Refused() == refused_connections_) return;
    const ConnectionStats stats = listener_->Stats();
    const int64_t refused = stats.refused + stats.refused_handshakes;
    Log(LogLevel::kWarning, "connections refused: --max-connections or --max-handshakes is reached",
        {{"refused", refused - refused_connections_},
         {"open", stats.open},
         {"limit", stats.limit},
         {"handshaking", stats.handshaking},
         {"handshake_limit", stats.handshake_limit},
         {"made_room", stats.made_room - made_room_}});
    made_room_ = stats.made_room;
    refused_connections_ = refused;
    refusal_logged_ = now;
  }

  // Tells every client to go, gives calls that are left `for_calls`, and then cancels them. A
  // connection whose peer takes nothing would hold gRPC until its TCP gives up, after 20 s. So
  // connections that are still open after `for_connections` are cut.
  void ShutDownGrpc(absl::Duration for_calls, absl::Duration for_connections) {
    std::promise<void> done;
    const std::future<void> down = done.get_future();
    stopper_.Schedule([this, for_calls, &done] {
      grpc_->Shutdown(
          gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                       gpr_time_from_nanos(absl::ToInt64Nanoseconds(for_calls), GPR_TIMESPAN)));
      grpc_->Wait();
      done.set_value();
    });
    if (down.wait_for(absl::ToChronoNanoseconds(for_connections)) != std::future_status::ready) {
      Log(LogLevel::kWarning, "connections cut whose clients take nothing");
      listener_->ShutDownConnections();
    }
    stopper_.Stop();  // waits
  }

  // Result bytes that the transport had queued refer to the engine's memory, which must not go
  // before them. All connections are closed, so they come back as soon as gRPC's threads run. A
  // process whose threads do not run is ended by its ExitBound.
  void WaitForTransport() {
    const absl::Time patience = SteadyNow() + kGrace;
    for (bool told = false; TransportHoldsResults(); absl::SleepFor(absl::Milliseconds(2))) {
      if (told || SteadyNow() < patience) continue;
      Log(LogLevel::kWarning, "the transport still holds result bytes");
      told = true;
    }
  }

  bool TransportHoldsResults() const {
    const EngineStats stats = engine_->Stats();
    return std::any_of(stats.devices.begin(), stats.devices.end(), [](const DeviceStats& device) {
      return device.download_staging_bytes.used > 0;
    });
  }

  // Each member uses those above it.
  const absl::Time started_ = absl::Now();
  Metrics metrics_;
  JobHistory history_;
  JobLog observer_;
  StatusReport status_;
  std::unique_ptr<Identity> identity_;
  absl::Time files_checked_ = SteadyNow();
  Readiness readiness_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Benchmarks> benchmarks_;
  IdleTuningLog idle_log_{metrics_};
  std::unique_ptr<IdleTuner> idle_tuner_;
  std::unique_ptr<HttpEndpoint> endpoint_;
  LiveCalls live_calls_;
  CallerTraffic traffic_{[this](absl::string_view bound) { metrics_.OnCallerBound(bound); }};
  std::unique_ptr<ServiceContext> context_;
  std::unique_ptr<GemmService> service_;
  std::unique_ptr<InferenceService> inference_;
  std::unique_ptr<Reflection> reflection_;
  std::unique_ptr<ReflectionAlpha> reflection_alpha_;
  std::unique_ptr<GrpcListener> listener_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<UnfinishedCalls> unfinished_calls_;
  std::unique_ptr<FrameFloods> frame_floods_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<OwnCall> own_call_;
  int64_t refused_connections_ = 0;  // of which the log has told
  int64_t made_room_ = 0;            // the same
  absl::Time refusal_logged_ = absl::InfinitePast();
  std::unique_ptr<WaitWatch> watch_;
  // Shuts gRPC down. Made at start: when the server is to end, there may be no more threads.
  Workers stopper_{"shutdown", 1};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  auto server = std::make_unique<ServerImpl>();
  if (absl::Status status = server->Start(options); !status.ok()) return status;
  return server;
}

}  // namespace gemmd
