// Runs one product, with the transport of its plan.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/products/multiply_attempt.h"
#include "gemmd/client/options.h"
#include "gemmd/client/product.h"

namespace gemmd::client {

// Starts the call and returns. `done` is called once, maybe from inside.
void StartMultiply(Connection& connection, std::shared_ptr<const Product> product,
                   const CallOptions& options, MultiplyDone done);

// Returns the result. A small product runs on the caller's own thread.
absl::StatusOr<ProductResult> BlockingMultiply(Connection& connection, const Product& product,
                                               const CallOptions& options);

}  // namespace gemmd::client
