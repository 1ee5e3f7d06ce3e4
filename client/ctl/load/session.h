// A load test that is ready to run: connections, operands and callers.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/context.h"
#include "client/ctl/load/load_options.h"
#include "client/ctl/load/load_report.h"
#include "client/ctl/load/runner.h"
#include "client/ctl/load/workload.h"
#include "gemmd/client/client.h"

namespace gemmd::ctl {

class LoadSession {
 public:
  // Connects, makes the operands, and sends one request of each kind, so that a test that the
  // server cannot serve does not start. `context` and `options` outlive the session.
  static absl::StatusOr<std::unique_ptr<LoadSession>> Prepare(const Context& context,
                                                              const LoadOptions& options);

  // Runs a test with the first `concurrency` callers, at `rate` (0: closed loop), and shows a line
  // each second. Returns after every request has ended.
  LoadResult Measure(double rate, int concurrency);

  const client::ServerInfo& server() const { return client_->server(); }

 private:
  LoadSession(const Context& context, const LoadOptions& options)
      : context_(context), options_(options) {}

  const Context& context_;
  const LoadOptions& options_;
  // In the order of construction: callers use the workload, which uses the clients.
  std::unique_ptr<client::Client> client_, patient_;
  std::unique_ptr<Workload> workload_;
  std::vector<std::unique_ptr<Caller>> callers_;
};

}  // namespace gemmd::ctl
