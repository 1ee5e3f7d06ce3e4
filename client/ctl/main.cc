// gemmctl: the command-line client of gemmd.
#include <grpc/grpc.h>
#include <unistd.h>

#include <iostream>

#include "client/ctl/app.h"

int main(int argc, char** argv) {
  // Never paired with a shutdown. gRPC joins its threads when its last user
  // goes, and one that still polls a closed connection (its backup poller)
  // wakes up only after 10 s; the process would seem to hang at its end.
  grpc_init();
  return gemmd::ctl::RunGemmctl(argc, argv, std::cout, std::cerr, isatty(STDERR_FILENO) == 1);
}
