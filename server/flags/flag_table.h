// Every flag of the server: one row each.
#pragma once

#include <vector>

#include "server/flags/flag_rows.h"
#include "server/flags/flags.h"

namespace gemmd {

const std::vector<FlagRow>& FlagTable();

}  // namespace gemmd
