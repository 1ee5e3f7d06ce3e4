#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/catalogue.h"
#include "gemm/quote.h"
#include "server/rpc/calls/queries.h"
#include "server/rpc/codec/replies.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

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

}  // namespace gemmd
