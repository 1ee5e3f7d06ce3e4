#include "server/flag_table.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/device/device_kinds.h"
#include "server/flag_values.h"
#include "server/net/address.h"

namespace gemmd {
namespace {

// What all rows have, of every kind.
struct About {
  std::string name;
  std::string group;
  std::string help;
};

absl::Status NotAllowed(absl::string_view text, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "'; allowed: ", allowed));
}

// A flag whose text is parsed by `parse` into a value of [min, max]. `field` returns
// the field of Flags for it, `format` its text.
template <typename Value, typename Field, typename Parse, typename Format>
FlagRow Ranged(About about, std::string kind, std::string allowed, Field field, Parse parse,
               Format format, Value min, Value max) {
  return FlagRow{
      .name = std::move(about.name),
      .group = std::move(about.group),
      .kind = std::move(kind),
      .help = std::move(about.help),
      .allowed = allowed,
      .set = [=](absl::string_view text, Flags& flags) -> absl::Status {
        const auto value = parse(text);
        if (!value.has_value() || *value < min || *value > max) return NotAllowed(text, allowed);
        auto& place = field(flags);
        place = static_cast<std::decay_t<decltype(place)>>(*value);
        return absl::OkStatus();
      },
      .get = [=](const Flags& flags) { return format(field(const_cast<Flags&>(flags))); },
  };
}

template <typename Field>
FlagRow Size(About about, Field field, size_t min, size_t max) {
  return Ranged<size_t>(std::move(about), "SIZE",
                        absl::StrCat("a size from ", FormatSize(min), " to ", FormatSize(max),
                                     ", such as 512KiB, 256MiB or 2GiB"),
                        field, &ParseSize, &FormatSize, min, max);
}

template <typename Field>
FlagRow Count(About about, Field field, int min, int max) {
  return Ranged<int64_t>(
      std::move(about), "N", absl::StrCat("a whole number from ", min, " to ", max), field,
      &ParseInteger, [](int value) { return absl::StrCat(value); }, min, max);
}

template <typename Field>
FlagRow Duration(About about, Field field, absl::Duration min, absl::Duration max) {
  return Ranged<absl::Duration>(
      std::move(about), "TIME",
      absl::StrCat("a duration from ", absl::FormatDuration(min), " to ", absl::FormatDuration(max),
                   ", such as 200us, 30s or 5m"),
      field, &ParseDurationText, &absl::FormatDuration, min, max);
}

// Why a text is not allowed.
using CheckText = absl::Status (*)(absl::string_view text);

template <typename Field>
FlagRow Text(About about, std::string kind, std::string allowed, Field field,
             CheckText check = nullptr) {
  return FlagRow{
      .name = std::move(about.name),
      .group = std::move(about.group),
      .kind = std::move(kind),
      .help = std::move(about.help),
      .allowed = allowed,
      .set = [=](absl::string_view text, Flags& flags) -> absl::Status {
        if (const absl::Status status = check == nullptr ? absl::OkStatus() : check(text);
            !status.ok()) {
          return absl::InvalidArgumentError(
              absl::StrCat("'", text, "': ", status.message(), "; allowed: ", allowed));
        }
        field(flags) = std::string(text);
        return absl::OkStatus();
      },
      .get = [=](const Flags& flags) { return field(const_cast<Flags&>(flags)); },
  };
}

template <typename Value>
using Names = std::vector<std::pair<std::string, Value>>;

template <typename Value, typename Field>
FlagRow Choice(About about, Names<Value> names, Field field) {
  const std::string allowed =
      absl::StrJoin(names, ", ", [](std::string* out, const auto& name) { *out += name.first; });
  return FlagRow{
      .name = std::move(about.name),
      .group = std::move(about.group),
      .kind = "NAME",
      .help = std::move(about.help),
      .allowed = allowed,
      .set = [=](absl::string_view text, Flags& flags) -> absl::Status {
        for (const auto& [name, value] : names) {
          if (name != text) continue;
          field(flags) = value;
          return absl::OkStatus();
        }
        return NotAllowed(text, allowed);
      },
      .get = [=](const Flags& flags) -> std::string {
        for (const auto& [name, value] : names) {
          if (field(const_cast<Flags&>(flags)) == value) return name;
        }
        return "";
      },
  };
}

constexpr size_t kTiB = size_t{1} << 40;

