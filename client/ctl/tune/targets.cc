#include "client/ctl/tune/targets.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "client/ctl/bench_messages.h"
#include "gemm/tuning.h"

namespace gemmd::ctl {
namespace {

namespace bench = gemm::bench;

bench::TypesPattern Exactly(const gemm::Types& types) {
  return {.a = types.a, .b = types.b, .d = types.d, .compute = types.compute};
}

}  // namespace

std::vector<TuneTarget> TargetsOf(const TuneOptions& options) {
  std::vector<TuneTarget> targets;
  for (const bench::Layout& layout : options.layouts) {
    for (const bench::Shape& shape : options.shapes) {
      targets.push_back({.shape = shape, .layout = layout, .types = options.selection.types});
    }
  }
  return targets;
}

absl::StatusOr<std::vector<TuneTarget>> TargetsOf(const client::ListTrafficResponse& traffic) {
  std::map<gemm::TunedProduct, double> seconds;  // all of them plain
  for (const ::gemm::v1::TrafficEntry& entry : traffic.entries()) {
    const absl::StatusOr<gemm::Types> types = FromProto(entry.types());
    if (!types.ok()) return types.status();
    seconds[{.a = types->a,
             .b = types->b,
             .d = types->d,
             .compute = types->compute,
             .trans_a = entry.layout().transpose_a(),
             .trans_b = entry.layout().transpose_b(),
             .m = entry.size().m(),
             .n = entry.size().n(),
             .k = entry.size().k()}] += entry.seconds();
  }
  std::vector<std::pair<double, gemm::TunedProduct>> ordered;
  for (const auto& [product, taken] : seconds) ordered.emplace_back(-taken, product);
  std::sort(ordered.begin(), ordered.end());
  std::vector<TuneTarget> targets;
  for (const auto& [taken, product] : ordered) {
    targets.push_back({.shape = {product.m, product.n, product.k},
                       .layout = {product.trans_a, product.trans_b},
                       .types = {Exactly(product.types())}});
  }
  return targets;
}

std::vector<bench::TypesPattern> TypesOf(const std::vector<TuneTarget>& targets) {
  using Key = std::tuple<std::optional<gemm::DType>, std::optional<gemm::DType>,
                         std::optional<gemm::DType>, std::optional<gemm::Compute>>;
  std::set<Key> seen;
  std::vector<bench::TypesPattern> all;
  for (const TuneTarget& target : targets) {
    for (const bench::TypesPattern& types : target.types) {
      if (seen.emplace(types.a, types.b, types.d, types.compute).second) all.push_back(types);
    }
  }
  return all;
}

}  // namespace gemmd::ctl
