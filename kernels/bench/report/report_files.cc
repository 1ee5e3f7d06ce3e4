#include "kernels/bench/report/report_files.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "kernels/bench/result/auto_share.h"
#include "kernels/bench/result/summary.h"
#include "kernels/bench/spec/selection.h"
#include "nlohmann/json.hpp"

namespace gemm::bench {
namespace {

using Json = nlohmann::ordered_json;
using gemmd::files::OutputFile;

// JSON is UTF-8: bytes of a command line that are not become U+FFFD.
std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// JSON has no infinity.
Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// The fields that identify a kernel's figures.
template <class Figures>
Json Identity(const Figures& x) {
  return {{"kernel", x.kernel},          {"family", x.family},
          {"types", TypesName(x.types)}, {"layout", LayoutName(x.layout)},
          {"parameters", x.params},      {"baseline", x.baseline}};
}

// Adds the comparison with a baseline: the mean as `name`, and the other figures as fields whose
// names begin with `name`.
void AddOfBaseline(Json& json, const std::string& name, const std::optional<OfBaseline>& of) {
  json[name] = of ? Json(of->mean) : Json();
  json[name + "_by_time"] = of ? Json(of->by_time) : Json();
  json[name + "_shapes"] = of ? Json(of->shapes) : Json();
  json[name + "_below_0.97"] = of ? Json(of->lost) : Json();
}
static_assert(kLostShare == 0.97, "the name of a field says so");

// The one list of a row's fields, for both kinds of file.
Json RowFields(const Row& row) {
  Json json = {{"m", row.shape.m}, {"n", row.shape.n}, {"k", row.shape.k}};
  json.update(Identity(row));
  const bool measured = row.measured;
  const auto figure = [&](const Json& value) { return measured ? value : Json(); };
  json["ms"] = figure(row.seconds * 1e3);
  json["fastest_ms"] = figure(row.fastest_seconds * 1e3);
  json["slowest_ms"] = figure(row.slowest_seconds * 1e3);
  json["iterations"] = figure(row.iterations);
  json["tflops"] = figure(row.tflops);
  json["gain"] = OrNull(row.gain);
  json["of_vendor"] = OrNull(row.of_vendor);
  json["of_cublaslt_best"] = OrNull(row.of_tuned_vendor);
  json["joules"] = OrNull(row.joules);
  json["joules_of_baseline"] = OrNull(row.joules_of_baseline);
  json["first"] = figure(Finite(row.error.first));
  json["last"] = figure(Finite(row.error.last));
  json["error_of_bound"] = figure(Finite(row.error.of_bound));
  json["absolute_error"] = figure(Finite(row.error.absolute));
  json["right"] = figure(row.right());
  json["note"] = row.note;
  return json;
}

Json MeansFields(const KernelMeans& means) {
  Json json = Identity(means);
  json["shapes"] = means.shapes;
  json["missing"] = means.missing;
  json["tflops"] = means.tflops;
  AddOfBaseline(json, "of_vendor", means.of_vendor);
  AddOfBaseline(json, "of_cublaslt_best", means.of_tuned_vendor);
  json["joules"] = OrNull(means.joules);
  json["joules_of_baseline"] = OrNull(means.joules_of_baseline);
  json["worst_error_of_bound"] = Finite(means.worst_of_bound);
  return json;
}

// RFC 4180: quoted where it has to be.
std::string CsvCell(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return Dump(value, -1);
  const auto text = value.get<std::string>();
  if (text.find_first_of(",\"\n") == text.npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

absl::StatusOr<CsvWriter> CsvWriter::Create(const std::string& path) {
  absl::StatusOr<OutputFile> file = OutputFile::Open(path, OutputFile::Visible::kAsItGrows);
  if (!file.ok()) return file.status();
  return CsvWriter(*std::move(file));
}

absl::Status CsvWriter::Begin() {
  std::vector<std::string> names;
  const Json fields = RowFields({});
  for (const auto& field : fields.items()) names.push_back(field.key());
  return file_.Write(absl::StrJoin(names, ",") + "\n");
}

absl::Status CsvWriter::Write(absl::Span<const Row> rows) {
  std::string lines;
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const Json& value : RowFields(row)) cells.push_back(CsvCell(value));
    absl::StrAppend(&lines, absl::StrJoin(cells, ","), "\n");
  }
  return file_.Write(lines);
}

std::string ToJson(const Metadata& metadata, absl::Span<const Row> rows) {
  Json json = {{"metadata", Json::object()},
               {"rows", Json::array()},
               {"kernels", Json::array()},
               {"families", Json::array()}};
  for (const auto& [label, value] : metadata) json["metadata"][label] = value;
  for (const Row& row : rows) json["rows"].push_back(RowFields(row));
  for (const KernelMeans& means : SummariseKernels(rows)) {
    json["kernels"].push_back(MeansFields(means));
  }
  for (const FamilyMeans& family : SummariseFamilies(rows)) {
    Json fields = {{"family", family.best.family},
                   {"best", MeansFields(family.best)},
                   {"per_shape_tflops", family.per_shape_tflops}};
    AddOfBaseline(fields, "per_shape_of_vendor", family.per_shape_of_vendor);
    AddOfBaseline(fields, "per_shape_of_cublaslt_best", family.per_shape_of_tuned_vendor);
    json["families"].push_back(std::move(fields));
  }
  for (const AutoShare& share : SummariseAuto(rows)) {
    json["auto"].push_back({{"types", TypesName(share.types)},
                            {"layout", LayoutName(share.layout)},
                            {"shapes", share.shapes},
                            {"of_best", share.mean},
                            {"of_best_by_time", share.by_time}});
  }
  return Dump(json, 1) + "\n";
}

}  // namespace gemm::bench
