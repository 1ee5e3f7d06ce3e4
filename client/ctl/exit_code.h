// What gemmctl's exit status means; --help says the same.
#pragma once

namespace gemmd::ctl {

enum ExitCode : int {
  kExitOk = 0,
  // The server or a file said no; the sentence is on stderr.
  kExitFailed = 1,
  // The command line was wrong.
  kExitUsage = 2,
  // A product is not what the oracle says it must be.
  kExitWrongProduct = 3,
};

}  // namespace gemmd::ctl
