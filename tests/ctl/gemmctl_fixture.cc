#include "tests/ctl/gemmctl_fixture.h"

#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gemmd/client/npy.h"

namespace gemmd::ctl {
namespace {

constexpr absl::Duration kStartTime = absl::Seconds(60);

}  // namespace

void GemmctlTest::SetUp() {
  std::string pattern = (std::filesystem::temp_directory_path() / "gemmctl-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  directory_ = pattern;
  address_ = AddressOf("gemmd");
  server_ = StartServer("gemmd", {"--metrics-address=127.0.0.1:0"});
}

std::unique_ptr<Process> GemmctlTest::StartServer(const std::string& name,
                                                  const std::vector<std::string>& flags) {
  std::vector<std::string> command = {GEMMD_PROGRAM, "--devices=host",
                                      "--address=" + AddressOf(name), "--max-queue-wait=1h"};
  command.insert(command.end(), flags.begin(), flags.end());
  auto server = std::make_unique<Process>(std::move(command), Path(name));
  const absl::Time limit = absl::Now() + kStartTime;
  while (!std::filesystem::exists(Path(name + ".sock"))) {
    if (server->Ended() || absl::Now() > limit) {
      ADD_FAILURE() << name << " does not serve: " << server->ErrSoFar();
      break;
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return server;
}

void GemmctlTest::TearDown() {
  if (server_ != nullptr) {
    server_->Signal(SIGTERM);
    const Ran ran = server_->Wait();
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

// Tables have no bound unless a test sets one.
std::vector<std::string> GemmctlTest::Environment() const {
  return {"GEMMCTL_ADDRESS=" + address_, "COLUMNS="};
}

std::unique_ptr<Process> GemmctlTest::Start(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), GEMMCTL_PROGRAM);
  return std::make_unique<Process>(std::move(arguments), Path("run" + std::to_string(runs_++)),
                                   Environment());
}

std::unique_ptr<Process> GemmctlTest::StartShell(const std::string& script,
                                                 std::vector<std::string> arguments) {
  std::vector<std::string> command = {"/bin/sh", "-c", script, "sh", GEMMCTL_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return std::make_unique<Process>(std::move(command), Path("run" + std::to_string(runs_++)),
                                   Environment());
}

Ran GemmctlTest::Gemmctl(std::vector<std::string> arguments) {
  return Start(std::move(arguments))->Wait();
}

nlohmann::json GemmctlTest::GemmctlJson(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const Ran ran = Gemmctl(std::move(arguments));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << ran.out;
  return json;
}

std::string GemmctlTest::WriteMatrix(const std::string& name, const client::Shape& shape,
                                     const std::vector<double>& values) {
  const auto matrix = client::HostMatrix::FromDoubles(shape, values);
  EXPECT_TRUE(matrix.ok()) << matrix.status();
  const absl::Status written = client::WriteNpy(Path(name), matrix->view());
  EXPECT_TRUE(written.ok()) << written;
  return Path(name);
}

std::vector<double> GemmctlTest::ReadMatrix(const std::string& path, client::Shape* shape) {
  const auto matrix = client::ReadNpy(path);
  EXPECT_TRUE(matrix.ok()) << matrix.status();
  if (!matrix.ok()) return {};
  if (shape != nullptr) *shape = matrix->shape();
  return matrix->ToDoubles();
}

}  // namespace gemmd::ctl
