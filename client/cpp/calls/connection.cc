#include "client/cpp/calls/connection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cpp/calls/address.h"
#include "client/cpp/calls/clock.h"
#include "client/cpp/calls/credentials.h"
#include "client/cpp/calls/wire.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/keep_grpc.h"

namespace gemmd::client {
namespace {

using ::gemm::v1::DeleteMatrixRequest;
using ::gemm::v1::DeleteMatrixResponse;
using ::gemm::v1::GemmService;

constexpr absl::Duration kCleanUpTimeout = absl::Seconds(2);
constexpr size_t kMaxTokenBytes = 1024;  // the server takes no longer one
constexpr absl::Duration kLongestKeepalive = absl::Hours(24);
// Within an idle timeout.
constexpr int kIdleLooks = 10;
// What gRPC 1.51 says of a connection that does not answer its ping.
constexpr absl::string_view kNoAnswer = "keepalive watchdog timeout";

template <typename T>
absl::Status CheckRange(absl::string_view field, T value, T least, T most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; it must be ", least, " to ", most));
}

absl::Status CheckPositive(absl::string_view field, absl::Duration value) {
  if (value > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", absl::FormatDuration(value), "; it must be above 0"));
}

// gRPC counts them in an int.
absl::Status CheckMilliseconds(absl::string_view field, absl::Duration value) {
  if (value >= absl::Milliseconds(1) && value <= kLongestKeepalive) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", absl::FormatDuration(value),
                                                 "; it must be 1ms to ",
                                                 absl::FormatDuration(kLongestKeepalive)));
}

// What gRPC 1.51 says of a connection that the server has closed before its first word.
bool ClosedAtOnce(absl::string_view message) {
  return absl::StrContains(message, "failed to connect") &&
         (absl::StrContains(message, "Socket closed") ||
          absl::StrContains(message, "Connection reset by peer"));
}

// What it says of an address where nobody listens.
bool NobodyListens(absl::string_view message) {
  return absl::StrContains(message, "failed to connect") &&
         (absl::StrContains(message, "Connection refused") ||
          absl::StrContains(message, "No such file or directory"));
}

absl::Status CheckOptions(const ClientOptions& options) {
  for (absl::Status status :
       {CheckAddress(options.address), CheckRange("channels", options.channels, 1, 64),
        CheckRange<uint64_t>("chunk_bytes", options.chunk_bytes, 4096, 64 * kMiB),
        CheckRange<uint64_t>("unary_threshold_bytes", options.unary_threshold_bytes, 0, 64 * kMiB),
        CheckRange("row_blocks_per_channel", options.row_blocks_per_channel, 0, 64),
        CheckRange<uint64_t>("max_message_bytes", options.max_message_bytes, 64 << 10, 1024 * kMiB),
        CheckPositive("default_timeout", options.default_timeout),
        CheckPositive("idle_timeout", options.idle_timeout),
        CheckPositive("connect_timeout", options.connect_timeout),
        CheckMilliseconds("keepalive_interval", options.keepalive_interval),
        CheckMilliseconds("keepalive_timeout", options.keepalive_timeout),
        CheckPositive("transfer_ttl", options.transfer_ttl),
        CheckRange("retry.attempts", options.retry.attempts, 1, 100),
        CheckPositive("retry.first_wait", options.retry.first_wait),
        CheckPositive("retry.longest_wait", options.retry.longest_wait),
        CheckRange("retry.budget", options.retry.budget, 0.0, 1e6),
        CheckRange("retry.budget_per_call", options.retry.budget_per_call, 0.0, 1e6)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The token of the options, or empty. Errors quote nothing of it.
absl::StatusOr<std::string> TokenOf(const ClientOptions& options) {
  if (!options.token.empty() && !options.token_file.empty()) {
    return absl::InvalidArgumentError("token and token_file are both set; at most one may be");
  }
  std::string token = options.token;
  if (!options.token_file.empty()) {
    absl::StatusOr<std::string> read = ReadCredentialFile("token_file", options.token_file);
    if (!read.ok()) return read.status();
    token = *std::move(read);
  }
  const bool given = !token.empty();
  absl::StripTrailingAsciiWhitespace(&token);  // the end of a line
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return absl::ascii_isgraph(c); });
  if (!printable || token.size() > kMaxTokenBytes || (token.empty() && given)) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.token_file.empty() ? "token" : "token_file", " has a token of ", token.size(),
        " bytes; it must be 1 to ", kMaxTokenBytes, " printable ASCII characters without spaces"));
  }
  if (!token.empty() && !options.tls && !options.token_without_tls &&
      !StaysOnThisMachine(options.address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("token: not sent to ", options.address,
                     " without TLS, where others may read it: set tls, or token_without_tls"));
  }
  return token;
}

