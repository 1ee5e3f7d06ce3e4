#include "server/flags/flag_table.h"

#include <sched.h>

#include "absl/strings/str_cat.h"
#include "server/engine/device/device_kinds.h"
#include "server/flags/flag_rows.h"
#include "server/net/address.h"

namespace gemmd {
namespace {

using flag_rows::Access;
using flag_rows::Choice;
using flag_rows::Count;
using flag_rows::Duration;
using flag_rows::File;
using flag_rows::Share;
using flag_rows::Size;
using flag_rows::SizeOrZero;
using flag_rows::Text;

constexpr size_t kTiB = size_t{1} << 40;
// Less device memory, or room for resident matrices, holds nothing that is worth a server.
constexpr size_t kLeastDeviceMemory = kMiB;
// gRPC takes milliseconds of 31 bits, and adds two such times up.
constexpr absl::Duration kLongestConnection = absl::Hours(24 * 10);

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
  rows.push_back(Choice<bool>(
      {"client-shared-memory", group,
       "Whether clients of the Open Inference Protocol on a Unix socket may register files of "
       "/dev/shm that belong to the server's user, for their tensors. Then Unix sockets serve that "
       "user alone, and root."},
      {{"off", false}, {"on", true}}, GEMMD_FIELD(server.client_shared_memory)));
  rows.push_back(
      Text({"metrics-address", group,
            "Where the status page, /metrics, /readyz and /livez are served over HTTP. Empty: not "
            "served. To other machines, figures are shown for a token with the role metrics."},
           "ADDRESS", absl::StrCat("nothing, or ", kTcpAddressForm),
           GEMMD_FIELD(server.metrics_address), [](absl::string_view text) {
             return text.empty() ? absl::OkStatus() : ParseTcpAddress(text).status();
           }));
  rows.push_back(Size({"max-message-bytes", group,
                       "The longest message, in either direction. Longer operands are sent in "
                       "chunks. A longer message is answered with an error; one longer than twice "
                       "this size plus 64KiB ends its call before it is read."},
                      GEMMD_FIELD(server.rpc.max_message_bytes), kMinStagingBlockBytes + kKiB,
                      kGiB / 2));
  rows.push_back(Count({"max-jobs-per-stream", group, "Live jobs on one Multiply stream."},
                       GEMMD_FIELD(server.rpc.max_jobs_per_stream), 1, 1'000'000));
  rows.push_back(Count({"rpc-cpus", group,
                        "CPUs that gRPC's threads share, next to the one that the server starts "
                        "on. Few CPUs keep their caches warm, for streams of many small products; "
                        "more carry more bytes of large uploads. Where the server may use fewer, "
                        "and with 0: all."},
                       GEMMD_FIELD(server.rpc_cpus), 0, CPU_SETSIZE));
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

void AddConnections(std::vector<FlagRow>& rows) {
  const std::string group = "Connections";
  rows.push_back(Count({"max-connections", group,
                        "Open connections; one above this is closed at once. 0: as many as the "
                        "limit on open descriptors allows, at most 8192."},
                       GEMMD_FIELD(server.max_connections), 0, 1'000'000));
  rows.push_back(Count({"max-handshakes", group,
                        "Connections in their TLS handshake; one above this is closed at once. A "
                        "handshake may take 10s."},
                       GEMMD_FIELD(server.connections.handshakes), 1, 1'000'000));
  rows.push_back(Count({"max-streams-per-connection", group, "Live calls on one connection."},
                       GEMMD_FIELD(server.connections.streams), 1, 1'000'000));
  rows.push_back(Count({"max-calls-per-caller", group,
                        "Calls of one caller that are not over, those that were reset or whose "
                        "connection is closed included; before the caller is known, those of its "
                        "address. All together may have eight times as many."},
                       GEMMD_FIELD(server.connections.calls_per_caller), 256, 10'000'000));
  rows.push_back(Size({"max-header-bytes", group,
                       "The metadata of one call, as HTTP/2 counts it: names, values, and 32 bytes "
                       "for each entry. A call with more is RESOURCE_EXHAUSTED."},
                      GEMMD_FIELD(server.connections.header_bytes), kKiB, kMiB));
  rows.push_back(Duration({"max-connection-idle", group,
                           "A connection without a call is closed after this time. 0: never."},
                          GEMMD_FIELD(server.connections.idle), absl::ZeroDuration(),
                          kLongestConnection));
  rows.push_back(Duration(
      {"max-connection-age", group,
       "A connection of this age, give or take a tenth, gets no new calls: clients open "
       "another one by themselves. A Multiply stream of this age takes no new jobs, and "
       "ends with UNAVAILABLE when those it has have ended. 0: never."},
      GEMMD_FIELD(server.rpc.max_connection_age), absl::ZeroDuration(), kLongestConnection));
  rows.push_back(Duration({"max-connection-age-grace", group,
                           "How much longer than --max-connection-age a call may last after its "
                           "connection has reached that age. Then the connection is closed."},
                          GEMMD_FIELD(server.connections.age_grace), absl::ZeroDuration(),
                          kLongestConnection));
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
  const std::string group = "Callers (docs/operations/callers.md)";
  rows.push_back(File({"callers-file", group,
                       "Who may call: lines of NAME ROLES sha256:HASH or NAME ROLES "
                       "certificate:COMMON_NAME; 'gemmctl token' makes one. Read again when it "
                       "changes, and at SIGHUP. Empty, and no --tls-client-ca: everybody has every "
                       "role."},
                      GEMMD_FIELD(server.identity.callers_file)));
  rows.push_back(File(
      {"quotas-file", group,
       "What each caller may have: lines of NAME, role:ROLE or *, then words such as jobs=100, "
       "admitted-bytes=8GiB, matrices=1000, store-bytes=4GiB, streams=64, bytes-per-second=200MiB, "
       "weight=2. Read again when it changes, and at SIGHUP. Empty: no bounds but those of all "
       "callers together."},
      GEMMD_FIELD(server.identity.quotas_file)));
  rows.push_back(Choice<Insecure>(
      {"insecure", group,
       "Serve other machines all the same: plaintext, without TLS, so that whoever is on the way "
       "may read everything; anonymous, without asking who calls, so that whoever reaches the port "
       "may do everything; all, both."},
      {{"none", Insecure::kNone},
       {"plaintext", Insecure::kPlaintext},
       {"anonymous", Insecure::kAnonymous},
       {"all", Insecure::kAll}},
      GEMMD_FIELD(server.insecure)));
  rows.push_back(Access({"health-access", group,
                         "Who may use grpc.health.v1. 'anyone' is for Check, which a stranger may "
                         "then leave open without its message; Watch takes a known caller. Probes "
                         "without a token may use /readyz."},
                        GEMMD_FIELD(server.identity.services.health)));
  rows.push_back(Access({"reflection-access", group, "Who may use gRPC's server reflection."},
                        GEMMD_FIELD(server.identity.services.reflection)));
}

void AddDevices(std::vector<FlagRow>& rows) {
  const std::string group = "Devices";
  rows.push_back(Text({"devices", group,
                       "The devices that run the jobs. auto: every CUDA device, or one host device "
                       "if there is none."},
                      "LIST", DeviceSpecForms(DeviceKinds()), GEMMD_FIELD(server.engine.devices)));
  rows.push_back(
      SizeOrZero({"device-memory-bytes", group,
                  "Memory allocated on each device at start. 0: 80% of what is free on a GPU; "
                  "2GiB on the host, where pages are touched only as they are used."},
                 GEMMD_FIELD(server.engine.device_memory_bytes), kLeastDeviceMemory, kTiB));
  rows.push_back(Count({"streams-per-device", group, "Jobs that run at the same time on a device."},
                       GEMMD_FIELD(server.engine.streams_per_device), 1, kMaxStreamsPerDevice));
  rows.push_back(
      Count({"quick-streams", group,
             "Further jobs at the same time on a device: products up to about 256x256x256 "
             "that take less than 2ms, so that they need not wait for large ones. On a GPU "
             "they have priority. 0: they wait like the others."},
            GEMMD_FIELD(server.engine.quick_streams), 0, kMaxStreamsPerDevice));
  rows.push_back(
      Count({"max-coalesced-jobs", group,
             "The most quick jobs with the same shape, types, scalars, kernel and resident "
             "operands that run in one launch, where they wait for a stream together. The bits of "
             "a product do not depend on it. 1: each runs by itself. 0: 64 on a GPU, 1 on a host "
             "device, whose streams work side by side."},
            GEMMD_FIELD(server.engine.max_coalesced_jobs), 0, kMostCoalescedJobs));
  rows.push_back(Duration(
      {"job-timeout", group,
       "A device is given up as lost when a job's work on it has not ended after this long and "
       "the time that the slowest kernel needs for the largest product under way on each stream: "
       "1s for 10 GFLOP on a GPU, for 10 MFLOP on a host device; on a GPU that has measured such "
       "products at most 64 times their time; and up to 5s more. 0: never."},
      GEMMD_FIELD(server.engine.job_timeout), absl::ZeroDuration(), absl::Hours(24)));
  rows.push_back(Text(
      {"tuning-tables", group,
       "Files of measured times, as 'gemmctl tune' writes them, with commas between them: "
       "where one has a product's shape, or one near it, its kernel is chosen. A later file "
       "counts more. Read again where 'gemmctl tune --apply' says so. Empty: kernels are chosen by "
       "estimate and rank."},
      "PATHS", "nothing, or paths of files with commas between them",
      GEMMD_FIELD(server.engine.tuning_tables)));
  rows.push_back(File(
      {"idle-tuning", group,
       "A file like those of --tuning-tables, which counts more than they. While nothing runs the "
       "server measures the products that took the most time, as benchmarks do, and adds their "
       "fastest kernels to it; they are chosen from the next start or 'gemmctl tune --apply' on. "
       "It need not exist. Empty: the server measures nothing by itself."},
      GEMMD_FIELD(server.engine.idle_tuning)));
  rows.push_back(Choice<EstimatesFrom>(
      {"estimates", group,
       "Where the times come from by which kernels are chosen on a GPU. 'model': they were "
       "measured "
       "on the GPU's model, H100 or H200; of another model the server measures some products "
       "before it takes calls, for up to 30s. 'measured': it always does. 'none': formulas and "
       "ranks decide. Measuring takes memory as --benchmark-memory says."},
      {{"model", EstimatesFrom::kModel},
       {"measured", EstimatesFrom::kMeasured},
       {"none", EstimatesFrom::kNone}},
      GEMMD_FIELD(server.estimates)));
  rows.push_back(Choice<bool>(
      {"warm-up", group,
       "Whether cuBLAS loads its kernels at start. Otherwise the first product that needs one "
       "waits up to 140ms for it, and others of its device with it."},
      {{"on", true}, {"off", false}}, GEMMD_FIELD(server.engine.warm_up)));
  rows.push_back(Size(
      {"zero-copy-bytes", group,
       "A kernel reads the operands of a single product in pinned host memory where they, and the "
       "result, come to at most so many bytes each and k is short. A result of so many bytes it "
       "writes there. To begin copies would take longer. 0: all are copied."},
      GEMMD_FIELD(server.engine.zero_copy_bytes), 0, kMaxZeroCopyBytes));
  rows.push_back(
      Size({"staging-bytes", group,
            "Pinned host memory for transfers, for each device and direction; at least 16 blocks."},
           GEMMD_FIELD(server.engine.staging_bytes), 2 * kMiB, kTiB));
  rows.push_back(Size({"staging-block-bytes", group,
                       "The size of the pieces of a transfer, and of result chunks: a multiple of "
                       "64. By default, gRPC clients accept messages of at most 4MiB."},
                      GEMMD_FIELD(server.engine.staging_block_bytes), kMinStagingBlockBytes,
                      64 * kMiB));
  rows.push_back(Count(
      {"copy-threads", group,
       "Threads that copy payload into staging memory, and as many that send answers. 0: half "
       "the cores, 1 to 8."},
      GEMMD_FIELD(server.engine.copy_threads), 0, 256));
  rows.push_back(Duration(
      {"completion-spin", group,
       "How long a device's completion thread polls after a job, or the end of a transfer, "
       "before it sleeps. A thread that sends answers of GPUs polls for the next one for a tenth "
       "of that."},
      GEMMD_FIELD(server.engine.completion_spin), absl::ZeroDuration(), absl::Seconds(1)));
}

void AddAdmission(std::vector<FlagRow>& rows) {
  const std::string group = "Admission (past a bound, a job is refused at once)";
  rows.push_back(Size({"max-job-bytes", group, "Device memory of one job."},
                      GEMMD_FIELD(server.engine.max_job_bytes), 1, kTiB));
  rows.push_back(Size({"max-admitted-bytes", group,
                       "Device memory of all jobs together. Where callers have names, the last "
                       "sixteenth is for callers with less than that."},
                      GEMMD_FIELD(server.engine.max_admitted_bytes), 1, 64 * kTiB));
  rows.push_back(Count({"max-jobs", group,
                        "Jobs between their header and their last result byte. Where callers "
                        "have names, the last sixteenth is for callers with fewer than that."},
                       GEMMD_FIELD(server.engine.max_jobs), 1, 10'000'000));
  rows.push_back(Count({"max-queued-jobs", group,
                        "Jobs that are ready and wait for a stream. The last sixteenth of the "
                        "places is for callers with fewer than that waiting on a device."},
                       GEMMD_FIELD(server.engine.max_queued_jobs), 0, 10'000'000));
  rows.push_back(Duration({"max-queue-wait", group,
                           "The longest wait for a stream, estimated from the device time of the "
                           "jobs ahead and the rate at which recent ones began; at least as long "
                           "as none has begun. As many jobs as a device has streams may wait in "
                           "any case."},
                          GEMMD_FIELD(server.engine.max_queue_wait), absl::Milliseconds(1),
                          absl::Hours(24 * 365)));
}

void AddChecks(std::vector<FlagRow>& rows) {
  const std::string group = "Checked results (docs/operations/devices.md)";
  rows.push_back(Choice<Verify>(
      {"verify", group,
       "Which products are checked on their device before they are delivered; a request may ask "
       "for more. A product that fails is computed again by another kernel. Each check reads the "
       "operands and the result once more."},
      {{"off", Verify::kOff}, {"sampled", Verify::kSampled}, {"always", Verify::kAlways}},
      GEMMD_FIELD(server.engine.verify)));
  rows.push_back(Share({"verify-sample-rate", group,
                        "The share of the products that 'sampled' checks, of the policy or of a "
                        "request, drawn at random."},
                       GEMMD_FIELD(server.engine.verify_sample_rate)));
}

void AddStore(std::vector<FlagRow>& rows) {
  const std::string group = "Resident matrices";
  rows.push_back(
      SizeOrZero({"store-bytes", group, "Device memory for them, on each device. 0: half of it."},
                 GEMMD_FIELD(server.engine.store_bytes), kLeastDeviceMemory, kTiB));
  rows.push_back(Count({"max-matrices", group, "The number of resident matrices."},
                       GEMMD_FIELD(server.engine.max_matrices), 1, 100'000'000));
  rows.push_back(Duration({"unnamed-ttl", group,
                           "A matrix without a name and without a time to live of its own is "
                           "deleted this long after its last use. Clients renew what they hold. "
                           "0: it stays until it is deleted."},
                          GEMMD_FIELD(server.engine.unnamed_ttl), absl::ZeroDuration(),
                          absl::Hours(24 * 365)));
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
  rows.push_back(
      Duration({"drain-delay", group,
                "After SIGTERM or SIGINT: how long calls are still served, while /readyz "
                "and grpc.health.v1 already say no, so that load balancers look "
                "elsewhere. A second signal ends the process at once."},
               GEMMD_FIELD(drain_delay), absl::ZeroDuration(), absl::Hours(1)));
  rows.push_back(Duration({"drain-timeout", group,
                           "How long the end takes after --drain-delay. New calls are refused but "
                           "for those that fetch what jobs keep, and jobs run on; those left 4s "
                           "before that time are cancelled, those left "
                           "at half of it where it is less than 8s. If a kernel still runs after "
                           "that, the process ends anyway, with exit code 71."},
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
    AddConnections(*rows);
    AddTls(*rows);
    AddCallers(*rows);
    AddDevices(*rows);
    AddAdmission(*rows);
    AddChecks(*rows);
    AddStore(*rows);
    AddBenchmarks(*rows);
    AddProcess(*rows);
    return rows;
  }();
  return *kTable;
}

}  // namespace gemmd
