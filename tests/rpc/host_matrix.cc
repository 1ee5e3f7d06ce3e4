#include "tests/rpc/host_matrix.h"

#include "gemm/generate.h"
#include "gemm/reference.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/vocabulary.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

}  // namespace

HostMatrix RandomMatrix(const Shape& shape, uint64_t seed) {
  HostMatrix matrix{shape, std::string(shape.dense_bytes(), '\0')};
  const gemm::GeneratorSpec spec{.seed = seed, .low_or_mean = -1, .high_or_stddev = 1};
  const gemm::GeneratorTarget target{.data = matrix.bytes.data(),
                                     .type = shape.type,
                                     .rows = shape.rows,
                                     .cols = shape.cols,
                                     .pitch_bytes = shape.line_bytes(),
                                     .column_major = shape.column_major};
  if (!gemm::GenerateHost(spec, target).ok()) matrix.bytes.clear();
  return matrix;
}

v1::MatrixShape ProtoShape(const Shape& shape) {
  v1::MatrixShape proto;
  Fill(shape, proto);
  return proto;
}

v1::Operand PayloadOperand(const HostMatrix& matrix) {
  v1::Operand operand;
  *operand.mutable_shape() = ProtoShape(matrix.shape);
  operand.mutable_payload();
  return operand;
}

v1::Operand DataOperand(const HostMatrix& matrix) {
  v1::Operand operand;
  *operand.mutable_shape() = ProtoShape(matrix.shape);
  operand.set_data(matrix.bytes);
  return operand;
}

v1::Operand GeneratedOperand(const Shape& shape, uint64_t seed) {
  v1::Operand operand;
  *operand.mutable_shape() = ProtoShape(shape);
  operand.mutable_generator()->set_seed(seed);
  operand.mutable_generator()->mutable_uniform()->set_low(-1);
  operand.mutable_generator()->mutable_uniform()->set_high(1);
  return operand;
}

v1::Operand ResidentOperand(const std::string& id) {
  v1::Operand operand;
  operand.mutable_matrix()->set_id(id);
  return operand;
}

double WorstError(const v1::Product& product, const HostProduct& operands,
                  const HostMatrix& result) {
  // A column-major matrix is the row-major one of its transpose, and a
  // column-major product that of the swapped, transposed operands.
  const HostMatrix& a = operands.a;
  const HostMatrix& b = operands.b;
  const bool swapped = result.shape.column_major;
  const bool a_transposed = product.transpose_a() != a.shape.column_major;
  const bool b_transposed = product.transpose_b() != b.shape.column_major;
  const gemm::Compute compute =
      ParseComputeMode(product.compute(), "compute")
          ->value_or(a.shape.type == gemm::DType::kF64 ? gemm::Compute::kF64 : gemm::Compute::kF32);
  gemm::Problem problem{
      .m = swapped ? result.shape.cols : result.shape.rows,
      .n = swapped ? result.shape.rows : result.shape.cols,
      .k = product.transpose_a() ? a.shape.rows : a.shape.cols,
      .types = {swapped ? b.shape.type : a.shape.type, swapped ? a.shape.type : b.shape.type,
                result.shape.type, compute},
      .trans_a = swapped ? !b_transposed : a_transposed,
      .trans_b = swapped ? !a_transposed : b_transposed,
      .alpha = product.has_alpha() ? product.alpha() : 1,
      .beta = product.beta(),
      .activation = *ParseActivation(product.activation(), "activation"),
  };
  if (product.has_leaky_slope()) problem.leaky_slope = product.leaky_slope();
  const HostMatrix& first = swapped ? b : a;
  const HostMatrix& second = swapped ? a : b;
  gemm::Operands host{.a = first.bytes.data(),
                      .lda = first.shape.line_elements(),
                      .b = second.bytes.data(),
                      .ldb = second.shape.line_elements(),
                      .d = const_cast<char*>(result.bytes.data()),
                      .ldd = result.shape.line_elements()};
  if (operands.c.has_value()) {
    host.c = operands.c->bytes.data();
    host.ldc = operands.c->shape.line_elements();
  }
  if (operands.bias.has_value()) {
    problem.bias = swapped ? gemm::BiasAxis::kRows : gemm::BiasAxis::kColumns;
    host.bias = operands.bias->bytes.data();
  }
  return gemm::CompareWithReference(problem, host, gemm::Elements::kDrawn, 2000, 7).worst_ratio;
}

}  // namespace gemmd
