// An HTTP/2 client that does as little as a test pleases: it may grant no window, or
// never read its socket. gRPC's own clients always do both.
#pragma once

#include <cstdint>
#include <string>

namespace gemmd {

inline constexpr uint32_t kLargestWindow = 0x7fffffff;

class RawHttp2 {
 public:
  // Connects to 127.0.0.1 and sends the preface. `stream_window` is what each stream's
  // answer may take at first; the connection's own window is as large as can be.
  RawHttp2(int port, uint32_t stream_window);
  // The same, to a Unix socket.
  RawHttp2(const std::string& path, uint32_t stream_window);
  ~RawHttp2();
  RawHttp2(const RawHttp2&) = delete;

  // A call of "/gemm.v1.GemmService/Multiply" and the like with one message. Ends
  // the client's side where `half_close`. `timeout` as on the wire, "500m" for half a second; none
  // where it is empty, and no metadata "authorization" where `token` is.
  void Call(uint32_t stream, const std::string& path, const std::string& message, bool half_close,
            const std::string& timeout = "", const std::string& token = "");

  // A call without a message, with one more header.
  void CallWithHeader(uint32_t stream, const std::string& path, const std::string& key,
                      const std::string& value);

  // One more message of a call.
  void Write(uint32_t stream, const std::string& message, bool half_close);

  // Opens calls of `path` and resets each at once, all in one piece. Streams `first`, `first` + 2
  // and so on.
  void CallAndReset(uint32_t first, int calls, const std::string& path);

  // The stream's answer may take `bytes` more.
  void Grant(uint32_t stream, uint32_t bytes);

  // Reads, and answers nothing, until `text` has come; false where it has not within
  // `seconds` of silence.
  bool Await(const std::string& text, double seconds);
  // Reads until the server closes; false where it is silent for `seconds` instead.
  bool AwaitEnd(double seconds);
  // Reads 80 KB a second for `seconds`: TCP goes on, and little else.
  void Sip(double seconds);

 private:
  void Greet(uint32_t stream_window);
  void Send(const std::string& bytes);

  int socket_ = -1;
};

}  // namespace gemmd
