// The subcommands. Each Add function declares one subcommand's options on `app`
// and sets Context::run where that subcommand was chosen. `context` outlives
// `app`'s parsing and the run.
#pragma once

#include "client/ctl/context.h"

namespace CLI {
class App;
}

namespace gemmd::ctl {

void AddMultiply(CLI::App& app, Context& context);
void AddMatrix(CLI::App& app, Context& context);
void AddKernels(CLI::App& app, Context& context);
void AddInfo(CLI::App& app, Context& context);
void AddBench(CLI::App& app, Context& context);
void AddExplain(CLI::App& app, Context& context);
void AddTune(CLI::App& app, Context& context);
void AddLoadTest(CLI::App& app, Context& context);
void AddToken(CLI::App& app, Context& context);
void AddVersion(CLI::App& app, Context& context);

// The subcommands of `gemmctl matrix`.
void AddMatrixPut(CLI::App& matrix, Context& context);
void AddMatrixGet(CLI::App& matrix, Context& context);
void AddMatrixList(CLI::App& matrix, Context& context);
void AddMatrixRm(CLI::App& matrix, Context& context);

}  // namespace gemmd::ctl
