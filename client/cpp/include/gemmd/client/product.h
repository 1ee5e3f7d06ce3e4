// A product as the caller describes it, and its result.
//
//   D = act(alpha * op(A) * op(B) + beta * C + bias)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "gemmd/client/matrix.h"
#include "gemmd/client/options.h"
#include "gemmd/client/types.h"

namespace gemmd::client {

// A matrix on the server, by id or by name: exactly one of the two.
struct Resident {
  std::string id;
  std::string name;
  // Deletes the matrix once the server has accepted the request.
  bool release = false;
  // Optional. If set, the server checks it, and the result of a product can be
  // received in place.
  std::optional<Shape> shape = {};
  // The name is one of the shared names, not of the caller's own. Means nothing with an id.
  bool shared = false;
  // Optional. The matrix must have this version (MatrixInfo.version): ABORTED for another.
  std::optional<uint64_t> version = {};
  // Optional. The matrix must belong to this caller: NOT_FOUND for another's. A shared name
  // belongs to whoever puts it first.
  std::optional<std::string> owner = {};

  static Resident ById(std::string id) { return {.id = std::move(id), .name = ""}; }
  static Resident ByName(std::string name) { return {.id = "", .name = std::move(name)}; }
  static Resident BySharedName(std::string name) {
    return {.id = "", .name = std::move(name), .shared = true};
  }
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

// Elements generated on the server: the same bits for the same seed on every device.
struct Generated {
  Shape shape;
  uint64_t seed = 0;
  Distribution distribution = Uniform{};
};

// One input of a product: elements to send, a matrix on the server, or elements
// generated there.
using Operand = std::variant<MatrixView, Resident, Generated>;

// At most one of name and family. Neither: the server picks.
struct KernelChoice {
  // A name from ListKernels, or "auto".
  std::string name;
  // The server picks the best kernel of this family, such as "cublaslt" or "host".
  std::string family;
  // Launch parameters by name.
  std::map<std::string, int64_t> params;
};

// How a matrix stays on the server.
struct Keep {
  // 1 to 128 characters of [A-Za-z0-9._/-], unique among the caller's own names or
  // among the shared ones. Empty: the matrix has only its id.
  std::string name;
  // The matrix is deleted this long after its last use. Infinite: it stays until it is deleted. A
  // matrix without a name then lives as long as this client, which renews it, and for the server's
  // --unnamed-ttl after its last use.
  absl::Duration ttl = absl::InfiniteDuration();
  // Every caller may read the matrix; its owner and administrators may delete it.
  bool shared = false;
  // Once complete, the matrix takes the name from the one that has it, in one step, and that
  // one is deleted. Until then, and if the call fails on the server, the old one stays. A
  // call that failed here alone (CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE) may have
  // replaced it.
  bool replace = false;
  // Only with `replace`, and only if the name's matrix has this version; 0: if there is
  // none. Otherwise ABORTED.
  std::optional<uint64_t> if_version = {};
};

// Where a result goes: at least one of fetch and keep.
struct ResultTo {
  // Download the elements.
  bool fetch = true;
  // Memory for the elements; its shape must be the result's. Left out: the library
  // allocates. It may overlap operands: then the library allocates, too, and copies in the end.
  std::optional<MutableMatrixView> into;
  // Keep it on the server.
  std::optional<Keep> keep;
};

// The size of one product of a group.
struct ProductSize {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

// The operands that all products of a batch or a group share.
struct SharedOperands {
  bool a = false;
  bool b = false;
  bool c = false;
  bool bias = false;
};

struct Product {
  Operand a;
  Operand b;
  // m x n, of the result's type and layout. Set exactly when beta is not 0.
  std::optional<Operand> c;
  // 1 x n, of the result's type. A batch has batch_count x n, row-major. A group has a row for
  // each product; a group in n has 1 x the sum of n.
  std::optional<Operand> bias;
  // Scales of the blocks of fp8 operands, in f32. Those of op(A) are m x ceil(k / 128), for blocks
  // of 1 x 128, or ceil(m / 128) x ceil(k / 128), for blocks of 128 x 128. Those of op(B) are
  // ceil(k / 128) x n, for blocks of 128 x 1, or ceil(k / 128) x ceil(n / 128). Both or neither; no
  // batch, and no group. UNIMPLEMENTED if the server takes none.
  std::optional<Operand> scales_a;
  std::optional<Operand> scales_b;
  // A batch: so many products of one shape, up to the server's Limits.max_batch_count. Each
  // operand that is not shared, and the result, has the matrices of all products one after the
  // other, stacked in their lines. Lines are the rows of a row-major matrix and the columns of a
  // column-major one. UNIMPLEMENTED if the server takes no batches.
  int32_t batch_count = 1;
  // A group: the sizes of up to Limits.max_group_count products, in the order in which their
  // matrices are stacked, in the same way. They may differ in one dimension, which may be 0 for
  // some. Matrices with that dimension must have it as their lines: m with a row-major A and
  // result, n with a column-major B and result, k with a column-major A (or transpose_a) and a
  // row-major B. No batch at the same time. UNIMPLEMENTED if the server takes no groups.
  std::vector<ProductSize> group;
  SharedOperands shared;
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1;
  // Elements of A (of B) are multiplied by this.
  double scale_a = 1;
  double scale_b = 1;
  double beta = 0;
  Activation activation = kNoActivation;
  double leaky_slope = 0.01;  // for kLeakyRelu
  // Left out: the type of A, or f16 where A is fp8, or s32 where it is s8.
  std::optional<DataType> output_dtype;
  Layout output_layout = kRowMajor;
  ComputeMode compute = kDefaultCompute;
  KernelChoice kernel;
  // At least as strict as this, and as the server's policy: see ProductReport::check.
  Verify verify = kVerifyByPolicy;
  ResultTo result;
  // The server ends the job this long after its header has arrived. Infinite: only
  // the deadline of the call applies.
  absl::Duration server_timeout = absl::InfiniteDuration();
};

struct ProductResult {
  // The result, where it was fetched into memory of the library.
  HostMatrix matrix;
  // Which kernel ran, why, and how long each phase took. For a split product, it is the report of
  // the job between the transfers. For a product in blocks of rows, it is about all blocks: m is
  // the whole product's, and kernel, transpose and check times are sums. tflops is computed from
  // these. The other phases overlap, and each is the longest that a block had.
  ProductReport report;
  // The resident result, if Product::result asked for it.
  std::optional<MatrixInfo> kept;
  // The transport that was used; never kAuto.
  Transport transport = Transport::kUnary;
  // Payload bytes to and from the server.
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  // From the call to its completion, measured in this client.
  absl::Duration elapsed;
};

// The result's shape, of a batch or a group that of all products, from the shapes of the
// operands; nullopt where one is unknown (a Resident without a shape). INVALID_ARGUMENT where the
// inner dimensions differ, a shape is bad, or one does not fit the batch or the group.
absl::StatusOr<std::optional<Shape>> ResultShape(const Product& product);

}  // namespace gemmd::client