// Returns a field of Flags.
// NOLINTBEGIN(bugprone-macro-parentheses): `path` is no expression of its own
#define GEMMD_FIELD(path) \
  [](Flags & flags) -> auto& { return flags.path; }
// NOLINTEND(bugprone-macro-parentheses)

void AddListening(std::vector<FlagRow>& rows) {
  const std::string group = "Listening";
  rows.push_back(
      Text({"address", group,
            "Where gRPC listens, on all addresses that are given, such as "
            "127.0.0.1:50051,unix:/run/gemmd.sock. Other machines reach it only with TLS and known "
            "callers, or with --insecure."},
           "ADDRESS", kAddressForm, GEMMD_FIELD(server.address),
           [](absl::string_view text) { return ParseAddresses(text).status(); }));
  rows.push_back(
      Text({"metrics-address", group,
            "Where /metrics, /readyz and /livez are served over HTTP. Empty: not served. To other "
            "machines, /metrics is shown for a token with the role metrics."},
           "ADDRESS", absl::StrCat("nothing, or ", kTcpAddressForm),
           GEMMD_FIELD(server.metrics_address), [](absl::string_view text) {
             return text.empty() ? absl::OkStatus() : ParseTcpAddress(text).status();
           }));
  rows.push_back(Size({"max-message-bytes", group,
                       "The longest message, in either direction. Longer operands are sent in "
                       "chunks. A longer message is answered with an error; one longer than twice "
                       "this size plus 64KiB ends its call before it is read."},
                      GEMMD_FIELD(server.rpc.max_message_bytes), 64 * kKiB, kGiB / 2));
  rows.push_back(Count({"max-jobs-per-stream", group, "Live jobs on one Multiply stream."},
                       GEMMD_FIELD(server.rpc.max_jobs_per_stream), 1, 1'000'000));
  rows.push_back(Count({"max-connections", group,
                        "Open connections; one above this is closed at once. 0: as many as the "
                        "limit on open descriptors allows, at most 8192."},
                       GEMMD_FIELD(server.max_connections), 0, 1'000'000));
  rows.push_back(Count({"max-streams-per-connection", group, "Live calls on one connection."},
                       GEMMD_FIELD(server.max_streams_per_connection), 1, 1'000'000));
  rows.push_back(Count({"rpc-cpus", group,
                        "CPUs that gRPC's threads share, next to the one that the server starts "
                        "on. Few CPUs keep their caches warm, for low latency of small calls; more "
                        "give more throughput for large ones. 0: all."},
                       GEMMD_FIELD(server.rpc_cpus), 0, 1024));
  rows.push_back(Size({"read-window-bytes", group,
                       "Received payload of one call that may wait for the engine before flow "
                       "control stops the sender."},
                      GEMMD_FIELD(server.rpc.read_window_bytes), 64 * kKiB, kTiB));
  rows.push_back(
      Duration({"send-timeout", group,
                "A call is cancelled when its client reads nothing of the answer for this long, "
                "or for an eighth of it while others wait for staging memory."},
               GEMMD_FIELD(server.rpc.send_timeout), absl::Milliseconds(100), absl::Hours(24)));
  rows.push_back(
      Duration({"payload-timeout", group,
                "A job or upload ends when none of its promised bytes arrive for this long while "
                "the server waits for them. A message counts when it has arrived completely."},
               GEMMD_FIELD(server.rpc.payload_timeout), absl::Milliseconds(100), absl::Hours(24)));
}

// A file, or nothing.
template <typename Field>
FlagRow File(About about, Field field) {
  return Text(std::move(about), "PATH", "nothing, or the path of a file", field);
}

// Who may use a service.
template <typename Field>
FlagRow Access(About about, Field field) {
  const std::string allowed = "call, matrices, benchmark, metrics, admin, anyone, off";
  return FlagRow{
      .name = std::move(about.name),
      .group = std::move(about.group),
      .kind = "WHO",
      .help = std::move(about.help),
      .allowed = allowed,
      .set = [=](absl::string_view text, Flags& flags) -> absl::Status {
        const absl::StatusOr<MethodRule> rule = ParseMethodRule(text);
        if (!rule.ok()) return NotAllowed(text, allowed);
        field(flags) = *rule;
        return absl::OkStatus();
      },
      .get = [=](const Flags& flags) { return ToString(field(const_cast<Flags&>(flags))); }};
}

