// Runs the gemmctl program against a gemmd program on the host device.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "gemmd/client/matrix.h"
#include "nlohmann/json.hpp"
#include "tests/ctl/process.h"

namespace gemmd::ctl {

class GemmctlTest : public ::testing::Test {
 protected:
  // Starts gemmd on a Unix socket in a directory of the test's own.
  void SetUp() override;
  // Stops it, and expects it to leave well.
  void TearDown() override;

  // Starts another one on the socket AddressOf(name), with these flags. To be stopped by the test.
  std::unique_ptr<Process> StartServer(const std::string& name,
                                       const std::vector<std::string>& flags);
  std::string AddressOf(const std::string& name) const { return "unix:" + Path(name + ".sock"); }

  // Runs gemmctl with the server's address in the environment.
  Ran Gemmctl(std::vector<std::string> arguments);
  // The same, with --json: expects exit status 0 and parses the output.
  nlohmann::json GemmctlJson(std::vector<std::string> arguments);
  std::unique_ptr<Process> Start(std::vector<std::string> arguments);
  // Has a shell run `script`, in which "$@" is gemmctl with these arguments.
  std::unique_ptr<Process> StartShell(const std::string& script,
                                      std::vector<std::string> arguments);

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  const std::string& address() const { return address_; }

  // Writes a .npy file of values in row-major order and returns its path.
  std::string WriteMatrix(const std::string& name, const client::Shape& shape,
                          const std::vector<double>& values);
  // The values of a .npy file in row-major order, and its shape.
  std::vector<double> ReadMatrix(const std::string& path, client::Shape* shape = nullptr);

 private:
  std::vector<std::string> Environment() const;

  std::string directory_;
  std::string address_;
  std::unique_ptr<Process> server_;
  int runs_ = 0;
};

}  // namespace gemmd::ctl
