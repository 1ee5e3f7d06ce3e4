// A caller, and what it may do.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gemmd {

enum class CallerRole : uint8_t { kCall, kMatrices, kBenchmark, kMetrics, kAdmin };

inline constexpr CallerRole kCallerRoles[] = {CallerRole::kCall, CallerRole::kMatrices,
                                              CallerRole::kBenchmark, CallerRole::kMetrics,
                                              CallerRole::kAdmin};

// "call", "matrices", "benchmark", "metrics" or "admin".
absl::string_view Name(CallerRole role);

class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<CallerRole> roles) {
    for (const CallerRole role : roles) Add(role);
  }
  static constexpr RoleSet All() {
    RoleSet all;
    for (const CallerRole role : kCallerRoles) all.Add(role);
    return all;
  }

  constexpr void Add(CallerRole role) { bits_ |= Bit(role); }
  constexpr bool Has(CallerRole role) const { return (bits_ & Bit(role)) != 0; }
  // In the order of kCallerRoles.
  std::vector<std::string> Names() const;

  friend constexpr bool operator==(RoleSet, RoleSet) = default;

 private:
  static constexpr uint8_t Bit(CallerRole role) {
    return static_cast<uint8_t>(1u << static_cast<uint8_t>(role));
  }

  uint8_t bits_ = 0;
};

// "call,matrices", or "all". INVALID_ARGUMENT quotes nothing of the text.
absl::StatusOr<RoleSet> ParseRoles(absl::string_view text);

// The role of this name, or INVALID_ARGUMENT with those that exist.
absl::StatusOr<CallerRole> ParseCallerRole(absl::string_view text);

// Who makes a call.
struct Caller {
  std::string name;  // empty where the server asks nobody
  RoleSet roles;
};

// Shared by the calls of a caller; never changes.
using CallerPtr = std::shared_ptr<const Caller>;

}  // namespace gemmd
