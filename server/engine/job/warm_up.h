// Loads what libraries would load at the first product of a kind.
#pragma once

#include "server/engine/device/device.h"

namespace gemmd {

// Runs products of many shapes and types on the device, and waits for them. They go through those
// rows that come first by rank and whose code a library chooses. cuBLASLt loads each of its kernels
// at its first launch. That takes up to 140 ms, on the thread that all jobs of the device share.
// Returns the number of products that ran: 0 on a device without such rows, or without memory for
// the operands. A product that fails is left out: its callers will be told.
int WarmUp(Device& device);

}  // namespace gemmd
