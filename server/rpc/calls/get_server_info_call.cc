#include "server/rpc/calls/queries.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/vocabulary.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

void FillBenchmark(const BenchmarkUnderWay& benchmark, v1::RunningBenchmark& out) {
  out.set_caller(benchmark.caller);
  out.set_device(benchmark.device);
  out.set_subject(benchmark.subject);
  Fill(benchmark.age, *out.mutable_age());
  out.set_ending(benchmark.ending);
}

void FillLimits(const ServiceContext& context, v1::Limits& out) {
  const EngineOptions& options = context.engine.options();
  out.set_max_message_bytes(context.limits.max_message_bytes);
  out.set_max_job_bytes(options.max_job_bytes);
  out.set_max_admitted_bytes(options.max_admitted_bytes);
  out.set_max_jobs(options.max_jobs);
  out.set_max_jobs_per_stream(context.limits.max_jobs_per_stream);
  out.set_store_bytes(options.store_bytes);
  out.set_max_matrices(options.max_matrices);
  out.set_chunk_bytes(options.staging_block_bytes);
  out.set_max_batch_count(static_cast<int32_t>(gemm::kMaxBatch));
  out.set_max_group_count(static_cast<int32_t>(gemm::kMaxGroup));
  out.set_scale_block(static_cast<int32_t>(gemm::kScaleBlock));
  Fill(options.unnamed_ttl, *out.mutable_unnamed_ttl());
  const BenchmarkLimits& benchmark = context.benchmarks.limits();
  Fill(benchmark.time, *out.mutable_benchmark_limit());
  out.set_benchmark_memory_bytes(benchmark.memory_bytes);
}

}  // namespace

absl::Status GetServerInfo(ServiceContext& context, const Caller& caller,
                           const v1::GetServerInfoRequest&, v1::GetServerInfoResponse& response) {
  response.set_version(context.version);
  response.set_commit(context.commit);
  Fill(context.started, *response.mutable_started());
  const EngineStats stats = context.engine.Stats();
  for (size_t i = 0; i < stats.devices.size(); ++i) {
    Fill(*context.engine.devices()[i], stats.devices[i], *response.add_devices());
  }
  FillLimits(context, *response.mutable_limits());
  Fill(stats, *response.mutable_load());
  for (const BenchmarkUnderWay& benchmark : context.benchmarks.UnderWay()) {
    FillBenchmark(benchmark, *response.mutable_load()->add_benchmarks());
  }
  response.mutable_load()->set_benchmark_running(response.load().benchmarks_size() > 0);
  response.set_verify(ToProto(context.engine.options().verify));
  response.mutable_caller()->set_name(caller.name);
  for (std::string& role : caller.roles.Names()) {
    response.mutable_caller()->add_roles(std::move(role));
  }
  return absl::OkStatus();
}

}  // namespace gemmd
