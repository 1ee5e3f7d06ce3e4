// A gRPC server that drops its requests: the floor of the wire.
#pragma once

#include <cstdint>
#include <string>

namespace gemmd::wire {

struct BaselineOptions {
  std::string listen = "127.0.0.1:0";
  uint64_t bytes = uint64_t{1} << 30;  // of the matrix that GetMatrix sends
  uint64_t chunk_bytes = uint64_t{1} << 20;
  uint64_t answer_bytes = 0;  // elements in the answer to a product; 0: an empty answer
};

// Serves calls of the contract until a signal ends the process. The messages of PutMatrix are
// dropped unread. GetMatrix of any matrix and range sends memory that lies ready. GetServerInfo has
// an empty answer. MultiplyUnary has an answer that lies ready, and each message of a Multiply
// stream two of those. Returns an exit code if it cannot listen.
int ServeBaseline(const BaselineOptions& options);

}  // namespace gemmd::wire
