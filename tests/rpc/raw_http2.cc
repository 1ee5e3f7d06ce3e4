#include "tests/rpc/raw_http2.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gtest/gtest.h"

namespace gemmd {
namespace {

enum FrameType : uint8_t { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kWindowUpdate = 8 };
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr uint32_t kCancel = 8;             // the reason of a reset
constexpr uint16_t kInitialWindowSize = 4;  // the setting
constexpr int kReceiveBuffer = 64 * 1024;   // of the socket

std::string BigEndian(uint32_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return BigEndian(static_cast<uint32_t>(payload.size()), 3) + static_cast<char>(type) +
         static_cast<char>(flags) + BigEndian(stream, 4) + payload;
}

// A literal of HPACK, neither indexed nor compressed.
std::string Literal(const std::string& text) { return static_cast<char>(text.size()) + text; }

std::string RequestHeaders(const std::string& path, const std::string& timeout = "",
                           const std::string& token = "") {
  std::string block;
  block += '\x83';                                                    // :method POST
  block += '\x86';                                                    // :scheme http
  block += '\x04' + Literal(path);                                    // :path
  block += '\x01' + Literal("localhost");                             // :authority
  block += std::string("\x0f\x10", 2) + Literal("application/grpc");  // content-type
  block += '\0' + Literal("te") + Literal("trailers");
  if (!timeout.empty()) block += '\0' + Literal("grpc-timeout") + Literal(timeout);
  if (!token.empty()) block += '\0' + Literal("authorization") + Literal("Bearer " + token);
  return block;
}

void Connect(int fd, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ADD_FAILURE() << "no connection to port " << port << ": " << std::strerror(errno);
  }
}

void SendAll(int fd, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t step = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (step <= 0) return;  // the server has closed; what the test expects tells
    sent += static_cast<size_t>(step);
  }
}

// Reads until `text` has come, until the end, or until nothing comes for `seconds`.
std::string ReceiveUntil(int fd, const std::string& text, double seconds) {
  std::string received;
  pollfd ready{.fd = fd, .events = POLLIN};
  while ((text.empty() || received.find(text) == std::string::npos) &&
         poll(&ready, 1, static_cast<int>(seconds * 1000)) > 0) {
    char buffer[65536];
    const ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
    if (got <= 0) break;
    received.append(buffer, static_cast<size_t>(got));
  }
  return received;
}

}  // namespace

RawHttp2::RawHttp2(int port, uint32_t stream_window) {
  socket_ = socket(AF_INET, SOCK_STREAM, 0);
  // Before it connects: the window that TCP offers follows from it.
  setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof(kReceiveBuffer));
  Connect(socket_, port);
  Greet(stream_window);
}

RawHttp2::RawHttp2(const std::string& path, uint32_t stream_window) {
  socket_ = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ADD_FAILURE() << "no connection to " << path << ": " << std::strerror(errno);
  }
  Greet(stream_window);
}

void RawHttp2::Greet(uint32_t stream_window) {
  Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  Send(Frame(kSettings, 0, 0, BigEndian(kInitialWindowSize, 2) + BigEndian(stream_window, 4)));
  Send(Frame(kWindowUpdate, 0, 0, BigEndian(kLargestWindow - 65535, 4)));
}

RawHttp2::~RawHttp2() { close(socket_); }

void RawHttp2::Call(uint32_t stream, const std::string& path, const std::string& message,
                    bool half_close, const std::string& timeout, const std::string& token) {
  Send(Frame(kHeaders, kEndHeaders, stream, RequestHeaders(path, timeout, token)));
  Write(stream, message, half_close);
}

void RawHttp2::Write(uint32_t stream, const std::string& message, bool half_close) {
  Send(Frame(kData, half_close ? kEndStream : 0, stream,
             '\0' + BigEndian(static_cast<uint32_t>(message.size()), 4) + message));
}

void RawHttp2::CallWithHeader(uint32_t stream, const std::string& path, const std::string& key,
                              const std::string& value) {
  const std::string block = RequestHeaders(path) + '\0' + Literal(key) + Literal(value);
  Send(Frame(kHeaders, kEndHeaders | kEndStream, stream, block));
}

void RawHttp2::CallAndReset(uint32_t first, int calls, const std::string& path) {
  const std::string headers = RequestHeaders(path);
  std::string bytes;
  for (uint32_t i = 0; i < static_cast<uint32_t>(calls); ++i) {
    bytes += Frame(kHeaders, kEndHeaders, first + 2 * i, headers);
    bytes += Frame(kReset, 0, first + 2 * i, BigEndian(kCancel, 4));
  }
  Send(bytes);
}

void RawHttp2::Grant(uint32_t stream, uint32_t bytes) {
  Send(Frame(kWindowUpdate, 0, stream, BigEndian(bytes, 4)));
}

bool RawHttp2::Await(const std::string& text, double seconds) {
  return ReceiveUntil(socket_, text, seconds).find(text) != std::string::npos;
}

bool RawHttp2::AwaitEnd(double seconds) {
  ReceiveUntil(socket_, "", seconds);
  char byte;
  const ssize_t got = recv(socket_, &byte, 1, MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN);
}

void RawHttp2::Sip(double seconds) {
  for (int i = 0; i < static_cast<int>(seconds * 20); ++i) {
    char buffer[4000];
    recv(socket_, buffer, sizeof(buffer), MSG_DONTWAIT);
    usleep(50'000);
  }
}

void RawHttp2::Send(const std::string& bytes) { SendAll(socket_, bytes); }

}  // namespace gemmd
