// An operand as given on the command line.
#pragma once

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemmd/client/product.h"
#include "gemmd/client/types.h"

namespace gemmd::ctl {

// Its description in --help.
inline constexpr const char* kOperandHelp =
    "FILE.npy, @NAME, shared:[OWNER:]NAME or id:ID of a resident matrix, or "
    "random:ROWSxCOLS:DTYPE[:SEED[:DISTRIBUTION[:LAYOUT]]] generated on the server, "
    "with the distribution uniform[,LOW,HIGH] or normal[,MEAN,STDDEV]; by default uniform on "
    "[0, 1), or on [-128, 128) for s8";

// All that s8 holds: of [0, 1) it would be 0 and 1 alone.
inline constexpr client::Uniform kWholeOfS8{.low = -128, .high = 128};

struct NpyFile {
  std::string path;
};

using OperandSpec = std::variant<NpyFile, client::Resident, client::Generated>;

// INVALID_ARGUMENT names the wrong word and what is allowed.
absl::StatusOr<OperandSpec> ParseOperandSpec(absl::string_view text);

// A resident matrix: "@NAME", "shared:NAME", "shared:OWNER:NAME" for that caller's alone,
// "id:ID", or a bare NAME.
absl::StatusOr<client::Resident> ParseResident(absl::string_view text);

// A name to keep a matrix under: 1 to 128 of [A-Za-z0-9._/-]. An empty word is taken: of an option
// it is refused with a better sentence.
absl::StatusOr<std::string> ParseNewName(absl::string_view text);

// Parse the contract's names; the error lists them.
absl::StatusOr<client::DataType> ParseDataTypeName(absl::string_view text);
absl::StatusOr<client::Layout> ParseLayoutName(absl::string_view text);
absl::StatusOr<client::Activation> ParseActivationName(absl::string_view text);
absl::StatusOr<client::ComputeMode> ParseComputeName(absl::string_view text);
absl::StatusOr<client::Verify> ParseVerifyName(absl::string_view text);

}  // namespace gemmd::ctl
