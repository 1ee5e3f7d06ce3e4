#include "tests/rpc/gemmd_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace gemmd {

std::vector<std::string> HostServerFlags() {
  return {"--devices=host",        "--device-memory-bytes=64MiB",  "--staging-bytes=4MiB",
          "--address=127.0.0.1:0", "--staging-block-bytes=128KiB", "--metrics-address=127.0.0.1:0",
          "--log-format=json",     "--max-queue-wait=1h"};
}

GemmdProcess::GemmdProcess(std::vector<std::string> arguments,
                           const std::function<void()>& in_child, const std::string& program) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  arguments.insert(arguments.begin(), program.empty() ? GEMMD_BINARY : program);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (in_child != nullptr) in_child();
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  output_ = ends[0];
}

GemmdProcess::~GemmdProcess() {
  if (!waited_) {
    int status = 0;
    const bool ended = waitpid(pid_, &status, WNOHANG) == pid_;
    if (ended && !asked_to_end_) {
      ADD_FAILURE() << "the server ended by itself, with wait status " << status << "; it wrote:\n"
                    << ReadAll();
    } else if (!ended) {
      kill(pid_, SIGKILL);
      Wait();
    }
  }
  CloseOutput();
}

ServingAt GemmdProcess::AwaitServing() {
  for (;;) {
    const std::string text = ReadLine();
    if (text.empty()) return {};
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_object() && line["msg"] == "serving") return {line["address"], line["metrics"]};
  }
}

std::string GemmdProcess::ReadLine() {
  std::string line;
  char c;
  while (read(output_, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

std::string GemmdProcess::ReadAll() {
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(output_, buffer, sizeof(buffer))) > 0;) text.append(buffer, got);
  return text;
}

void GemmdProcess::CloseOutput() {
  if (output_ >= 0) close(output_);
  output_ = -1;
}

void GemmdProcess::Signal(int number) {
  asked_to_end_ |= number != SIGHUP;
  kill(pid_, number);
}

int GemmdProcess::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  waited_ = true;
  return status;
}

int GemmdProcess::ExitCode() {
  const int status = Wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace gemmd
