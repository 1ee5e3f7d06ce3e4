#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/catalogue.h"
#include "gemm/quote.h"
#include "server/rpc/calls/queries.h"
#include "server/rpc/codec/benchmark_codec.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/vocabulary.h"
#include "server/rpc/context/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

namespace {

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

}  // namespace

absl::Status ListKernels(ServiceContext& context, const Caller& /*caller*/,
                         const v1::ListKernelsRequest& request, v1::ListKernelsResponse& response) {
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

namespace {

absl::Status ParseRankedTypes(const v1::KernelTypes& types, RankingQuestion& question) {
  const auto a = ParseDataType(types.a(), "types.a");
  if (!a.ok()) return a.status();
  const auto b = ParseOptionalDataType(types.b(), "types.b");
  if (!b.ok()) return b.status();
  const auto output = ParseOptionalDataType(types.output(), "types.output");
  if (!output.ok()) return output.status();
  const auto compute = ParseComputeMode(types.compute(), "types.compute");
  if (!compute.ok()) return compute.status();
  question.a = *a;
  question.b = b->value_or(*a);
  question.output = *output;
  question.compute = *compute;
  return absl::OkStatus();
}

absl::StatusOr<RankingQuestion> ParseQuestion(const v1::RankKernelsRequest& request) {
  RankingQuestion question;
  for (const auto& [name, field] :
       {std::pair(&request.device(), "device"), std::pair(&request.family(), "family")}) {
    if (name->empty()) continue;
    if (absl::Status status = CheckNameBytes(*name, field); !status.ok()) return status;
  }
  question.device = request.device();
  question.family = request.family();
  const auto size = ParseProductSize(request.size(), "size");
  if (!size.ok()) return size.status();
  question.m = size->m;
  question.n = size->n;
  question.k = size->k;
  if (absl::Status status = ParseRankedTypes(request.types(), question); !status.ok()) {
    return status;
  }
  question.trans_a = request.layout().transpose_a();
  question.trans_b = request.layout().transpose_b();
  question.epilogue = request.epilogue();
  question.block_scales = request.block_scales();
  return question;
}

void FillRanked(const RankedKernel& ranked, v1::RankedKernel& out) {
  out.set_name(std::string(ranked.kernel->name));
  out.set_family(std::string(ranked.kernel->family));
  out.mutable_params()->insert(ranked.params.begin(), ranked.params.end());
  out.set_workspace_bytes(ranked.workspace_bytes);
  out.set_deterministic(ranked.kernel->deterministic);
  out.set_row_blocks(ranked.kernel->row_blocks);
  out.set_reason(ranked.reason);
  out.set_estimated_seconds(ranked.estimated_seconds);
  if (ranked.tuned.has_value()) Fill(*ranked.tuned, *out.mutable_tuned_from());
}

}  // namespace

absl::Status RankKernels(ServiceContext& context, const Caller& /*caller*/,
                         const v1::RankKernelsRequest& request, v1::RankKernelsResponse& response) {
  const absl::StatusOr<RankingQuestion> question = ParseQuestion(request);
  if (!question.ok()) return question.status();
  const absl::StatusOr<KernelRanking> ranking = context.engine.RankKernels(*question);
  if (!ranking.ok()) return ranking.status();
  response.set_device(ranking->device);
  Fill(ranking->machine, *response.mutable_machine());
  Fill(ranking->types, *response.mutable_types());
  response.set_rule(ToProto(ranking->rule));
  for (const RankedKernel& kernel : ranking->kernels) FillRanked(kernel, *response.add_kernels());
  return absl::OkStatus();
}

}  // namespace gemmd
