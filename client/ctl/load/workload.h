// The products of a load test: their operands, and the callers that request them.
//
// Operands and result buffers are prepared once, before the test; a request allocates
// neither. Operands to send are generated on this machine with the same bits as on the
// server, so products of resident and generated operands can be verified, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/ctl/checks/verify.h"
#include "client/ctl/load/load_options.h"
#include "client/ctl/load/runner.h"
#include "gemmd/client/client.h"

namespace gemmd::ctl {

// Picks one of several weighted choices for each request: a cycle in which choice i occurs
// weights[i] times, spread as evenly as possible (the smooth weighted round robin of nginx).
// Immutable.
class Mix {
 public:
  // At least one weight, each at least 1.
  explicit Mix(const std::vector<int>& weights);

  size_t Choice(uint64_t index) const { return cycle_[index % cycle_.size()]; }
  size_t cycle_length() const { return cycle_.size(); }

 private:
  std::vector<size_t> cycle_;
};

// The operands of one shape.
struct OperandPair {
  client::Operand a;
  client::Operand b;
  // Their elements, where a product may have to be verified.
  HostOperands elements;
};

// Prepares a test, makes its callers and cleans up after it. The callers use the
// clients and this object, which must outlive them.
class Workload {
 public:
  // Generates the operands and uploads resident ones. `options` have their defaults
  // filled in. A test that the server's limits do not allow is refused before that. Calls `making`
  // with the bytes of the operands before they are made here. The requests of the test go through
  // `client`. Calls that are not measured go through `patient`, which may try again if others keep
  // the server busy.
  static absl::StatusOr<std::unique_ptr<Workload>> Prepare(client::Client& client,
                                                           client::Client& patient,
                                                           const LoadOptions& options,
                                                           absl::FunctionRef<void(double)> making);

  // Removes what Prepare put on the server.
  ~Workload();
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  // One caller for each request that may be under way. A caller removes what it has kept.
  absl::StatusOr<std::vector<std::unique_ptr<Caller>>> MakeCallers();

  // Sends one request of every shape with every kernel, and stops at the first
  // error, so that a test that the server cannot serve does not start.
  absl::Status Try(Caller& caller);

  // The number of shapes times that of kernels. A request asks for one of them.
  size_t choices() const { return options_.shapes.size() * options_.kernels.size(); }

 private:
  class ProductCaller;

  Workload(client::Client& client, client::Client& patient, const LoadOptions& options);

  absl::StatusOr<OperandPair> MakePair(size_t set, size_t shape);
  // The products of each request of this shape, where it has a group of them.
  std::vector<client::ProductSize> GroupOf(size_t shape) const;
  absl::StatusOr<client::Operand> MakeOperand(const client::Generated& drawn,
                                              client::MatrixView& elements);
  // Removes a matrix at the end of the test.
  void Remove(const client::Resident& matrix);
  client::CallOptions Call() const { return {.timeout = options_.timeout}; }

  // The shape of a choice of the mix.
  size_t ShapeOf(size_t choice) const { return choice / options_.kernels.size(); }
  size_t KernelOf(size_t choice) const { return choice % options_.kernels.size(); }

  client::Client& client_;
  client::Client& patient_;
  const LoadOptions options_;
  // Over shapes times kernels.
  const Mix mix_;
  const std::string run_;  // in the names of kept results
  // By set, then by shape. Worker i uses set i modulo the number of sets.
  std::vector<std::vector<OperandPair>> sets_;
  std::vector<client::Resident> resident_;
  bool may_remove_ = true;
};

}  // namespace gemmd::ctl
