// The server's program, run from a test.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace gemmd {

// Flags of a small server on the host device and free ports, with JSON logs.
std::vector<std::string> HostServerFlags();

// The addresses that a server says it serves.
struct ServingAt {
  std::string address;
  std::string metrics;
};

// The program, with both outputs in one pipe. Killed where it still runs; a failure of the test
// where it has ended unasked.
class GemmdProcess {
 public:
  // `in_child` runs after the fork: async-signal-safe calls only. `program`: another one
  // than the server's.
  explicit GemmdProcess(std::vector<std::string> arguments,
                        const std::function<void()>& in_child = nullptr,
                        const std::string& program = "");
  ~GemmdProcess();
  GemmdProcess(const GemmdProcess&) = delete;
  GemmdProcess& operator=(const GemmdProcess&) = delete;

  // Reads up to the line that says it; empty at the end of output.
  ServingAt AwaitServing();
  // One line of output; empty at its end.
  std::string ReadLine();
  std::string ReadAll();
  // From now on the output is not read.
  void CloseOutput();

  pid_t pid() const { return pid_; }
  void Signal(int number);
  // The wait status.
  int Wait();
  // The exit code; -1 where a signal ended it.
  int ExitCode();

 private:
  pid_t pid_;
  int output_;
  bool asked_to_end_ = false;
  bool waited_ = false;
};

}  // namespace gemmd
