// The products of a load test: its operands, and the callers that ask for them.
//
// Operands and result buffers are prepared once, before the test; a request
// allocates neither. Operands that are sent are drawn on this machine by the
// server's own rule, so that products of resident and generated operands can be
// verified as well.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "client/ctl/load/load_options.h"
#include "client/ctl/load/mix.h"
#include "client/ctl/load/runner.h"
#include "client/ctl/verify.h"

namespace gemmd::ctl {

// The operands of one shape.
struct OperandPair {
  client::Operand a;
  client::Operand b;
  // Their elements, where a product may have to be verified.
  HostOperands elements;
};

// Prepares a test, makes its callers and clears up after it. The callers use
// the client and this object, which outlive them.
class Workload {
 public:
  // Draws operands and puts resident ones on the server. `options` have their
  // defaults.
  static absl::StatusOr<std::unique_ptr<Workload>> Prepare(client::Client& client,
                                                           const LoadOptions& options);

  // Removes what Prepare put on the server.
  ~Workload();
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  // One caller for each request that may be under way.
  absl::StatusOr<std::vector<std::unique_ptr<Caller>>> MakeCallers();

  // Makes one request of every shape with every kernel. The first error ends
  // it: a test that the server cannot serve is not worth starting.
  absl::Status Try(Caller& caller);

 private:
  class ProductCaller;

  Workload(client::Client& client, const LoadOptions& options);

  absl::StatusOr<OperandPair> MakePair(size_t set, size_t shape);
  absl::StatusOr<client::Operand> MakeOperand(const client::Generated& drawn,
                                              client::MatrixView& elements);
  client::CallOptions Call() const { return {.timeout = options_.timeout}; }

  // A request's choice of the mix.
  size_t ShapeOf(size_t choice) const { return choice / options_.kernels.size(); }
  size_t KernelOf(size_t choice) const { return choice % options_.kernels.size(); }

  client::Client& client_;
  const LoadOptions options_;
  // Over shapes times kernels.
  const Mix mix_;
  // By set, then by shape. Workers share the sets by their number.
  std::vector<std::vector<OperandPair>> sets_;
  std::vector<client::Resident> resident_;
};

}  // namespace gemmd::ctl
