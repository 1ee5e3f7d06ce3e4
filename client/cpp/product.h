// A product, as a caller describes it, and what comes back.
//
//   D = act(alpha * op(A) * op(B) + beta * C + bias)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "client/cpp/matrix.h"
#include "client/cpp/options.h"
#include "client/cpp/types.h"

namespace gemmd::client {

// A matrix on the server, by id or by name: exactly one of the two.
struct Resident {
  std::string id;
  std::string name;
  // Deletes the matrix once the request has taken hold of it.
  bool release = false;
  // Where known: the server checks it, and the result of a product can be
  // received in place.
  std::optional<Shape> shape;

  static Resident ById(std::string id) { return {.id = std::move(id)}; }
  static Resident ByName(std::string name) { return {.name = std::move(name)}; }
  // By id, with the shape.
  static Resident Of(const MatrixInfo& info);
};

// Uniform on [low, high).
struct Uniform {
  double low = 0;
  double high = 1;
};
struct Normal {
  double mean = 0;
  double stddev = 1;
};
using Distribution = std::variant<Uniform, Normal>;

// Elements drawn on the server: the same bits for the same seed on every device.
struct Generated {
  Shape shape;
  uint64_t seed = 0;
  Distribution distribution = Uniform{};
};

// One input of a product: elements to send, a matrix on the server, or elements
// drawn there.
using Operand = std::variant<MatrixView, Resident, Generated>;

// At most one of name and family; neither: the server picks.
struct KernelChoice {
  // As ListKernels names it, or "auto".
  std::string name;
  // The best kernel of one family, such as "cublaslt" or "host".
  std::string family;
  // Launch parameters by name.
  std::map<std::string, int64_t> params;
};

// How a matrix stays on the server.
struct Keep {
  // 1 to 128 characters of [A-Za-z0-9._/-], unique on the server; empty: known
  // by its id alone.
  std::string name;
  // Deleted this long after its last use; infinite: it stays until deleted.
  absl::Duration ttl = absl::InfiniteDuration();
};

// Where a result goes: at least one of fetch and keep.
struct ResultTo {
  // Bring the elements back.
  bool fetch = true;
  // Into this memory, whose shape must be the result's; left out: into memory
  // that the library allocates.
  std::optional<MutableMatrixView> into;
  // Keep it on the server.
  std::optional<Keep> keep;
};

struct Product {
  Operand a;
  Operand b;
  // m x n, of the result's type and layout. Needs beta, and beta needs it.
  std::optional<Operand> c;
  // 1 x n, of the result's type.
  std::optional<Operand> bias;
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1;
  // What an element of A, or of B, stands for is its value times this.
  double scale_a = 1;
  double scale_b = 1;
  double beta = 0;
  Activation activation = kNoActivation;
  double leaky_slope = 0.01;  // for kLeakyRelu
  // Left out: the type of A, f16 for fp8.
  std::optional<DataType> output_dtype;
  Layout output_layout = kRowMajor;
  ComputeMode compute = kDefaultCompute;
  KernelChoice kernel;
  ResultTo result;
  // The server's own bound from the header's arrival; infinite: the call's
  // deadline alone.
  absl::Duration server_timeout = absl::InfiniteDuration();
};

struct ProductResult {
  // The result, where it was fetched and not into memory of the caller's.
  HostMatrix matrix;
  // What ran, why, and how long each part took. Of a split product the report
  // is that of the job between the transfers.
  ProductReport report;
  // Where the result was kept, if Product::result asked for it.
  std::optional<MatrixInfo> kept;
  // How it went: never kAuto.
  Transport transport = Transport::kUnary;
  // Payload bytes to and from the server.
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  // From the call to its completion, as this client saw it.
  absl::Duration elapsed;
};

// The result's shape where the operands' shapes tell it; nothing where they do
// not (a Resident without a shape). INVALID_ARGUMENT where inner dimensions
// differ or a shape is bad.
absl::StatusOr<std::optional<Shape>> ResultShape(const Product& product);

}  // namespace gemmd::client
