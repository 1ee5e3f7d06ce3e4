#include "server/rpc/queries.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/catalogue.h"
#include "server/rpc/replies.h"
#include "server/rpc/requests.h"
#include "server/rpc/status.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

constexpr int kMaxPageSize = 1000;

// The devices that run the kernel, or why none does.
void FillAvailability(const gemm::Kernel& kernel, const Engine& engine, v1::KernelInfo& out) {
  for (const auto& device : engine.devices()) {
    const absl::Status status = gemm::CheckDevice(kernel, device->info().caps);
    if (status.ok()) {
      out.add_devices(device->info().name);
    } else if (out.unavailable_reason().empty()) {
      out.set_unavailable_reason(std::string(status.message()));
    }
  }
  if (out.devices_size() > 0) out.clear_unavailable_reason();
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
  const BenchmarkLimits& benchmark = context.benchmarks.limits();
  Fill(benchmark.time, *out.mutable_benchmark_limit());
  out.set_benchmark_memory_bytes(benchmark.memory_bytes);
}

}  // namespace

absl::Status ListMatrices(ServiceContext& context, const v1::ListMatricesRequest& request,
                          v1::ListMatricesResponse& response) {
  const int page_size = request.page_size() == 0 ? kMaxPageSize : request.page_size();
  if (page_size < 1 || page_size > kMaxPageSize) {
    return FieldError("page_size",
                      absl::StrCat(page_size, "; it must be 1 to ", kMaxPageSize, ", or 0"));
  }
  absl::StatusOr<MatrixPage> page =
      context.engine.ListMatrices(request.name_prefix(), page_size, request.page_token());
  if (!page.ok()) return page.status();
  for (const MatrixRecord& matrix : page->matrices) Fill(matrix, *response.add_matrices());
  response.set_next_page_token(std::move(page->next_token));
  return absl::OkStatus();
}

absl::Status DeleteMatrix(ServiceContext& context, const v1::DeleteMatrixRequest& request,
                          v1::DeleteMatrixResponse& response) {
  const absl::StatusOr<MatrixKey> key = ParseKey(request.matrix(), "matrix");
  if (!key.ok()) return key.status();
  const absl::StatusOr<MatrixRecord> matrix = context.engine.DeleteMatrix(*key);
  if (!matrix.ok()) return matrix.status();
  Fill(*matrix, *response.mutable_matrix());
  return absl::OkStatus();
}

absl::Status ListKernels(ServiceContext& context, const v1::ListKernelsRequest& request,
                         v1::ListKernelsResponse& response) {
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (!request.family().empty() && kernel->family != request.family()) continue;
    v1::KernelInfo& out = *response.add_kernels();
    Fill(*kernel, out);
    FillAvailability(*kernel, context.engine, out);
  }
  if (response.kernels_size() == 0 && !request.family().empty()) {
    return absl::NotFoundError(absl::StrCat("family: no family '", request.family(),
                                            "' here; there are ",
                                            absl::StrJoin(gemm::Families(), ", ")));
  }
  return absl::OkStatus();
}

absl::Status GetServerInfo(ServiceContext& context, const v1::GetServerInfoRequest&,
                           v1::GetServerInfoResponse& response) {
  response.set_version(context.version);
  response.set_commit(context.commit);
  Fill(context.started, *response.mutable_started());
  const EngineStats stats = context.engine.Stats();
  for (size_t i = 0; i < stats.devices.size(); ++i) {
    Fill(*context.engine.devices()[i], stats.devices[i], *response.add_devices());
  }
  FillLimits(context, *response.mutable_limits());
  Fill(stats, *response.mutable_load());
  response.mutable_load()->set_benchmark_running(context.benchmarks.running());
  return absl::OkStatus();
}

}  // namespace gemmd