grpc::ChannelArguments Arguments(const ClientOptions& options, bool through_proxy, int channel) {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  args.SetMaxSendMessageSize(-1);
  // Channels of equal arguments would share one connection.
  args.SetInt("gemmd.channel", channel);
  // Fewer, larger reads off the socket for messages of a megabyte.
  args.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, 1 << 20);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
              static_cast<int>(absl::ToInt64Milliseconds(options.keepalive_interval)));
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
              static_cast<int>(absl::ToInt64Milliseconds(options.keepalive_timeout)));
  // By default gRPC asks twice and then no more, until data is sent.
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // gRPC takes the proxy of http_proxy for loopback, too: what goes there without TLS, and
  // the token with it, would leave this machine.
  if (!through_proxy) args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!options.user_agent.empty()) args.SetUserAgentPrefix(options.user_agent);
  if (options.tls && !options.tls->server_name.empty()) {
    args.SetSslTargetNameOverride(options.tls->server_name);
  }
  return args;
}

}  // namespace

Connection::Connection(ClientOptions options)
    : options_(std::move(options)),
      proxy_(options_.tls ? ProxyFor(options_.address, &VariableOfProcess) : std::nullopt),
      retry_budget_(options_.retry) {}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(ClientOptions options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  std::unique_ptr<Connection> connection(new Connection(std::move(options)));
  if (absl::Status status = connection->LearnToken(); !status.ok()) return status;
  if (absl::Status status = connection->OpenChannels(); !status.ok()) return status;
  absl::Status status = connection->Call(&GemmService::Stub::GetServerInfo, "Connect",
                                         {.timeout = connection->options_.connect_timeout},
                                         ::gemm::v1::GetServerInfoRequest(), &connection->server_);
  if (!status.ok()) return status;
  return connection;
}

absl::Status Connection::LearnToken() {
  absl::StatusOr<std::string> token = TokenOf(options_);
  if (!token.ok()) return token.status();
  if (!token->empty()) authorization_ = absl::StrCat("Bearer ", *token);
  return absl::OkStatus();
}

void Connection::Authorize(grpc::ClientContext& context) const {
  if (!authorization_.empty()) context.AddMetadata("authorization", authorization_);
}

absl::Status Connection::OpenChannels() {
  KeepGrpc();
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials =
      ChannelCredentials(options_.tls);
  if (!credentials.ok()) return credentials.status();
  for (int i = 0; i < options_.channels; ++i) {
    Channel& made = channels_.emplace_back();
    made.channel = grpc::CreateCustomChannel(options_.address, *credentials,
                                             Arguments(options_, proxy_.has_value(), i));
    made.generic = std::make_unique<grpc::GenericStub>(made.channel);
    made.stub = GemmService::NewStub(made.channel);
    // Connects now, all channels at once, rather than at the first call of each.
    (void)made.channel->GetState(/*try_to_connect=*/true);
  }
  return absl::OkStatus();
}

Connection::~Connection() {
  std::unique_lock<std::mutex> lock(mutex_);
  closing_ = true;
  std::vector<std::weak_ptr<Task>> tasks;
  for (const auto& [pointer, task] : tasks_) tasks.push_back(task);
  lock.unlock();
  for (const auto& weak : tasks) {
    if (const auto task = weak.lock()) {
      task->Fail(absl::CancelledError(kDestroyed));
    }
  }
  lock.lock();
  if (idle_alarm_ != nullptr) idle_alarm_->Cancel();
  idle_.wait(lock, [this] { return tasks_.empty() && idle_alarm_ == nullptr; });
}

bool Connection::closing() {
  std::lock_guard<std::mutex> lock(mutex_);
  return closing_;
}

void Connection::Add(const std::shared_ptr<Task>& task) {
  std::lock_guard<std::mutex> lock(mutex_);
  tasks_.emplace(task.get(), task);
  const bool looked_at = task->may_be_idle() && !closing_;
  if (looked_at && idle_alarm_ == nullptr) SetIdleAlarm();
}

void Connection::SetIdleAlarm() {
  idle_alarm_ = std::make_unique<grpc::Alarm>();
  idle_alarm_->Set(GrpcTime(SteadyNow() + options_.idle_timeout / kIdleLooks),
                   [this](bool) { EndIdleTasks(); });
}

void Connection::EndIdleTasks() {
  std::vector<std::shared_ptr<Task>> tasks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [pointer, weak] : tasks_) {
      if (auto task = weak.lock()) tasks.push_back(std::move(task));
    }
  }
  for (const auto& task : tasks) task->FailIfIdle();
  tasks.clear();
  std::unique_ptr<grpc::Alarm> rung;  // destroyed with no lock held
  std::lock_guard<std::mutex> lock(mutex_);
  rung = std::move(idle_alarm_);
  if (!closing_ && !tasks_.empty()) SetIdleAlarm();
  // Under the lock: the destructor may run as soon as it is let go.
  idle_.notify_all();
}

