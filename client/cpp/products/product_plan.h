// The plan of one product: the operands that are sent, and the transport.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/v1/gemm.pb.h"
#include "gemmd/client/matrix.h"
#include "gemmd/client/options.h"
#include "gemmd/client/product.h"

namespace gemmd::client {

// The limits that a plan depends on.
struct PlanLimits {
  uint64_t chunk_bytes = kMiB;
  uint64_t unary_threshold_bytes = 0;
  uint64_t stripe_threshold_bytes = 0;
  // The largest messages that the server and this client accept.
  uint64_t server_message_bytes = 0;
  uint64_t client_message_bytes = 0;
  int channels = 1;
  // Whether the caller has the role that keeping matrices needs, as stripes do.
  bool may_keep = true;
  // Products of a batch, and of a group; 0: the server takes none.
  int32_t max_batch_count = 0;
  int32_t max_group_count = 0;
  int32_t scale_block = 0;  // 0: the server takes no block scales
  // Devices of the server, healthy or not: an unhealthy one may be healthy later.
  int devices = 1;
  // 0: products do not go in blocks of rows.
  int row_blocks_per_channel = 0;
};

// An operand whose elements this client sends.
struct SentOperand {
  ::gemm::v1::OperandRole role;
  MatrixView view;
  // True: uploaded over all channels before the product. False: sent with it.
  bool striped = false;
};

// Rows [first, first + rows) of A, of C and of D.
struct RowBlock {
  int64_t first = 0;
  int64_t rows = 0;

  friend bool operator==(const RowBlock&, const RowBlock&) = default;
};

struct ProductPlan {
  // As on the wire, without the sources of the operands in `sent`.
  ::gemm::v1::Product product;
  std::vector<SentOperand> sent;  // in the order a, b, c, bias, scales
  Transport transport = Transport::kUnary;
  bool fetch = true;
  // Kept on the server and then downloaded over all channels.
  bool striped_result = false;
  // Rows of A, of C and of D if the transport is kRowBlocks. The other sent operands are uploaded
  // first. Those marked as striped are striped only if the server's kernel promises no row blocks.
  std::vector<RowBlock> row_blocks;
  // Set where it is known before the server's answer.
  std::optional<Shape> result_shape;
  std::optional<MutableMatrixView> into;
  // `into` overlaps an operand in `sent`. Then nothing is written there before the product has
  // ended well: rows of the operand may still have to be sent, or all of it again.
  bool into_overlaps = false;
  uint64_t payload_bytes = 0;
};

// Makes the plan, and checks what can be checked without the server.
// INVALID_ARGUMENT names the field, the value and the bound.
absl::StatusOr<ProductPlan> PlanProduct(const Product& product, Transport transport,
                                        const PlanLimits& limits);

// Tiles of kernels are of this many rows or of a divisor, mostly: a block of whole tiles computes
// nothing in vain.
inline constexpr int64_t kRowsOfATile = 128;

// At most `blocks` blocks, in order, without gaps, as equal as whole tiles allow. All but the last
// consist of whole tiles. rows and blocks are at least 1.
std::vector<RowBlock> PlanRowBlocks(int64_t rows, int64_t blocks);

// Whether the operand's rows go with those of D.
bool GoesByRows(::gemm::v1::OperandRole role);

// The operand of `product` that `role` names.
::gemm::v1::Operand* MutableOperand(::gemm::v1::Product& product, ::gemm::v1::OperandRole role);

// OK, or INVALID_ARGUMENT, which names `field`, for a null pointer or a bad shape.
absl::Status CheckView(const MatrixView& view, absl::string_view field);

}  // namespace gemmd::client
