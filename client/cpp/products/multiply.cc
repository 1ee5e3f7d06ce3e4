#include "client/cpp/products/multiply.h"

#include <future>
#include <utility>

#include "client/cpp/calls/clock.h"
#include "client/cpp/calls/retries.h"
#include "client/cpp/calls/run_task.h"
#include "client/cpp/products/plan_limits.h"
#include "client/cpp/products/product_messages.h"
#include "client/cpp/products/result_place.h"

namespace gemmd::client {
namespace {

using ::gemm::v1::GemmService;
using ::gemm::v1::MultiplyUnaryResponse;

std::shared_ptr<Retries> RetriesFor(Connection& connection, const Product& product) {
  return std::make_shared<Retries>(connection.options().retry, connection.retry_budget(),
                                   RepeatedRun(product));
}

// A small product, on the caller's own thread.
absl::StatusOr<ProductResult> OneMessage(Connection& connection, const ProductPlan& plan,
                                         const CallOptions& options) {
  ProductResult result;
  MultiplyUnaryResponse response;
  absl::Status status = connection.Call(&GemmService::Stub::MultiplyUnary, "Multiply", options,
                                        UnaryRequest(plan), &response);
  if (!status.ok()) return status;
  ResultPlace place(plan, &result.matrix);
  status = TakeUnaryResponse(response, place, result);
  if (!status.ok()) return status;
  place.HandOver();
  result.bytes_sent = plan.payload_bytes;
  result.bytes_received = place.bytes();
  return result;
}

}  // namespace

void StartMultiply(Connection& connection, std::shared_ptr<const Product> product,
                   const CallOptions& options, MultiplyDone done) {
  std::shared_ptr<Retries> retries = RetriesFor(connection, *product);
  StartAttempt(connection, std::move(product), options, std::move(retries), std::move(done));
}

absl::StatusOr<ProductResult> BlockingMultiply(Connection& connection, const Product& product,
                                               const CallOptions& options) {
  absl::StatusOr<ProductPlan> plan = PlanProduct(product, options.transport, LimitsOf(connection));
  if (!plan.ok()) return plan.status();
  if (plan->transport == Transport::kUnary) {
    const absl::Time begun = SteadyNow();
    absl::StatusOr<ProductResult> result =
        Tried(connection, options, "Multiply", RepeatedRun(product),
              [&](const CallOptions& rest) { return OneMessage(connection, *plan, rest); });
    if (result.ok()) result->elapsed = SteadyNow() - begun;
    return result;
  }
  // Shared: the task may still be inside it when this function has returned.
  const auto promise = std::make_shared<std::promise<absl::StatusOr<ProductResult>>>();
  StartPlanned(connection, *std::move(plan), std::make_shared<const Product>(product), options,
               RetriesFor(connection, product), [promise](absl::StatusOr<ProductResult> result) {
                 promise->set_value(std::move(result));
               });
  return promise->get_future().get();
}

}  // namespace gemmd::client
