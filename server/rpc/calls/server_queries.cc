#include "absl/strings/str_cat.h"
#include "server/rpc/calls/queries.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/vocabulary.h"
#include "server/rpc/context/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

namespace {

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

namespace {

constexpr int kDefaultTraffic = 100;

void FillTraffic(const TrafficEntry& entry, v1::TrafficEntry& out) {
  const gemm::TunedProduct& product = entry.product;
  out.mutable_size()->set_m(product.m);
  out.mutable_size()->set_n(product.n);
  out.mutable_size()->set_k(product.k);
  Fill(product.types(), *out.mutable_types());
  out.mutable_layout()->set_transpose_a(product.trans_a);
  out.mutable_layout()->set_transpose_b(product.trans_b);
  out.set_epilogue(product.epilogue == gemm::EpilogueClass::kFull);
  out.set_count(entry.count);
  out.set_seconds(entry.seconds);
}

}  // namespace

absl::Status ListTraffic(ServiceContext& context, const Caller& /*caller*/,
                         const v1::ListTrafficRequest& request, v1::ListTrafficResponse& response) {
  const EngineStats stats = context.engine.Stats();
  const int limit = request.limit() == 0 ? kDefaultTraffic : request.limit();
  if (limit < 1 || limit > stats.traffic.limit) {
    return FieldError("limit",
                      absl::StrCat(limit, "; it must be 1 to ", stats.traffic.limit, ", or 0"));
  }
  for (const TrafficEntry& entry : context.engine.ListTraffic(static_cast<size_t>(limit))) {
    FillTraffic(entry, *response.add_entries());
  }
  response.set_dropped(stats.traffic_dropped);
  return absl::OkStatus();
}

}  // namespace gemmd
