#include "server/telemetry/http_endpoint.h"

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_static_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/thread_name.h"
#include "server/net/address.h"
#include "server/net/listen_socket.h"
#include "server/telemetry/http_answer.h"

namespace gemmd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kMaxConnections = 64;
constexpr uint32_t kMaxHeadBytes = 8192;
// From accepting a connection to its last byte.
constexpr std::chrono::seconds kConnectionTime{2};
// The pause before accepting again, after accept has failed: there may be no descriptors left.
constexpr std::chrono::milliseconds kRetryPause{100};

absl::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// The error of a request that the parser refused.
HttpAnswer DescribeError(error_code error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return {.status = 431,
            .body = absl::StrCat("Header fields of more than ", kMaxHeadBytes,
                                 " bytes are not read.\n")};
  }
  return {.status = 400, .body = "This is HTTP/1.1: GET /metrics.\n"};
}

// One connection: a request, its answer, and what the client still sends until
// it has the answer. Runs on the endpoint's thread alone, kept alive by the
// operation that is under way.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const HttpPages& pages) : stream_(std::move(socket)), pages_(pages) {
    parser_.header_limit(kMaxHeadBytes);
  }

  void Start() {
    stream_.expires_after(kConnectionTime);
    http::async_read_header(
        stream_, buffer_, parser_,
        [self = shared_from_this()](error_code error, size_t) { self->OnRead(error); });
  }

  // Operations under way end with an error.
  void Close() { stream_.close(); }

 private:
  void OnRead(error_code error) {
    if (error == http::error::end_of_stream || error == beast::error::timeout ||
        error == asio::error::operation_aborted) {
      return;
    }
    const bool parsed = !error;
    if (!parsed && error.category() != http::make_error_code(http::error::bad_method).category()) {
      return;  // the connection's, not the request's
    }
    Send(parsed ? AnswerRequest(Request(), pages_) : DescribeError(error),
         parsed && parser_.get().method() == http::verb::head);
  }

  HttpRequest Request() const {
    const auto& request = parser_.get();
    HttpRequest described = {.method = View(request.method_string()),
                             .target = View(request.target())};
    const auto authorization = request.find(http::field::authorization);
    if (authorization != request.end()) described.authorization = View(authorization->value());
    return described;
  }

  void Send(HttpAnswer answer, bool head_only) {
    response_.result(static_cast<unsigned>(answer.status));
    response_.set(http::field::content_type, answer.type);
    response_.set(http::field::connection, "close");
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("Content-Security-Policy",
                  beast::string_view(kContentPolicy.data(), kContentPolicy.size()));
    if (!answer.allow.empty()) response_.set(http::field::allow, answer.allow);
    if (!answer.authenticate.empty()) {
      response_.set(http::field::www_authenticate, answer.authenticate);
    }
    response_.content_length(answer.body.size());
    if (!head_only) response_.body() = std::move(answer.body);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code error, size_t) {
      if (error && error != http::error::end_of_stream) return;
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      self->Discard();
    });
  }

  // A socket closed with bytes unread resets the connection, and the client may
  // lose the answer: so they are read, until its end or the time-out.
  void Discard() {
    stream_.async_read_some(asio::buffer(discarded_),
                            [self = shared_from_this()](error_code error, size_t) {
                              if (!error) self->Discard();
                            });
  }

  beast::tcp_stream stream_;
  const HttpPages& pages_;
  beast::flat_static_buffer<kMaxHeadBytes> buffer_;
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  std::array<char, 1024> discarded_;
};

class HttpEndpointImpl final : public HttpEndpoint {
 public:
  HttpEndpointImpl(Listening listening, HttpPages pages)
      : listening_(std::move(listening)), pages_(std::move(pages)) {}

  absl::Status Begin() {
    for (UniqueFd& fd : listening_.fds) {
      int family = AF_INET;
      socklen_t length = sizeof(family);
      getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &family, &length);
      tcp::acceptor& acceptor = acceptors_.emplace_back(context_);
      error_code error;
      acceptor.assign(family == AF_INET6 ? tcp::v6() : tcp::v4(), fd.get(), error);
      if (error) return absl::UnavailableError(error.message());
      fd.release();
    }
    for (tcp::acceptor& acceptor : acceptors_) Accept(acceptor);
    thread_ = std::thread([this] {
      SetThreadName("http");
      context_.run();
    });
    return absl::OkStatus();
  }

  ~HttpEndpointImpl() override {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  int port() const override { return listening_.address.port; }
  std::string address() const override { return listening_.text(); }
  ConnectionStats Stats() const override {
    return {.open = open_,
            .limit = kMaxConnections,
            .accepted = accepted_,
            .refused = refused_,
            .failures = failures_};
  }

 private:
  void Accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([this, &acceptor](error_code error, tcp::socket socket) {
      if (!error) {
        Serve(std::move(socket));
        return Accept(acceptor);
      }
      ++failures_;
      auto pause = std::make_shared<asio::steady_timer>(context_, kRetryPause);
      pause->async_wait([this, &acceptor, pause](error_code) { Accept(acceptor); });
    });
  }

  void Serve(tcp::socket socket) {
    ++accepted_;
    sessions_.remove_if([](const auto& session) { return session.expired(); });
    if (sessions_.size() >= kMaxConnections) {
      // The oldest has had the most time; a scrape takes a millisecond of it.
      if (const auto oldest = sessions_.front().lock()) oldest->Close();
      sessions_.pop_front();
      ++refused_;
    }
    // Deleted where its last operation ends, on this thread.
    const std::shared_ptr<Session> session(new Session(std::move(socket), pages_),
                                           [this](Session* ended) {
                                             --open_;
                                             delete ended;
                                           });
    ++open_;
    sessions_.push_back(session);
    session->Start();
  }

  Listening listening_;  // its sockets are the acceptors'
  const HttpPages pages_;
  std::atomic<int64_t> open_{0};
  std::atomic<int64_t> accepted_{0};
  std::atomic<int64_t> refused_{0};
  std::atomic<int64_t> failures_{0};
  asio::io_context context_{1};  // destroys what is under way, and uses the above
  std::list<tcp::acceptor> acceptors_;
  std::list<std::weak_ptr<Session>> sessions_;  // oldest first
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(absl::string_view flag,
                                                                  absl::string_view address,
                                                                  HttpPages pages) {
  const absl::StatusOr<Address> parsed = ParseTcpAddress(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, "=", address, ": ", parsed.status().message(), "; want ", kTcpAddressForm));
  }
  absl::StatusOr<Listening> listening = Listen(flag, *parsed);
  if (!listening.ok()) return listening.status();
  auto endpoint = std::make_unique<HttpEndpointImpl>(*std::move(listening), std::move(pages));
  if (absl::Status status = endpoint->Begin(); !status.ok()) {
    return absl::UnavailableError(absl::StrCat(flag, "=", address, ": ", status.message()));
  }
  return endpoint;
}

}  // namespace gemmd
