// The exit statuses of gemmctl, as in --help.
#pragma once

namespace gemmd::ctl {

enum ExitCode : int {
  kExitOk = 0,
  // An error of the server or of a file; the message is on stderr.
  kExitFailed = 1,
  // The command line was wrong.
  kExitUsage = 2,
  // A product failed its verification.
  kExitWrongProduct = 3,
  // A load test did not hold its objectives, or is slower than the one it was compared with.
  kExitVerdict = 4,
};

}  // namespace gemmd::ctl
