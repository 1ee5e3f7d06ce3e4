// Matrices on the client's side of a test, and what their product must be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gemm/v1/gemm.pb.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

// Dense elements, as they go over the wire.
struct HostMatrix {
  Shape shape;
  std::string bytes;
};

// Uniform on [-1, 1).
HostMatrix RandomMatrix(const Shape& shape, uint64_t seed);

// The contract's shape, and operands of each source.
gemm::v1::MatrixShape ProtoShape(const Shape& shape);
gemm::v1::Operand PayloadOperand(const HostMatrix& matrix);
gemm::v1::Operand DataOperand(const HostMatrix& matrix);
gemm::v1::Operand GeneratedOperand(const Shape& shape, uint64_t seed);  // as RandomMatrix
gemm::v1::Operand ResidentOperand(const std::string& id);

struct HostProduct {
  HostMatrix a;
  HostMatrix b;
  std::optional<HostMatrix> c;
  std::optional<HostMatrix> bias;
};

// The error of `result` as a multiple of the error that a right kernel may have; above 1 it is
// wrong. `product` says how the operands are combined. a and b are drawn from different seeds.
double WorstError(const gemm::v1::Product& product, const HostProduct& operands,
                  const HostMatrix& result);

}  // namespace gemmd
