// The launch parameters of the Hopper rows.
#pragma once

#include "gemm/kernel.h"

namespace gemm {

inline constexpr ParamSpec kHopperParams[] = {
    {"group_m", "rows of clusters of a group, whose tiles run column by column", 1, 1024,
     kOwnChoice}};

}  // namespace gemm
