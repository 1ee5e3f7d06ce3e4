// What gRPC 1.51 needs of a process that makes or serves callback calls.
#pragma once

namespace gemmd {

// Keeps gRPC and the queue of its callbacks until the process ends. Without
// this, the last channel or server to go stops the queue's threads, and now and
// then aborts on a reference count in doing so, or waits ten seconds for a
// poller. Call it before the first channel or server; further calls do nothing.
// False where gRPC has no threads, since the process may not have as many.
bool KeepGrpc();

}  // namespace gemmd
