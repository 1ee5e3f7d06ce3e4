// Checks a product against the double-precision reference, on this machine.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gemm/reference.h"
#include "gemmd/client/client.h"
#include "gemmd/client/matrix.h"
#include "gemmd/client/product.h"

namespace gemmd::ctl {

// The operands as the server had them; c, bias and the scales have no data where the product has
// none.
struct HostOperands {
  gemm::Elements known = gemm::Elements::kAny;  // of a and b, beside what they are seen to be
  client::MatrixView a;
  client::MatrixView b;
  client::MatrixView c;
  client::MatrixView bias;
  client::MatrixView scales_a;
  client::MatrixView scales_b;
};

// Compares `result`, the result of `product` with `operands` in the mode `compute`,
// with the reference. Checks about `max_samples` elements at most, chosen by `seed`; of a
// batch or a group, elements of some of its products, the first and the last among them.
// INVALID_ARGUMENT where the shapes do not match. worst_row and worst_col index the caller's
// result. If SumsAreExact (exact_sums.h), only the exact value is right.
absl::StatusOr<gemm::Agreement> CheckProduct(const client::Product& product,
                                             const HostOperands& operands,
                                             client::ComputeMode compute,
                                             const client::MatrixView& result, int64_t max_samples,
                                             uint64_t seed);

// True where no element is off by more than the bound.
inline bool IsRight(const gemm::Agreement& agreement) { return agreement.worst_ratio <= 1; }

// "element (3, 7) is off by 0.01, 12.3 times the bound of its arithmetic", or "element (3, 7) is
// NaN; it must be 2.5".
std::string Explain(const gemm::Agreement& agreement);

// "errors above 0.0031 of a typical element are seen". With kAny it adds that the bound is the
// worst case. For a product that was compared exactly it says that every error is seen, and for one
// without a finite element that nothing else was compared.
std::string ExplainResolution(const gemm::Agreement& agreement, gemm::Elements known);

// What is known of the elements of two factors: kDrawn if both are generated from different
// seeds, and the elements of one of them have either sign alike.
gemm::Elements WhatIsKnown(const client::Operand& a, const client::Operand& b);

// The same matrix as the server generates, bit for bit.
absl::StatusOr<client::HostMatrix> DrawHere(const client::Generated& generated);

// The elements of any operand: sent ones as they are, generated ones generated here,
// resident ones downloaded.
absl::StatusOr<client::MatrixView> ElementsOf(client::Client& client,
                                              const client::Operand& operand,
                                              const client::CallOptions& options);

}  // namespace gemmd::ctl