void Connection::Remove(Task* task) {
  std::lock_guard<std::mutex> lock(mutex_);
  tasks_.erase(task);
  // Under the lock: the destructor may run as soon as it is let go.
  idle_.notify_all();
}

int Connection::NextChannel() {
  return static_cast<int>(next_channel_.fetch_add(1, std::memory_order_relaxed) % channels_.size());
}

uint64_t Connection::server_message_bytes() const {
  const uint64_t limit = server_.limits().max_message_bytes();
  return limit == 0 ? 4 * kMiB : limit;  // gRPC's own, where the server names none
}

uint64_t Connection::chunk_bytes() const {
  const uint64_t limit = server_message_bytes();
  const uint64_t room = limit > 2 * kMessageOverheadBytes ? limit - kMessageOverheadBytes : 4096;
  return std::min(options_.chunk_bytes, room);
}

std::string Connection::PickDevice(const ServerInfo& now) {
  std::vector<std::string> healthy;
  for (const auto& device : now.devices()) {
    if (device.healthy()) healthy.push_back(device.name());
  }
  if (healthy.size() < 2) return "";
  return healthy[next_device_.fetch_add(1, std::memory_order_relaxed) % healthy.size()];
}

absl::Duration Connection::Timeout(const CallOptions& options) const {
  return options.timeout.value_or(options_.default_timeout);
}

absl::Time Connection::Deadline(const CallOptions& options) const {
  return SteadyNow() + Timeout(options);
}

absl::Duration Connection::IdleTimeout(const CallOptions& options) const {
  return Timeout(options) == absl::InfiniteDuration() ? options_.idle_timeout
                                                      : absl::InfiniteDuration();
}

absl::Status Connection::Idle(const char* what, absl::Duration timeout) {
  return absl::DeadlineExceededError(
      absl::StrCat(what, ": nothing was sent or received for ", absl::FormatDuration(timeout),
                   " (idle_timeout); to wait longer, give the call a timeout"));
}

absl::Status Connection::Explain(const absl::Status& status, const char* what,
                                 absl::Duration timeout, bool cancelled_here) const {
  const auto gone = [&](absl::string_view why) {
    const std::string through =
        proxy_ ? absl::StrCat(" through the proxy ", proxy_->address, " (", proxy_->variable, ")")
               : "";
    absl::Status made = absl::UnavailableError(absl::StrCat(options_.address, through, ": ", why));
    status.ForEachPayload([&made](absl::string_view url, const absl::Cord& payload) {
      made.SetPayload(url, payload);
    });
    return made;
  };
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      if (status.message() != "Deadline Exceeded") return status;
      if (timeout == absl::InfiniteDuration()) return Idle(what, options_.idle_timeout);
      return absl::DeadlineExceededError(
          absl::StrCat(what, " did not end within its timeout of ", absl::FormatDuration(timeout)));
    case absl::StatusCode::kCancelled:
      if (cancelled_here) {
        return absl::CancelledError(absl::StrCat(what, " was cancelled by the caller"));
      }
      // gRPC's bare word: the peer dropped the call, as a server does that is
      // being shut down.
      return status.message() == "CANCELLED" ? gone("the server cancelled the call") : status;
    case absl::StatusCode::kUnavailable:
      if (ClosedAtOnce(status.message())) {
        const char* const who = proxy_         ? "the proxy does so, and a server that "
                                : options_.tls ? "a server does so that "
                                               : "a server does so that wants TLS, or ";
        return gone(
            absl::StrCat(status.message(), "; ", who, "has as many connections as it takes"));
      }
      if (NobodyListens(status.message())) {
        return gone(absl::StrCat(
            status.message(), "; nobody listens there: ",
            proxy_ ? "is this the proxy's address? no_proxy names servers that need none"
                   : "does gemmd run, and is this its address?"));
      }
      if (!absl::StrContains(status.message(), kNoAnswer)) return gone(status.message());
      return gone(absl::StrCat(
          "nothing came for ",
          absl::FormatDuration(options_.keepalive_interval + options_.keepalive_timeout),
          ": the server or the network to it is gone"));
    default:
      return status;
  }
}

void Connection::DeleteInBackground(::gemm::v1::MatrixRef matrix) {
  const auto task =
      Task::BeginCleanUp(*this, {.timeout = kCleanUpTimeout}, "DeleteMatrix", [](absl::Status) {});
  auto request = std::make_shared<DeleteMatrixRequest>();
  *request->mutable_matrix() = std::move(matrix);
  task->Unary<DeleteMatrixResponse>(
      [&](grpc::ClientContext* context, DeleteMatrixResponse* response, auto completion) {
        stub(NextChannel())
            .async()
            ->DeleteMatrix(context, request.get(), response,
                           [request, completion](grpc::Status status) { completion(status); });
      },
      [](const absl::Status&, DeleteMatrixResponse&) {});
  task->Drop();
}

}  // namespace gemmd::client
