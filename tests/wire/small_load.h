// Keeps small products under way, with messages made by hand: the least a client can do.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/grpcpp.h"

namespace gemmd::wire {

// A product to send, and the elements that must come back.
struct SmallProduct {
  gemm::v1::Product product;  // operands as data
  std::string expected;       // elements at the end of the answer
};

// Answers that came within `seconds`, by callers that each have one call of MultiplyUnary under
// way, spread over the channels. An answer with other elements, or a call that fails, ends it.
struct Rate {
  double per_second = 0;
  absl::Status status;
};
Rate UnaryRate(const std::vector<std::shared_ptr<grpc::Channel>>& channels, int callers,
               const SmallProduct& product, double seconds);

// The same with so many jobs under way on one Multiply stream. The operands are in the headers.
Rate StreamRate(const std::shared_ptr<grpc::Channel>& channel, int in_flight,
                const SmallProduct& product, double seconds);

}  // namespace gemmd::wire
