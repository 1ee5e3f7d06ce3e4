// A gRPC server that does nothing with what it gets: the floor of the wire.
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

// Serves the contract's PutMatrix as raw messages that are dropped unread, GetMatrix with
// any matrix and range as raw messages of memory that lies ready, GetServerInfo with an empty
// answer, MultiplyUnary with an answer that lies ready, and each message of a Multiply stream with
// two of those, until a signal ends the process. Returns an exit code where it cannot listen.
int ServeBaseline(const BaselineOptions& options);

}  // namespace gemmd::wire
