// gemmctl: the command-line client of gemmd.
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "client/ctl/app.h"
#include "files/output_stream.h"
#include "files/part_files.h"
#include "kernels/bench/report/text_layout.h"
#include "proto/lock_order.h"

int main(int argc, char** argv) {
  // Errors are printed once, in our own words, unless gRPC's log is asked for.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  gemmd::LeaveLockOrderUnchecked();
  gemmd::files::PrepareProcess();
  gemmd::files::OutputStream out(STDOUT_FILENO, "standard output");
  const int code = gemmd::ctl::RunGemmctl(argc, argv,
                                          {.out = out,
                                           .err = std::cerr,
                                           .err_is_terminal = isatty(STDERR_FILENO) == 1,
                                           .width = gemm::bench::TerminalWidth(STDOUT_FILENO)});
  const absl::Status printed = out.Close();
  if (printed.ok()) return code;
  if (out.unread() && code == gemmd::ctl::kExitOk) gemmd::files::EndUnread();
  std::cerr << "gemmctl: " << printed << '\n';
  return code == gemmd::ctl::kExitOk ? gemmd::ctl::kExitFailed : code;
}
