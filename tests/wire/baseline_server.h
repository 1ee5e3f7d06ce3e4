// A gRPC server that does nothing with what it gets: the floor of the wire.
#pragma once

#include <string>

namespace gemmd::wire {

// Serves the contract's PutMatrix as raw messages that are dropped unread,
// GetServerInfo and MultiplyUnary with empty answers, until a signal ends the
// process. Returns an exit code where it cannot listen.
int ServeBaseline(const std::string& listen);

}  // namespace gemmd::wire
