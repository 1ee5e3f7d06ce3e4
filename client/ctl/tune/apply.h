// Has a server take up tuning tables that were written since it read them.
#pragma once

#include "client/ctl/context.h"

namespace gemmd::ctl {

// Prints what the server has of its tables then. The exit status of the program.
int ApplyTables(const Context& context);

}  // namespace gemmd::ctl
