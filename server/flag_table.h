// Every flag of the server: one row each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/flags.h"

namespace gemmd {

struct FlagRow {
  std::string name;   // without dashes: "max-jobs"
  std::string group;  // of --help
  std::string kind;   // "SIZE"
  std::string help;
  std::string allowed;  // "1 to 1000"
  // INVALID_ARGUMENT that gives the value and what is allowed.
  std::function<absl::Status(absl::string_view text, Flags& flags)> set;
  // The value as `set` takes it.
  std::function<std::string(const Flags& flags)> get;
};

const std::vector<FlagRow>& FlagTable();

}  // namespace gemmd
