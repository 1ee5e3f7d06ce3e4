#include "client/ctl/output/render.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/ctl/output/format.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

template <typename Value>
std::string NameOf(Value value) {
  return std::string(client::Name(value));
}

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

std::string ParamsText(const google::protobuf::Map<std::string, int64_t>& params) {
  std::string text;
  for (const auto& [name, value] : params) {
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", value);
  }
  return text;
}

std::string ExpiryText(const client::MatrixInfo& info) {
  return info.has_expires() ? TimeText(FromProto(info.expires())) : "never";
}

// "a" of OPERAND_ROLE_A.
std::string OperandText(::gemm::v1::OperandRole role) {
  return absl::AsciiStrToLower(
      absl::StripPrefix(::gemm::v1::OperandRole_Name(role), "OPERAND_ROLE_"));
}

// "passed, 0.12 of the bound", with all that an operator would want to know.
std::string CheckText(const ::gemm::v1::ResultCheck& check) {
  if (check.result() == ::gemm::v1::CHECK_RESULT_UNSPECIFIED) {
    return absl::StrCat("not checked: ", check.not_checked());
  }
  std::string text =
      absl::StrCat(NameOf(check.result()), ", ", NumberText(check.of_bound()), " of the bound");
  if (check.before_activation()) absl::StrAppend(&text, ", before the activation");
  if (check.uncovered_rows() > 0) {
    absl::StrAppend(&text, ", ", check.uncovered_rows(), " rows not covered");
  }
  if (!check.failed_kernel().empty()) {
    absl::StrAppend(&text, "; the product of ", check.failed_kernel(), " was replaced");
  }
  return text;
}

Json CheckJson(const ::gemm::v1::ResultCheck& check) {
  return {
      {"result", NameOf(check.result())},         {"of_bound", check.of_bound()},
      {"uncovered_rows", check.uncovered_rows()}, {"before_activation", check.before_activation()},
      {"failed_kernel", check.failed_kernel()},   {"not_checked", check.not_checked()}};
}

Json BenchmarksJson(const gemm::v1::Load& load) {
  Json benchmarks = Json::array();
  for (const auto& benchmark : load.benchmarks()) {
    benchmarks.push_back({{"caller", benchmark.caller()},
                          {"device", benchmark.device()},
                          {"subject", benchmark.subject()},
                          {"age_seconds", absl::ToDoubleSeconds(FromProto(benchmark.age()))},
                          {"ending", benchmark.ending()}});
  }
  return benchmarks;
}

Json DeviceJson(const gemm::v1::DeviceInfo& device) {
  Json json = {{"name", device.name()},
               {"model", device.model()},
               {"compute_capability", device.compute_capability()},
               {"memory_bytes", device.memory_bytes()},
               {"memory_used_bytes", device.memory_used_bytes()},
               {"streams", device.streams()},
               {"healthy", device.healthy()},
               {"estimates", device.estimates()}};
  if (!device.healthy()) json["unhealthy_reason"] = device.unhealthy_reason();
  return json;
}

}  // namespace

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

PhaseDurations PhasesOf(const client::ProductReport& report) {
  const auto& phases = report.phases();
  PhaseDurations durations;
  durations[kReceive] = FromProto(phases.receive());
  durations[kQueue] = FromProto(phases.queue());
  durations[kHostToDevice] = FromProto(phases.host_to_device());
  durations[kKernel] = FromProto(phases.kernel());
  durations[kDeviceToHost] = FromProto(phases.device_to_host());
  durations[kSend] = FromProto(phases.send());
  durations[kTotal] = FromProto(phases.total());
  return durations;
}

Json ToJson(const client::Shape& shape) {
  return {{"rows", shape.rows},
          {"cols", shape.cols},
          {"dtype", NameOf(shape.dtype)},
          {"layout", NameOf(shape.layout)}};
}

Json ToJson(const client::ProductReport& report) {
  Json params = Json::object();
  for (const auto& [name, value] : report.params()) params[name] = value;
  Json phases = Json::object();
  const PhaseDurations durations = PhasesOf(report);
  for (size_t i = 0; i < kPhaseCount; ++i) {
    phases[kPhaseNames[i]] = absl::ToDoubleSeconds(durations[i]);
  }
  Json copies = Json::array();
  for (const auto& copy : report.copies()) {
    copies.push_back({{"operand", OperandText(copy.operand())},
                      {"from_device", copy.from_device()},
                      {"bytes", copy.bytes()},
                      {"reused", copy.reused()},
                      {"peer_to_peer", copy.peer_to_peer()}});
  }
  Json json = {{"kernel", report.kernel()},
               {"reason", report.reason()},
               {"rule", RuleText(report.rule())},
               {"params", params},
               {"device", report.device()},
               {"m", report.m()},
               {"n", report.n()},
               {"k", report.k()},
               {"batch_count", std::max(1, report.batch_count())},
               {"group_count", report.group_count()},
               {"jobs_in_launch", std::max(1, report.jobs_in_launch())},
               {"result", ToJson(client::FromProto(report.result_shape()))},
               {"compute", NameOf(report.compute())},
               {"phase_seconds", phases},
               {"transpose_seconds", absl::ToDoubleSeconds(FromProto(report.phases().transpose()))},
               {"copies", copies},
               {"device_to_device_seconds",
                absl::ToDoubleSeconds(FromProto(report.phases().device_to_device()))},
               {"tflops", report.tflops()}};
  if (report.has_tuned_from()) json["tuned_from"] = ToJson(report.tuned_from());
  if (report.has_check()) {
    json["check"] = CheckJson(report.check());
    json["check_seconds"] = absl::ToDoubleSeconds(FromProto(report.phases().check()));
  }
  return json;
}

