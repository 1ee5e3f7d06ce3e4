#include "client/ctl/bench_messages.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/output/render.h"
#include "gemm/dtype.h"

namespace gemmd::ctl {
namespace {

namespace bench = gemm::bench;
namespace v1 = ::gemm::v1;

// Types and compute modes have the same names on both sides.
client::DataType ToProto(const std::optional<gemm::DType>& type) {
  if (!type) return v1::DATA_TYPE_UNSPECIFIED;
  return client::ParseDataType(gemm::Name(*type)).value_or(v1::DATA_TYPE_UNSPECIFIED);
}

client::ComputeMode ToProto(const std::optional<gemm::Compute>& compute) {
  if (!compute) return v1::COMPUTE_MODE_UNSPECIFIED;
  return client::ParseComputeMode(gemm::Name(*compute)).value_or(v1::COMPUTE_MODE_UNSPECIFIED);
}

v1::Generator ToProto(const gemm::GeneratorSpec& inputs) {
  v1::Generator generator;
  generator.set_seed(inputs.seed);
  if (inputs.distribution == gemm::Distribution::kNormal) {
    generator.mutable_normal()->set_mean(inputs.low_or_mean);
    generator.mutable_normal()->set_stddev(inputs.high_or_stddev);
  } else {
    generator.mutable_uniform()->set_low(inputs.low_or_mean);
    generator.mutable_uniform()->set_high(inputs.high_or_stddev);
  }
  return generator;
}

void FillSelection(const bench::Selection& selection, client::BenchmarkRequest& request) {
  request.mutable_kernels()->Assign(selection.kernels.begin(), selection.kernels.end());
  request.mutable_families()->Assign(selection.families.begin(), selection.families.end());
  for (const bench::TypesPattern& pattern : selection.types) {
    Fill(pattern, *request.add_types());
  }
  if (selection.layout) {
    request.mutable_layout()->set_transpose_a(selection.layout->trans_a);
    request.mutable_layout()->set_transpose_b(selection.layout->trans_b);
  }
  for (const auto& [name, values] : selection.params) {
    (*request.mutable_params())[name].mutable_values()->Assign(values.begin(), values.end());
  }
}

void FillRules(const bench::ComparisonRules& rules, client::BenchmarkRequest& request) {
  request.set_warmup(rules.warmup);
  request.set_iterations(rules.iterations);
  request.set_cutoff(rules.cutoff);
  request.set_baselines(rules.baselines);
  request.set_vendor_algorithms(rules.vendor_algorithms);
}

void FillBudget(absl::Duration budget, google::protobuf::Duration& out) {
  const int64_t seconds = absl::IDivDuration(budget, absl::Seconds(1), &budget);
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int32_t>(budget / absl::Nanoseconds(1)));
}

absl::StatusOr<bench::Shape> ShapeAt(int index, const v1::BenchmarkHeader& header) {
  if (index < 0 || index >= header.shapes_size()) {
    return absl::InternalError(
        absl::StrCat("the server speaks of shape ", index, " of ", header.shapes_size()));
  }
  const v1::ProductSize& size = header.shapes(index);
  return bench::Shape{size.m(), size.n(), size.k()};
}

void TakeMeasurement(const v1::BenchmarkMeasurement& from, bench::Row& row) {
  row.measured = true;
  row.seconds = from.median_seconds();
  row.fastest_seconds = from.fastest_seconds();
  row.slowest_seconds = from.slowest_seconds();
  row.iterations = from.iterations();
  row.tflops = from.tflops();
  if (from.has_gain()) row.gain = from.gain();
  if (from.has_relative_to_vendor()) row.of_vendor = from.relative_to_vendor();
  if (from.has_relative_to_cublaslt_best()) row.of_tuned_vendor = from.relative_to_cublaslt_best();
  row.error = {.of_bound = from.max_error_over_bound(),
               .absolute = from.max_absolute_error(),
               .first = from.first_element(),
               .last = from.last_element()};
}

}  // namespace

absl::StatusOr<gemm::Types> FromProto(const v1::KernelTypes& types) {
  const auto a = gemm::ParseDType(client::Name(types.a()));
  const auto b = gemm::ParseDType(client::Name(types.b()));
  const auto d = gemm::ParseDType(client::Name(types.output()));
  const auto compute = gemm::ParseCompute(client::Name(types.compute()));
  if (a && b && d && compute) return gemm::Types{*a, *b, *d, *compute};
  return absl::InternalError(absl::StrCat(
      "the server speaks of types that this gemmctl does not know: ", types.ShortDebugString()));
}

void Fill(const bench::TypesPattern& pattern, v1::KernelTypes& out) {
  out.set_a(ToProto(pattern.a));
  out.set_b(ToProto(pattern.b));
  out.set_output(ToProto(pattern.d));
  out.set_compute(ToProto(pattern.compute));
}

client::BenchmarkRequest ToRequest(const bench::BenchmarkOptions& options,
                                   const std::string& device) {
  client::BenchmarkRequest request;
  request.set_device(device);
  for (const bench::Shape& shape : options.shapes) {
    v1::ProductSize& size = *request.add_shapes();
    size.set_m(shape.m);
    size.set_n(shape.n);
    size.set_k(shape.k);
  }
  FillSelection(options.selection, request);
  FillRules(options.rules, request);
  *request.mutable_inputs() = ToProto(options.inputs);
  if (options.budget != absl::InfiniteDuration()) {
    FillBudget(options.budget, *request.mutable_budget());
  }
  return request;
}

bench::Metadata MetadataOf(const v1::BenchmarkHeader& header) {
  bench::Metadata metadata;
  for (const v1::MetadataEntry& entry : header.metadata()) {
    metadata.emplace_back(entry.key(), entry.value());
  }
  metadata.emplace_back("gemmd", absl::StrCat(header.version(), ", commit ", header.commit()));
  metadata.emplace_back("its device", header.device());
  return metadata;
}

absl::StatusOr<bench::Progress> FromProto(const v1::BenchmarkProgress& progress,
                                          const v1::BenchmarkHeader& header) {
  const absl::StatusOr<bench::Shape> shape = ShapeAt(progress.shape_index(), header);
  if (!shape.ok()) return shape.status();
  return bench::Progress{.shape = static_cast<size_t>(progress.shape_index()),
                         .shapes = static_cast<size_t>(header.shapes_size()),
                         .at = *shape,
                         .step = progress.step(),
                         .elapsed = FromProto(progress.elapsed()),
                         .left = progress.has_remaining() ? FromProto(progress.remaining())
                                                          : absl::InfiniteDuration()};
}

absl::StatusOr<std::vector<bench::Row>> FromProto(const v1::BenchmarkRows& rows,
                                                  const v1::BenchmarkHeader& header) {
  const absl::StatusOr<bench::Shape> shape = ShapeAt(rows.shape_index(), header);
  if (!shape.ok()) return shape.status();
  std::vector<bench::Row> converted;
  for (const v1::BenchmarkRow& from : rows.rows()) {
    const absl::StatusOr<gemm::Types> types = FromProto(from.types());
    if (!types.ok()) return types.status();
    bench::Row row = {.shape = *shape,
                      .types = *types,
                      .layout = {from.layout().transpose_a(), from.layout().transpose_b()},
                      .kernel = from.kernel(),
                      .family = from.family(),
                      .params = from.params(),
                      .baseline = from.baseline(),
                      .note = from.note()};
    if (from.has_measurement()) TakeMeasurement(from.measurement(), row);
    converted.push_back(std::move(row));
  }
  return converted;
}

}  // namespace gemmd::ctl
