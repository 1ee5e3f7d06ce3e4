// One attempt at a product, and those that follow where it fails.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/retries.h"
#include "client/cpp/products/product_plan.h"
#include "gemmd/client/options.h"
#include "gemmd/client/product.h"

namespace gemmd::client {

using MultiplyDone = std::function<void(absl::StatusOr<ProductResult>)>;

// Whether the product does the same when it runs twice. The library's own matrices do not count.
Repeated RepeatedRun(const Product& product);

// Plans the product and starts it. `retries` are of all attempts at it. `done` is called once,
// maybe from inside.
void StartAttempt(Connection& connection, std::shared_ptr<const Product> product,
                  const CallOptions& options, std::shared_ptr<Retries> retries, MultiplyDone done);

// The same with the plan that was made of the product and of these options.
void StartPlanned(Connection& connection, ProductPlan plan, std::shared_ptr<const Product> product,
                  const CallOptions& options, std::shared_ptr<Retries> retries, MultiplyDone done);

}  // namespace gemmd::client
