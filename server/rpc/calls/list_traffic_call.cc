#include "absl/strings/str_cat.h"
#include "server/rpc/calls/queries.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

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
