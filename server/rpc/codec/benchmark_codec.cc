#include "server/rpc/codec/benchmark_codec.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "kernels/bench/spec/shape.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/requests.h"
#include "server/rpc/codec/vocabulary.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

namespace bench = gemm::bench;
namespace v1 = gemm::v1;

constexpr size_t kMaxShapes = 256;
// What is worked out on the host for comparison takes some lines of k; the
// matrices' bytes stay far from overflow.
constexpr int64_t kMaxDimension = int64_t{1} << 24;
constexpr size_t kMaxKernels = 256;
constexpr size_t kMaxFamilies = 64;
constexpr size_t kMaxTypes = 64;
constexpr size_t kMaxParams = 16;
constexpr size_t kMaxValues = 64;
constexpr size_t kMaxCombinations = 256;
constexpr absl::Duration kShortestBudget = absl::Milliseconds(1);

std::string At(absl::string_view list, int index) { return absl::StrCat(list, "[", index, "]"); }

absl::Status CheckCount(absl::string_view field, size_t count, size_t most) {
  if (count <= most) return absl::OkStatus();
  return FieldError(field, absl::StrCat(count, " of them; a benchmark takes up to ", most));
}

template <typename Value>
absl::Status Ranged(absl::string_view field, bool given, Value value, Value least, Value most,
                    Value& target) {
  if (!given) return absl::OkStatus();
  if (!(value >= least && value <= most)) {
    return FieldError(field, absl::StrCat(value, "; it must be ", least, " to ", most));
  }
  target = value;
  return absl::OkStatus();
}

absl::Status CheckDimension(int64_t value, absl::string_view field) {
  if (value >= 1 && value <= kMaxDimension) return absl::OkStatus();
  return FieldError(field, absl::StrCat(value, "; it must be 1 to ", kMaxDimension));
}

absl::StatusOr<bench::TypesPattern> ParseTypes(const v1::KernelTypes& types,
                                               const std::string& field) {
  const auto a = ParseOptionalDataType(types.a(), absl::StrCat(field, ".a"));
  if (!a.ok()) return a.status();
  const auto b = ParseOptionalDataType(types.b(), absl::StrCat(field, ".b"));
  if (!b.ok()) return b.status();
  const auto d = ParseOptionalDataType(types.output(), absl::StrCat(field, ".output"));
  if (!d.ok()) return d.status();
  const auto compute = ParseComputeMode(types.compute(), absl::StrCat(field, ".compute"));
  if (!compute.ok()) return compute.status();
  return bench::TypesPattern{.a = *a, .b = *b, .d = *d, .compute = *compute};
}

// Reads the fields of a request one after another, keeping the first error.
class BenchmarkParser {
 public:
  explicit BenchmarkParser(const v1::BenchmarkRequest& request) : request_(request) {}

  absl::StatusOr<BenchmarkSpec> Parse() {
    absl::Status status;
    if (!request_.device().empty()) status = CheckNameBytes(request_.device(), "device");
    spec_.device = request_.device();
    if (status.ok()) status = Shapes();
    if (status.ok()) status = Names();
    if (status.ok()) status = Types();
    if (status.ok()) status = Params();
    if (status.ok()) status = Rules();
    if (status.ok()) status = InputsAndBudget();
    if (!status.ok()) return status;
    return std::move(spec_);
  }

 private:
  absl::Status Shapes() {
    if (!request_.suite().empty()) {
      if (absl::Status name = CheckNameBytes(request_.suite(), "suite"); !name.ok()) return name;
      const absl::StatusOr<const bench::Suite*> suite = bench::FindSuite(request_.suite());
      if (!suite.ok()) return suite.status();
      spec_.shapes = (*suite)->shapes;
    }
    const size_t count = spec_.shapes.size() + static_cast<size_t>(request_.shapes_size());
    if (count == 0) return FieldError("shapes", "none, and no suite; a benchmark needs one");
    if (absl::Status status = CheckCount("shapes", count, kMaxShapes); !status.ok()) return status;
    for (int i = 0; i < request_.shapes_size(); ++i) {
      const absl::StatusOr<bench::Shape> shape =
          ParseProductSize(request_.shapes(i), At("shapes", i));
      if (!shape.ok()) return shape.status();
      spec_.shapes.push_back(*shape);
    }
    return absl::OkStatus();
  }

  absl::Status Names() {
    bench::Selection& selection = spec_.selection;
    selection.kernels.assign(request_.kernels().begin(), request_.kernels().end());
    selection.families.assign(request_.families().begin(), request_.families().end());
    absl::Status status = CheckCount("kernels", selection.kernels.size(), kMaxKernels);
    if (status.ok()) status = CheckCount("families", selection.families.size(), kMaxFamilies);
    for (int i = 0; status.ok() && i < request_.kernels_size(); ++i) {
      status = CheckNameBytes(request_.kernels(i), At("kernels", i));
    }
    for (int i = 0; status.ok() && i < request_.families_size(); ++i) {
      status = CheckNameBytes(request_.families(i), At("families", i));
    }
    return status;
  }

  absl::Status Types() {
    const auto count = static_cast<size_t>(request_.types_size());
    if (absl::Status status = CheckCount("types", count, kMaxTypes); !status.ok()) return status;
    for (int i = 0; i < request_.types_size(); ++i) {
      const auto pattern = ParseTypes(request_.types(i), At("types", i));
      if (!pattern.ok()) return pattern.status();
      spec_.selection.types.push_back(*pattern);
    }
    if (request_.has_layout()) {
      spec_.selection.layout = {request_.layout().transpose_a(), request_.layout().transpose_b()};
    }
    return absl::OkStatus();
  }

