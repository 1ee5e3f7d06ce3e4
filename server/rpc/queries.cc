#include "server/rpc/queries.h"

#include <functional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/catalogue.h"
#include "gemm/quote.h"
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

// A page token is the id that the last page ended with, and what only this server
// can make of it and of the prefix.
std::string TokenOf(absl::string_view id, absl::string_view name_prefix) {
  static const std::string* const kSecret = [] {
    std::random_device random;
    return new std::string(absl::StrCat(random(), "/", random()));
  }();
  const size_t mark = std::hash<std::string>()(absl::StrCat(*kSecret, "/", id, "/", name_prefix));
  return absl::StrCat(id, ".", absl::Hex(mark, absl::kZeroPad16));
}

// The id of a token. INVALID_ARGUMENT for one that TokenOf did not make.
absl::StatusOr<std::string> ParseToken(absl::string_view token, absl::string_view name_prefix) {
  const absl::string_view id = token.substr(0, token.find('.'));
  if (token.empty() || token == TokenOf(id, name_prefix)) return std::string(id);
  return FieldError("page_token", absl::StrCat(gemm::Quoted(token),
                                               "; it must be the next_page_token of an answer of "
                                               "this server to the same name_prefix"));
}

}  // namespace

absl::Status ListMatrices(ServiceContext& context, const v1::ListMatricesRequest& request,
                          v1::ListMatricesResponse& response) {
  const int page_size = request.page_size() == 0 ? kMaxPageSize : request.page_size();
  if (page_size < 1 || page_size > kMaxPageSize) {
    return FieldError("page_size",
                      absl::StrCat(page_size, "; it must be 1 to ", kMaxPageSize, ", or 0"));
  }
  if (!request.name_prefix().empty()) {
    const absl::Status prefix = CheckNameBytes(request.name_prefix(), "name_prefix");
    if (!prefix.ok()) return prefix;
  }
  const absl::StatusOr<std::string> after = ParseToken(request.page_token(), request.name_prefix());
  if (!after.ok()) return after.status();
  absl::StatusOr<MatrixPage> page =
      context.engine.ListMatrices(request.name_prefix(), page_size, *after);
  if (!page.ok()) return page.status();
  for (const MatrixRecord& matrix : page->matrices) Fill(matrix, *response.add_matrices());
  if (!page->next_token.empty()) {
    response.set_next_page_token(TokenOf(page->next_token, request.name_prefix()));
  }
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
    return absl::NotFoundError(absl::StrCat("family: no family ", gemm::Quoted(request.family()),
                                            " here; there are ",
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
