// Other programs, run from a test.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace gemmd::ctl {

struct Ran {
  int exit_code = -1;  // 128 + the signal where one ended it
  std::string out;
  std::string err;
};

// A program that runs until it ends or this object does, with its output in two
// files beside `log_prefix`.
class Process {
 public:
  // `environment` holds NAME=VALUE words that are added to this program's own.
  Process(std::vector<std::string> command, std::string log_prefix,
          std::vector<std::string> environment = {});
  // Kills what still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int signal);
  bool Ended();
  Ran Wait();
  // The output so far.
  std::string ErrSoFar() const;

 private:
  std::string log_prefix_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace gemmd::ctl