  absl::Status Params() {
    absl::Status status = CheckCount("params", request_.params().size(), kMaxParams);
    size_t combinations = 1;
    for (const auto& [name, given] : request_.params()) {
      if (status.ok()) status = CheckNameBytes(name, "a name of params");
      if (!status.ok()) return status;
      const auto& values = given.values();
      const std::string field = absl::StrCat("params[", gemm::Quoted(name), "].values");
      if (values.empty()) return FieldError(field, "none; give at least 1");
      status = CheckCount(field, static_cast<size_t>(values.size()), kMaxValues);
      combinations *= static_cast<size_t>(values.size());
      if (status.ok() && combinations > kMaxCombinations) {
        status = FieldError("params", absl::StrCat("at least ", combinations,
                                                   " combinations of values; a benchmark takes "
                                                   "up to ",
                                                   kMaxCombinations));
      }
      spec_.selection.params[name].assign(values.begin(), values.end());
    }
    return status;
  }

  absl::Status Rules() {
    bench::ComparisonRules& rules = spec_.rules;
    const v1::BenchmarkRequest& r = request_;
    absl::Status status = Ranged("warmup", r.has_warmup(), r.warmup(), 0, 1000, rules.warmup);
    status.Update(
        Ranged("iterations", r.has_iterations(), r.iterations(), 1, 100'000, rules.iterations));
    status.Update(Ranged("cutoff", r.has_cutoff(), r.cutoff(), 1.0, 1e9, rules.cutoff));
    status.Update(Ranged("vendor_algorithms", r.has_vendor_algorithms(), r.vendor_algorithms(), 0,
                         100, rules.vendor_algorithms));
    if (r.has_baselines()) rules.baselines = r.baselines();
    return status;
  }

  absl::Status InputsAndBudget() {
    if (request_.has_inputs()) {
      const auto inputs = ParseGenerator(request_.inputs(), std::nullopt, "inputs");
      if (!inputs.ok()) return inputs.status();
      spec_.inputs = *inputs;
    }
    if (request_.has_budget()) {
      const auto budget = ParseDuration(request_.budget(), kShortestBudget, "budget");
      if (!budget.ok()) return budget.status();
      spec_.budget = *budget;
    }
    return absl::OkStatus();
  }

  const v1::BenchmarkRequest& request_;
  BenchmarkSpec spec_;
};

void FillMeasurement(const bench::Row& row, v1::BenchmarkMeasurement& out) {
  out.set_median_seconds(row.seconds);
  out.set_fastest_seconds(row.fastest_seconds);
  out.set_slowest_seconds(row.slowest_seconds);
  out.set_iterations(row.iterations);
  out.set_tflops(row.tflops);
  if (row.gain) out.set_gain(*row.gain);
  if (row.of_vendor) out.set_relative_to_vendor(*row.of_vendor);
  if (row.of_tuned_vendor) out.set_relative_to_cublaslt_best(*row.of_tuned_vendor);
  out.set_max_error_over_bound(row.error.of_bound);
  out.set_max_absolute_error(row.error.absolute);
  out.set_first_element(row.error.first);
  out.set_last_element(row.error.last);
}

}  // namespace

absl::StatusOr<bench::Shape> ParseProductSize(const v1::ProductSize& size,
                                              const std::string& field) {
  const bench::Shape shape = {size.m(), size.n(), size.k()};
  absl::Status status = CheckDimension(shape.m, absl::StrCat(field, ".m"));
  if (status.ok()) status = CheckDimension(shape.n, absl::StrCat(field, ".n"));
  if (status.ok()) status = CheckDimension(shape.k, absl::StrCat(field, ".k"));
  if (!status.ok()) return status;
  return shape;
}

absl::StatusOr<BenchmarkSpec> ParseBenchmark(const v1::BenchmarkRequest& request) {
  return BenchmarkParser(request).Parse();
}

void Fill(const BenchmarkOutline& outline, v1::BenchmarkHeader& out) {
  out.set_device(outline.device);
  for (const auto& [key, value] : outline.metadata) {
    v1::MetadataEntry& entry = *out.add_metadata();
    entry.set_key(key);
    entry.set_value(value);
  }
  out.set_vendor(outline.vendor);
  for (const bench::Shape& shape : outline.shapes) {
    v1::ProductSize& size = *out.add_shapes();
    size.set_m(shape.m);
    size.set_n(shape.n);
    size.set_k(shape.k);
  }
  out.set_candidates(static_cast<int32_t>(outline.candidates));
  Fill(outline.machine, *out.mutable_machine());
  Fill(outline.budget, *out.mutable_budget());
}

void Fill(const bench::Progress& progress, v1::BenchmarkProgress& out) {
  out.set_shape_index(static_cast<int32_t>(progress.shape));
  out.set_step(progress.step);
  Fill(progress.elapsed, *out.mutable_elapsed());
  if (progress.left != absl::InfiniteDuration()) Fill(progress.left, *out.mutable_remaining());
}

void Fill(const bench::Row& row, v1::BenchmarkRow& out) {
  out.set_kernel(row.kernel);
  out.set_family(row.family);
  Fill(row.types, *out.mutable_types());
  out.mutable_layout()->set_transpose_a(row.layout.trans_a);
  out.mutable_layout()->set_transpose_b(row.layout.trans_b);
  out.set_params(row.params);
  out.set_baseline(row.baseline);
  out.set_note(row.note);
  if (row.measured) FillMeasurement(row, *out.mutable_measurement());
}

void Fill(const BenchmarkTotals& totals, v1::BenchmarkEnd& out) {
  Fill(totals.elapsed, *out.mutable_elapsed());
  out.set_concurrent_jobs(totals.jobs);
}

}  // namespace gemmd
