// The command line of gemmctl as a function, so that tests can call it.
#pragma once

#include <ostream>

#include "client/ctl/exit_code.h"

namespace gemmd::ctl {

// Parses and runs; results go to `out`, errors and progress to `err`. Returns
// the exit status. Addresses come from the environment where no flag names one.
int RunGemmctl(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
               bool err_is_terminal);

}  // namespace gemmd::ctl
