// gemmctl info: the server's version, devices, limits and load.
#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/format.h"
#include "client/ctl/output/render.h"
#include "client/ctl/output/table.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

std::string Size(uint64_t bytes) { return BytesText(static_cast<double>(bytes)); }

std::string BenchmarkText(const client::ServerInfo& info) {
  const absl::Duration limit = FromProto(info.limits().benchmark_limit());
  if (limit == absl::ZeroDuration()) return "none taken";
  return absl::StrCat(info.load().benchmark_running() ? "running" : "none runs", "; at most ",
                      absl::FormatDuration(limit), " and ",
                      Size(info.limits().benchmark_memory_bytes()));
}

// "kept for 1h after their last use; 3 matrices expired so far"
std::string UnnamedText(const client::ServerInfo& info) {
  const absl::Duration ttl = FromProto(info.limits().unnamed_ttl());
  const std::string kept =
      ttl == absl::ZeroDuration()
          ? "kept until they are deleted"
          : absl::StrCat("kept for ", absl::FormatDuration(ttl), " after their last use");
  return absl::StrCat(kept, "; ", info.load().matrices_expired(), " matrices expired so far");
}

// "alice's, for 3.21 min on cuda:0: shape 3/125 ..."
std::string RunningText(const ::gemm::v1::RunningBenchmark& benchmark) {
  return absl::StrCat(benchmark.ending() ? "ends, " : "",
                      benchmark.caller().empty() ? "" : benchmark.caller() + "'s, ", "for ",
                      DurationText(FromProto(benchmark.age())), " on ", benchmark.device(), ": ",
                      benchmark.subject());
}

void PrintTables(const Context& context, const client::ServerInfo& info) {
  const auto& limits = info.limits();
  const auto& load = info.load();
  Table summary = SummaryTable();
  summary.Add({"version", absl::StrCat(info.version(), " (commit ", info.commit(), ")")});
  summary.Add({"started", TimeText(FromProto(info.started()))});
  summary.Add({"jobs", absl::StrCat(load.jobs(), " of ", limits.max_jobs(), ", ", load.queued(),
                                    " of them queued; at most ", limits.max_jobs_per_stream(),
                                    " a stream")});
  summary.Add({"admitted",
               absl::StrCat(Size(load.admitted_bytes()), " of ", Size(limits.max_admitted_bytes()),
                            "; at most ", Size(limits.max_job_bytes()), " a job")});
  summary.Add(
      {"store", absl::StrCat(load.matrices(), " of ", limits.max_matrices(), " matrices, ",
                             Size(load.store_used_bytes()), " of ", Size(limits.store_bytes()))});
  summary.Add({"unnamed", UnnamedText(info)});
  summary.Add({"checks", info.verify() == client::kVerifyByPolicy
                             ? "unknown"
                             : std::string(client::Name(info.verify()))});
  summary.Add({"messages", absl::StrCat("at most ", Size(limits.max_message_bytes()),
                                        "; result chunks of ", Size(limits.chunk_bytes()))});
  summary.Add({"batches", limits.max_batch_count() > 0
                              ? absl::StrCat("at most ", limits.max_batch_count(), " products")
                              : "none"});
  summary.Add({"groups", limits.max_group_count() > 0
                             ? absl::StrCat("at most ", limits.max_group_count(), " products")
                             : "none"});
  summary.Add({"benchmark", BenchmarkText(info)});
  for (const auto& benchmark : load.benchmarks()) summary.Add({"", RunningText(benchmark)});
  if (!info.caller().name().empty()) {
    summary.Add({"you", absl::StrCat(info.caller().name(), ", with the roles ",
                                     absl::StrJoin(info.caller().roles(), ", "))});
  }
  summary.Print(context.out, context.width);
  context.out << '\n';
  Table devices({{"DEVICE"},
                 {"MODEL", Align::kLeft, Fit::kWrap},
                 {"CAPABILITY", Align::kLeft, Fit::kDrop},
                 {"MEMORY", Align::kRight},
                 {"USED", Align::kRight},
                 {"STREAMS", Align::kRight},
                 {"ESTIMATES", Align::kLeft, Fit::kDrop},
                 {"HEALTH", Align::kLeft, Fit::kWrap}});
  for (const auto& device : info.devices()) {
    devices.Add({device.name(), device.model(), device.compute_capability(),
                 Size(device.memory_bytes()), Size(device.memory_used_bytes()),
                 absl::StrCat(device.streams()),
                 device.estimates().empty() ? "none" : device.estimates(),
                 device.healthy() ? "healthy" : device.unhealthy_reason()});
  }
  devices.Print(context.out, context.width);
}

int Run(const Context& context) {
  auto client = Connect(context);
  if (!client.ok()) return Fail(context, client.status());
  const auto info = (*client)->GetServerInfo(Call(context));
  if (!info.ok()) return Fail(context, info.status());
  if (context.global.json) {
    PrintJson(context, ToJson(*info));
  } else {
    PrintTables(context, *info);
  }
  return kExitOk;
}

}  // namespace

void AddInfo(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("info", "Show the server's version, devices, limits and current load");
  command->footer(
      "Examples:\n"
      "  gemmctl info\n"
      "  gemmctl --address unix:/run/gemmd.sock info --json");
  command->callback([&context] { context.run = [&context] { return Run(context); }; });
}

}  // namespace gemmd::ctl
