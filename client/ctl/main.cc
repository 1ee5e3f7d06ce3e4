// gemmctl: the command-line client of gemmd.
#include <unistd.h>

#include <iostream>

#include "client/ctl/app.h"

int main(int argc, char** argv) {
  return gemmd::ctl::RunGemmctl(argc, argv, std::cout, std::cerr, isatty(STDERR_FILENO) == 1);
}
