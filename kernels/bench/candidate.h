// What is to be measured: kernels of the catalogue, each with the types, the
// layout and the launch parameters that it is to run with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/kernel.h"
#include "kernels/bench/types_pattern.h"

namespace gemm::bench {

// How the operands are stored: A as m x k or, transposed, k x m; B likewise.
struct Layout {
  bool trans_a = false;
  bool trans_b = false;

  friend constexpr bool operator==(const Layout& x, const Layout& y) {
    return x.trans_a == y.trans_a && x.trans_b == y.trans_b;
  }
};

// "nn", "nt", "tn", "tt".
absl::string_view LayoutName(const Layout& layout);
absl::StatusOr<Layout> ParseLayout(absl::string_view name);

// What of the catalogue is wanted. Every list that is empty takes all.
struct Selection {
  std::vector<std::string> kernels;  // names, or patterns with * and ?
  std::vector<std::string> families;
  // Empty: of each kernel the combination that it lists first.
  std::vector<TypesPattern> types;
  // Empty: of each kernel the one that it reads without a transpose.
  std::optional<Layout> layout;
  // A candidate for each value; kernels without the parameter take no notice.
  std::map<std::string, std::vector<int64_t>> params;
};

struct Candidate {
  const Kernel* kernel = nullptr;
  Types types{};
  Layout layout;
  LaunchParams params{};
};

// The kernels of the wanted names and families, in the order of the catalogue.
// NOT_FOUND where a name or a family fits none.
absl::StatusOr<std::vector<const Kernel*>> SelectKernels(const Selection& selection);

// The candidates that `device` can run, in the order of the catalogue. An error
// where a name, a family or a value fits no kernel, or nothing is left.
absl::StatusOr<std::vector<Candidate>> SelectCandidates(const Selection& selection,
                                                        const DeviceCaps& device);

// The vendor's kernel that others of these types are compared with: cuBLAS, where
// it does not take them cuBLASLt's first choice, on the host OpenBLAS. Null where
// there is none.
const Kernel* FindPeer(const Types& types, const DeviceCaps& device);

// "swizzle=2048 group_m=8"; "own" where the kernel chooses.
std::string ParamsText(const Candidate& candidate);

// Whether all of `name` fits `pattern`, in which * is any run of characters and
// ? any one.
bool GlobMatches(absl::string_view pattern, absl::string_view name);

}  // namespace gemm::bench