void AddTls(std::vector<FlagRow>& rows) {
  const std::string group = "TLS (files are read again when they change)";
  rows.push_back(File(
      {"tls-certificate", group, "The server's certificate and its chain, in PEM. Empty: no TLS."},
      GEMMD_FIELD(server.identity.tls.certificate)));
  rows.push_back(File({"tls-key", group, "The certificate's private key, in PEM, unencrypted."},
                      GEMMD_FIELD(server.identity.tls.key)));
  rows.push_back(File({"tls-client-ca", group,
                       "The CA that signs the certificates of clients, in PEM: mutual TLS. A "
                       "certificate's common name is looked up in --callers-file; without that "
                       "file, it is a caller with the roles call and matrices."},
                      GEMMD_FIELD(server.identity.tls.client_ca)));
  rows.push_back(Choice<bool>(
      {"tls-client-certificates", group,
       "With --tls-client-ca: whether a client needs a certificate to connect, or may show a token "
       "instead."},
      {{"required", true}, {"optional", false}},
      GEMMD_FIELD(server.identity.require_client_certificate)));
}

void AddCallers(std::vector<FlagRow>& rows) {
  const std::string group = "Callers (docs/operations.md)";
  rows.push_back(File({"callers-file", group,
                       "Who may call: lines of NAME ROLES sha256:HASH or NAME ROLES "
                       "certificate:COMMON_NAME; 'gemmctl token' makes one. Read again when it "
                       "changes, and at SIGHUP. Empty, and no --tls-client-ca: everybody has every "
                       "role."},
                      GEMMD_FIELD(server.identity.callers_file)));
  rows.push_back(Choice<bool>({"insecure", group,
                               "Serve other machines without TLS, or without asking who calls. "
                               "Whoever reaches the port may then read, or do, anything."},
                              {{"false", false}, {"true", true}}, GEMMD_FIELD(server.insecure)));
  rows.push_back(Access({"health-access", group,
                         "Who may use grpc.health.v1. 'anyone' is for Check; Watch, which lasts, "
                         "takes a known caller then."},
                        GEMMD_FIELD(server.identity.services.health)));
  rows.push_back(Access({"reflection-access", group, "Who may use gRPC's server reflection."},
                        GEMMD_FIELD(server.identity.services.reflection)));
  rows.push_back(Access({"channelz-access", group,
                         "Who may use grpc.channelz.v1, which shows the addresses of all clients."},
                        GEMMD_FIELD(server.identity.services.channelz)));
}

void AddDevices(std::vector<FlagRow>& rows) {
  const std::string group = "Devices";
  rows.push_back(Text({"devices", group,
                       "The devices that run the jobs. auto: every CUDA device, or one host device "
                       "if there is none."},
                      "LIST", DeviceSpecForms(DeviceKinds()), GEMMD_FIELD(server.engine.devices)));
  rows.push_back(Size({"device-memory-bytes", group,
                       "Memory allocated on each device at start. 0: 80% of what is free on a GPU; "
                       "2GiB on the host, where pages are touched only as they are used."},
                      GEMMD_FIELD(server.engine.device_memory_bytes), 0, kTiB));
  rows.push_back(Count({"streams-per-device", group, "Jobs that run at the same time on a device."},
                       GEMMD_FIELD(server.engine.streams_per_device), 1, kMaxStreamsPerDevice));
  rows.push_back(Choice<bool>(
      {"warm-up", group,
       "Whether cuBLAS loads its kernels at start. Otherwise the first product that needs one "
       "waits up to 140ms for it, and others of its device with it."},
      {{"on", true}, {"off", false}}, GEMMD_FIELD(server.engine.warm_up)));
  rows.push_back(
      Size({"staging-bytes", group,
            "Pinned host memory for transfers, for each device and direction; at least 16 blocks."},
           GEMMD_FIELD(server.engine.staging_bytes), 2 * kMiB, kTiB));
  rows.push_back(Size({"staging-block-bytes", group,
                       "The size of the pieces of a transfer, and of result chunks. By default, "
                       "gRPC clients accept messages of at most 4MiB."},
                      GEMMD_FIELD(server.engine.staging_block_bytes), kMinStagingBlockBytes,
                      64 * kMiB));
  rows.push_back(Count(
      {"copy-threads", group,
       "Threads that copy payload into staging memory, and as many that send answers. 0: half "
       "the cores, 1 to 8."},
      GEMMD_FIELD(server.engine.copy_threads), 0, 256));
  rows.push_back(Duration(
      {"completion-spin", group, "How long a device's completion thread polls before it sleeps."},
      GEMMD_FIELD(server.engine.completion_spin), absl::ZeroDuration(), absl::Seconds(1)));
}