Json ToJson(const ::gemm::v1::TunedFrom& from) {
  return {{"m", from.size().m()},
          {"n", from.size().n()},
          {"k", from.size().k()},
          {"seconds", from.seconds()},
          {"other_versions", from.other_versions()},
          {"other_epilogue", from.other_epilogue()}};
}

Json ToJson(const client::MatrixInfo& info) {
  Json json = {{"id", info.id()},
               {"name", info.name()},
               {"shape", ToJson(client::FromProto(info.shape()))},
               {"bytes", info.bytes()},
               {"resident_bytes", info.resident_bytes()},
               {"device", info.device()},
               {"created", Rfc3339(FromProto(info.created()))},
               {"in_use", info.in_use()},
               {"owner", info.owner()},
               {"shared", info.shared()},
               {"version", info.version()}};
  if (info.has_expires()) json["expires"] = Rfc3339(FromProto(info.expires()));
  return json;
}

Json ToJson(const client::KernelInfo& kernel) {
  Json types = Json::array();
  for (const auto& row : kernel.types()) {
    types.push_back({{"a", NameOf(row.a())},
                     {"b", NameOf(row.b())},
                     {"output", NameOf(row.output())},
                     {"compute", NameOf(row.compute())}});
  }
  Json params = Json::array();
  for (const auto& param : kernel.params()) {
    params.push_back({{"name", param.name()},
                      {"summary", param.summary()},
                      {"min", param.min()},
                      {"max", param.max()},
                      {"default", param.default_value()}});
  }
  Json devices = Json::array();
  for (const auto& device : kernel.devices()) devices.push_back(device);
  Json json = {{"name", kernel.name()},
               {"family", kernel.family()},
               {"summary", kernel.summary()},
               {"types", types},
               {"params", params},
               {"tile_m", kernel.tile_m()},
               {"tile_n", kernel.tile_n()},
               {"tile_k", kernel.tile_k()},
               {"stages", kernel.stages()},
               {"threads", kernel.threads()},
               {"shared_memory_bytes", kernel.shared_memory_bytes()},
               {"deterministic", kernel.deterministic()},
               {"batches", kernel.batches()},
               {"row_blocks", kernel.row_blocks()},
               {"block_scales", kernel.block_scales()},
               {"groups", kernel.groups()},
               {"devices", devices}};
  if (kernel.devices().empty()) json["unavailable_reason"] = kernel.unavailable_reason();
  return json;
}

Json ToJson(const client::ServerInfo& info) {
  Json devices = Json::array();
  for (const auto& device : info.devices()) devices.push_back(DeviceJson(device));
  const auto& limits = info.limits();
  const auto& load = info.load();
  return {{"version", info.version()},
          {"commit", info.commit()},
          {"started", Rfc3339(FromProto(info.started()))},
          {"devices", devices},
          {"limits",
           {{"max_message_bytes", limits.max_message_bytes()},
            {"max_job_bytes", limits.max_job_bytes()},
            {"max_admitted_bytes", limits.max_admitted_bytes()},
            {"max_jobs", limits.max_jobs()},
            {"max_jobs_per_stream", limits.max_jobs_per_stream()},
            {"store_bytes", limits.store_bytes()},
            {"max_matrices", limits.max_matrices()},
            {"chunk_bytes", limits.chunk_bytes()},
            {"benchmark_seconds", absl::ToDoubleSeconds(FromProto(limits.benchmark_limit()))},
            {"benchmark_memory_bytes", limits.benchmark_memory_bytes()},
            {"max_batch_count", limits.max_batch_count()},
            {"max_group_count", limits.max_group_count()},
            {"scale_block", limits.scale_block()},
            {"unnamed_ttl_seconds", absl::ToDoubleSeconds(FromProto(limits.unnamed_ttl()))}}},
          {"load",
           {{"jobs", load.jobs()},
            {"queued", load.queued()},
            {"admitted_bytes", load.admitted_bytes()},
            {"matrices", load.matrices()},
            {"matrices_expired", load.matrices_expired()},
            {"store_used_bytes", load.store_used_bytes()},
            {"benchmark_running", load.benchmark_running()},
            {"benchmarks", BenchmarksJson(load)}}},
          {"verify", info.verify() == client::kVerifyByPolicy
                         ? "unknown"
                         : std::string(client::Name(info.verify()))},
          {"caller",
           {{"name", info.caller().name()},
            {"roles", std::vector<std::string>(info.caller().roles().begin(),
                                               info.caller().roles().end())}}}};
}

