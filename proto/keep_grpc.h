// Keeps gRPC 1.51 alive in a process that makes or serves callback calls.
#pragma once

namespace gemmd {

// Keeps gRPC and its callback queue until the process ends. Otherwise the end of the last channel
// or server stops the queue's threads. That sometimes aborts on a reference count, or waits ten
// seconds for a poller. Call this before the first channel or server; further calls do nothing.
// False if gRPC got no threads because the process may not have so many.
bool KeepGrpc();

}  // namespace gemmd
