#include "tests/ctl/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace gemmd::ctl {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int OpenForWriting(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error(path + " cannot be written");
  return file;
}

}  // namespace

Process::Process(std::vector<std::string> command, std::string log_prefix,
                 std::vector<std::string> environment)
    : log_prefix_(std::move(log_prefix)) {
  const int out = OpenForWriting(log_prefix_ + ".out");
  const int err = OpenForWriting(log_prefix_ + ".err");
  // Everything that allocates is done before the fork.
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (std::string& word : environment) envp.push_back(word.data());
  for (char** word = environ; *word != nullptr; ++word) envp.push_back(*word);
  envp.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(out);
  close(err);
  if (pid_ < 0) throw std::runtime_error("fork failed");
}

Process::~Process() {
  if (Ended()) return;
  Signal(SIGKILL);
  Wait();
}

void Process::Signal(int signal) { kill(pid_, signal); }

bool Process::Ended() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

Ran Process::Wait() {
  if (!ended_) waitpid(pid_, &status_, 0);
  ended_ = true;
  return {.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_),
          .out = ReadAll(log_prefix_ + ".out"),
          .err = ReadAll(log_prefix_ + ".err")};
}

std::string Process::ErrSoFar() const { return ReadAll(log_prefix_ + ".err"); }

}  // namespace gemmd::ctl
