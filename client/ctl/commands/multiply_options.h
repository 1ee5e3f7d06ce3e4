// The options of `gemmctl multiply`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/ctl/parsing/operand_spec.h"
#include "gemmd/client/options.h"
#include "gemmd/client/product.h"

namespace CLI {
class App;
}

namespace gemmd::ctl {

// The dimension in which the products of a group differ.
enum class GroupedBy { kM, kN, kK };

struct GroupOption {
  GroupedBy by = GroupedBy::kM;
  std::vector<int64_t> extents;  // of each product; empty: no group
};

struct MultiplyOptions {
  OperandSpec a;
  OperandSpec b;
  std::optional<OperandSpec> c;
  std::optional<OperandSpec> bias;
  std::optional<OperandSpec> scales_a;
  std::optional<OperandSpec> scales_b;
  // Release the resident operands once the product is accepted.
  bool release = false;
  std::optional<client::DataType> npy_dtype;
  // The product without its operands, result and group.
  client::Product product;
  GroupOption group;
  std::string output;  // a .npy file; empty: none
  bool keep = false;
  client::Keep keep_as;
  bool no_stream = false;
  bool verify = false;
  int64_t verify_samples = 4096;
  client::Transport transport = client::Transport::kAuto;

  bool keeps() const { return keep || !keep_as.name.empty(); }
};

// Declares the options on `command`. `options` outlives the parsing.
void DeclareMultiplyOptions(CLI::App& command, MultiplyOptions& options);

// Why the options contradict each other; empty where they do not.
std::string Contradiction(const MultiplyOptions& options);

}  // namespace gemmd::ctl
