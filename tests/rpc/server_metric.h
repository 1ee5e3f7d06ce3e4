// Reads /metrics of a server's program.
#pragma once

#include <functional>
#include <string>

#include "tests/rpc/gemmd_process.h"

namespace gemmd {

// The value of a series; -1 where it is not there.
double Metric(const ServingAt& server, const std::string& series);

// Whether `condition` holds within a minute.
bool Eventually(const std::function<bool()>& condition);

}  // namespace gemmd
