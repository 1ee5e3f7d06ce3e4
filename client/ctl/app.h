// The command line of gemmctl as a function, so that tests can call it.
#pragma once

#include <ostream>

#include "client/ctl/exit_code.h"

namespace gemmd::ctl {

// Where results go, and errors and progress.
struct Screen {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
  // That lines of tables on `out` may have; 0: no bound.
  size_t width = 0;
};

// Parses and runs. Returns the exit status. Addresses come from the environment
// where no flag names one.
int RunGemmctl(int argc, const char* const* argv, const Screen& screen);

}  // namespace gemmd::ctl