void AddAdmission(std::vector<FlagRow>& rows) {
  const std::string group = "Admission (past a bound, a job is refused at once)";
  rows.push_back(Size({"max-job-bytes", group, "Device memory of one job."},
                      GEMMD_FIELD(server.engine.max_job_bytes), 1, kTiB));
  rows.push_back(Size({"max-admitted-bytes", group, "Device memory of all jobs together."},
                      GEMMD_FIELD(server.engine.max_admitted_bytes), 1, 64 * kTiB));
  rows.push_back(Count({"max-jobs", group, "Jobs between their header and their last result byte."},
                       GEMMD_FIELD(server.engine.max_jobs), 1, 10'000'000));
  rows.push_back(Count({"max-queued-jobs", group, "Jobs that are ready and wait for a stream."},
                       GEMMD_FIELD(server.engine.max_queued_jobs), 0, 10'000'000));
  rows.push_back(Duration({"max-queue-wait", group,
                           "The longest wait for a stream, estimated from the number of jobs ahead "
                           "and the rate at which recent ones began. As many jobs as a device has "
                           "streams may wait in any case."},
                          GEMMD_FIELD(server.engine.max_queue_wait), absl::Milliseconds(1),
                          absl::Hours(24 * 365)));
}

void AddStore(std::vector<FlagRow>& rows) {
  const std::string group = "Resident matrices";
  rows.push_back(
      Size({"store-bytes", group, "Device memory for them, on each device. 0: half of it."},
           GEMMD_FIELD(server.engine.store_bytes), 0, kTiB));
  rows.push_back(Count({"max-matrices", group, "The number of resident matrices."},
                       GEMMD_FIELD(server.engine.max_matrices), 1, 100'000'000));
  rows.push_back(Duration(
      {"upload-timeout", group, "An unfinished upload is dropped after this long without a byte."},
      GEMMD_FIELD(server.engine.upload_timeout), absl::Milliseconds(1), absl::Hours(24)));
}

void AddBenchmarks(std::vector<FlagRow>& rows) {
  const std::string group = "Benchmarks (one at a time, beside the jobs)";
  rows.push_back(
      Duration({"benchmark-limit", group, "How long one may take. 0: benchmarks are refused."},
               GEMMD_FIELD(server.benchmark.time), absl::ZeroDuration(), absl::Hours(24)));
  rows.push_back(Size({"benchmark-memory", group,
                       "Device memory for the operands, results and scratch of one, in addition to "
                       "--device-memory-bytes. The vendor library's own workspace is not counted."},
                      GEMMD_FIELD(server.benchmark.memory_bytes), kMiB, kTiB));
}

void AddProcess(std::vector<FlagRow>& rows) {
  const std::string group = "Process";
  rows.push_back(Duration({"drain-timeout", group,
                           "After SIGTERM or SIGINT: how long jobs may run before they are "
                           "cancelled. If a kernel still runs after that, the process ends anyway, "
                           "with exit code 71. A second signal ends the process at once."},
                          GEMMD_FIELD(drain_timeout), absl::ZeroDuration(), absl::Hours(24)));
  rows.push_back(Choice<LogFormat>({"log-format", group, "Log lines for people, or for programs."},
                                   {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
                                   GEMMD_FIELD(log.format)));
  rows.push_back(Choice<LogLevel>(
      {"log-level", group, "The lowest level that is logged; debug has a line for each call."},
      {{"debug", LogLevel::kDebug},
       {"info", LogLevel::kInfo},
       {"warning", LogLevel::kWarning},
       {"error", LogLevel::kError}},
      GEMMD_FIELD(log.level)));
}

#undef GEMMD_FIELD

}  // namespace

const std::vector<FlagRow>& FlagTable() {
  static const std::vector<FlagRow>* const kTable = [] {
    auto* rows = new std::vector<FlagRow>;
    AddListening(*rows);
    AddTls(*rows);
    AddCallers(*rows);
    AddDevices(*rows);
    AddAdmission(*rows);
    AddStore(*rows);
    AddBenchmarks(*rows);
    AddProcess(*rows);
    return rows;
  }();
  return *kTable;
}

}  // namespace gemmd
