// The command line of gemmctl as a function, so that tests can call it.
#pragma once

#include <ostream>

#include "client/ctl/exit_code.h"

namespace gemmd::ctl {

// Where results, errors and progress are written.
struct Screen {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
  // The most columns of a table's line on `out`; 0: no bound.
  size_t width = 0;
};

// Parses the command line and runs it. Returns the exit status. If no flag gives
// the address, the environment does.
int RunGemmctl(int argc, const char* const* argv, const Screen& screen);

}  // namespace gemmd::ctl
