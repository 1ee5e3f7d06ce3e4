#include "server/rpc/calls/reload_tuning_call.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace gemmd {

namespace v1 = gemm::v1;

namespace {

void FillLoad(const TuningLoad& load, v1::ReloadTuningResponse& out) {
  out.set_entries(static_cast<int64_t>(load.entries));
  out.set_used(static_cast<int64_t>(load.used));
  out.set_other_versions(static_cast<int64_t>(load.other_versions));
  out.set_skipped(static_cast<int64_t>(load.skipped.size()));
  const size_t shown = std::min(load.skipped.size(), kMaxSkippedNames);
  for (size_t i = 0; i < shown; ++i) out.add_skipped_kernels(load.skipped[i]);
}

}  // namespace

ReloadTuningCall* ReloadTuningCall::Begin(ServiceContext& service,
                                          grpc::CallbackServerContext* call,
                                          v1::ReloadTuningResponse* response) {
  auto reload = std::make_shared<ReloadTuningCall>(service, call, response);
  ReloadTuningCall* const raw = reload.get();
  raw->GoLive([&service, &reload] {
    service.engine.ReloadTuning(
        [reload](const absl::StatusOr<TuningLoad>& load) { reload->OnRead(load); });
    return absl::OkStatus();
  });
  return raw;
}

void ReloadTuningCall::BeginDrain() {
  {
    MutexLock lock(mutex_);
    if (outcome_.has_value()) return;
    outcome_ = absl::UnavailableError("the server is draining: it reads no tuning tables");
  }
  Advance();
}

void ReloadTuningCall::OnCancelled() {
  MutexLock lock(mutex_);
  if (!outcome_.has_value()) outcome_ = WhyEnded();
}

void ReloadTuningCall::OnRead(const absl::StatusOr<TuningLoad>& load) {
  {
    MutexLock lock(mutex_);
    if (outcome_.has_value()) return;  // the response is gone
    if (load.ok()) FillLoad(*load, *response_);
    outcome_ = load.status();
  }
  Advance();
}

}  // namespace gemmd
