// Checks a product against the double-precision oracle, on this machine.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "client/cpp/matrix.h"
#include "client/cpp/product.h"
#include "gemm/reference.h"

namespace gemmd::ctl {

// The operands as the server had them; c and bias without data where there are
// none.
struct HostOperands {
  client::MatrixView a;
  client::MatrixView b;
  client::MatrixView c;
  client::MatrixView bias;
};

// `product` in which `result` came from `operands`, by arithmetic `compute`.
// Checks at most `max_samples` elements, drawn from `seed`. INVALID_ARGUMENT
// where the shapes do not fit together. worst_row and worst_col are those of
// the result as the caller has it.
absl::StatusOr<gemm::Agreement> CheckProduct(const client::Product& product,
                                             const HostOperands& operands,
                                             client::ComputeMode compute,
                                             const client::MatrixView& result, int64_t max_samples,
                                             uint64_t seed);

// True where the product is right: no element off by more than the bound.
inline bool IsRight(const gemm::Agreement& agreement) { return agreement.worst_ratio <= 1; }

// "element (3, 7) is off by 0.01, 12.3 times what f32 arithmetic may be".
std::string Explain(const gemm::Agreement& agreement);

// The matrix as the server draws it, to the bit.
absl::StatusOr<client::HostMatrix> DrawHere(const client::Generated& generated);

// The elements of any operand: as they are, drawn here, or fetched.
absl::StatusOr<client::MatrixView> ElementsOf(client::Client& client,
                                              const client::Operand& operand,
                                              const client::CallOptions& options);

}  // namespace gemmd::ctl
