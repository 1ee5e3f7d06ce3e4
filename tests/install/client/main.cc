// A user of the installed client library: multiplies on a server, and checks the
// product.
//
//   client_consumer 127.0.0.1:50051 product.npy

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "gemmd/client/client.h"
#include "gemmd/client/npy.h"

namespace {

using gemmd::client::Client;
using gemmd::client::HostMatrix;

// What the process does on each signal.
std::vector<void (*)(int)> SignalHandlers() {
  std::vector<void (*)(int)> handlers;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) == 0) handlers.push_back(action.sa_handler);
  }
  return handlers;
}

absl::Status CheckProduct(const HostMatrix& product) {
  const std::vector<double> expected = {14, 32, 32, 77};
  if (product.ToDoubles() != expected) return absl::InternalError("the product is wrong");
  return absl::OkStatus();
}

absl::Status Run(const std::string& address, const std::string& path) {
  const auto handlers = SignalHandlers();
  auto client = Client::Connect({.address = address});
  if (!client.ok()) return client.status();
  auto a = HostMatrix::FromDoubles({.rows = 2, .cols = 3}, {1, 2, 3, 4, 5, 6});
  if (!a.ok()) return a.status();
  auto result = (*client)->Multiply({.a = a->view(), .b = a->view(), .transpose_b = true},
                                    {.timeout = absl::Seconds(10)});
  if (!result.ok()) return result.status();
  if (absl::Status status = CheckProduct(result->matrix); !status.ok()) return status;

  if (absl::Status status = WriteNpy(path, result->matrix.view()); !status.ok()) return status;
  auto read = gemmd::client::ReadNpy(path);
  if (!read.ok()) return read.status();
  if (absl::Status status = CheckProduct(*read); !status.ok()) return status;

  if (SignalHandlers() != handlers) return absl::InternalError("the library took a signal");
  std::printf("%s on %s: right\n", result->report.kernel().c_str(),
              result->report.device().c_str());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: client_consumer ADDRESS FILE\n");
    return 2;
  }
  const absl::Status status = Run(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