std::string RuleText(::gemm::v1::ChoiceRule rule) {
  switch (rule) {
    case ::gemm::v1::CHOICE_RULE_UNSPECIFIED:
      return "none";
    case ::gemm::v1::CHOICE_RULE_REQUEST:
      return "request";
    case ::gemm::v1::CHOICE_RULE_RANK:
      return "rank";
    case ::gemm::v1::CHOICE_RULE_TABLE_EXACT:
      return "table exact";
    case ::gemm::v1::CHOICE_RULE_TABLE_NEAR:
      return "table near";
    case ::gemm::v1::CHOICE_RULE_CHECK:
      return "check";
    case ::gemm::v1::CHOICE_RULE_ESTIMATE:
      return "estimate";
    default:
      return absl::StrCat("rule ", static_cast<int>(rule));  // newer than this program
  }
}

void AddReport(Table& summary, const client::ProductReport& report) {
  summary.Add({"kernel", report.kernel()});
  if (!report.params().empty()) summary.Add({"params", ParamsText(report.params())});
  summary.Add({"reason", report.reason()});
  summary.Add({"device", report.device()});
  summary.Add({"m x n x k", absl::StrCat(report.m(), " x ", report.n(), " x ", report.k())});
  if (report.batch_count() > 1) summary.Add({"products", absl::StrCat(report.batch_count())});
  if (report.group_count() > 0) {
    summary.Add({"products", absl::StrCat(report.group_count(), ", a group")});
  }
  if (report.jobs_in_launch() > 1) {
    summary.Add({"in one launch", absl::StrCat(report.jobs_in_launch(), " jobs")});
  }
  summary.Add({"result", client::ToString(client::FromProto(report.result_shape()))});
  summary.Add({"compute", NameOf(report.compute())});
  const PhaseDurations durations = PhasesOf(report);
  for (size_t i = 0; i < kPhaseCount; ++i) {
    summary.Add({absl::StrCat(kPhaseNames[i], " ms"), MillisecondsText(durations[i])});
  }
  if (report.phases().has_transpose()) {
    summary.Add(
        {"of kernel, transposes ms", MillisecondsText(FromProto(report.phases().transpose()))});
  }
  for (const auto& copy : report.copies()) {
    summary.Add(
        {absl::StrCat(OperandText(copy.operand()), " copied"),
         absl::StrCat(BytesText(static_cast<double>(copy.bytes())), " from ", copy.from_device(),
                      copy.reused()         ? ", already there"
                      : copy.peer_to_peer() ? ", from device to device"
                                            : ", through the host")});
  }
  if (report.phases().has_device_to_device()) {
    summary.Add({"d2d ms", MillisecondsText(FromProto(report.phases().device_to_device()))});
  }
  if (report.has_check()) summary.Add({"check", CheckText(report.check())});
  if (report.phases().has_check()) {
    summary.Add({"check ms", MillisecondsText(FromProto(report.phases().check()))});
  }
  summary.Add({"TFLOPS", NumberText(report.tflops())});
}

Table MatrixTable(const std::vector<client::MatrixInfo>& matrices, bool owners) {
  std::vector<Table::Column> columns = {{"ID"},
                                        {"NAME", Align::kLeft, Fit::kWrap},
                                        {"SHAPE", Align::kLeft, Fit::kWrap},
                                        {"SIZE", Align::kRight},
                                        {"DEVICE"},
                                        {"VERSION", Align::kRight, Fit::kDrop},
                                        {"CREATED", Align::kLeft, Fit::kDrop},
                                        {"EXPIRES", Align::kLeft, Fit::kWrap},
                                        {"USES", Align::kRight}};
  if (owners) columns.push_back({"OWNER", Align::kLeft, Fit::kWrap});
  Table table(std::move(columns));
  for (const client::MatrixInfo& info : matrices) {
    std::vector<std::string> row = {info.id(),
                                    info.name(),
                                    client::ToString(client::FromProto(info.shape())),
                                    BytesText(static_cast<double>(info.bytes())),
                                    info.device(),
                                    absl::StrCat(info.version()),
                                    TimeText(FromProto(info.created())),
                                    ExpiryText(info),
                                    absl::StrCat(info.in_use())};
    if (owners) row.push_back(absl::StrCat(info.owner(), info.shared() ? ", shared" : ""));
    table.Add(std::move(row));
  }
  return table;
}

Table MatrixSummary(const client::MatrixInfo& info) {
  Table summary = SummaryTable();
  summary.Add({"id", info.id()});
  summary.Add({"name", info.name()});
  summary.Add({"shape", client::ToString(client::FromProto(info.shape()))});
  summary.Add({"size", BytesText(static_cast<double>(info.bytes()))});
  summary.Add({"device", info.device()});
  summary.Add({"version", absl::StrCat(info.version())});
  summary.Add({"expires", ExpiryText(info)});
  if (!info.owner().empty()) {
    summary.Add({"owner", absl::StrCat(info.owner(), info.shared() ? ", shared" : "")});
  }
  return summary;
}

}  // namespace gemmd::ctl
