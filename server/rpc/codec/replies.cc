#include "server/rpc/codec/replies.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/rpc/codec/vocabulary.h"

namespace gemmd {

namespace v1 = gemm::v1;

void Fill(absl::Duration duration, google::protobuf::Duration& out) {
  const int64_t seconds = absl::IDivDuration(duration, absl::Seconds(1), &duration);
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int32_t>(duration / absl::Nanoseconds(1)));
}

void Fill(absl::Time time, google::protobuf::Timestamp& out) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  out.set_seconds(seconds);
  out.set_nanos(
      static_cast<int32_t>((time - absl::FromUnixSeconds(seconds)) / absl::Nanoseconds(1)));
}

void Fill(const Shape& shape, v1::MatrixShape& out) {
  out.set_rows(shape.rows);
  out.set_cols(shape.cols);
  out.set_dtype(ToProto(shape.type));
  out.set_layout(ToProtoLayout(shape.column_major));
}

void Fill(const MatrixRecord& matrix, v1::MatrixInfo& out) {
  // The last second that a Timestamp may hold; later is as good as never.
  static const absl::Time kLatest = absl::FromUnixSeconds(253'402'300'799);
  out.set_id(matrix.id);
  out.set_name(matrix.name);
  Fill(matrix.shape, *out.mutable_shape());
  out.set_bytes(matrix.shape.dense_bytes());
  out.set_resident_bytes(matrix.shape.pitched_bytes());
  out.set_device(matrix.device);
  Fill(matrix.created, *out.mutable_created());
  if (matrix.expires.has_value() && *matrix.expires < kLatest) {
    Fill(*matrix.expires, *out.mutable_expires());
  }
  out.set_in_use(matrix.in_use);
  out.set_owner(matrix.owner);
  out.set_shared(matrix.shared);
  out.set_version(matrix.version);
}

namespace {

void Fill(const CheckReport& check, v1::ResultCheck& out) {
  out.set_result(ToProto(check.result));
  out.set_of_bound(check.of_bound);
  out.set_uncovered_rows(check.uncovered_rows);
  out.set_before_activation(check.before_activation);
  out.set_failed_kernel(check.failed_kernel);
  out.set_not_checked(check.why_not);
}

}  // namespace

void Fill(const JobReport& report, v1::ProductReport& out) {
  out.set_kernel(report.kernel);
  out.set_reason(report.reason);
  out.set_rule(ToProto(report.rule));
  if (report.tuned.has_value()) Fill(*report.tuned, *out.mutable_tuned_from());
  out.mutable_params()->insert(report.params.begin(), report.params.end());
  out.set_device(report.device);
  out.set_m(report.m);
  out.set_n(report.n);
  out.set_k(report.k);
  out.set_batch_count(static_cast<int32_t>(report.batch));
  out.set_group_count(static_cast<int32_t>(report.group));
  out.set_jobs_in_launch(report.jobs_in_launch);
  Fill(report.result, *out.mutable_result_shape());
  out.set_compute(ToProto(report.types.compute));
  const PhaseDurations& phases = report.phases;
  v1::PhaseTimes& times = *out.mutable_phases();
  Fill(phases.receive, *times.mutable_receive());
  Fill(phases.queue, *times.mutable_queue());
  Fill(phases.host_to_device, *times.mutable_host_to_device());
  Fill(phases.kernel, *times.mutable_kernel());
  if (phases.transpose > absl::ZeroDuration()) {
    Fill(phases.transpose, *times.mutable_transpose());
  }
  Fill(phases.device_to_host, *times.mutable_device_to_host());
  Fill(phases.send, *times.mutable_send());
  Fill(phases.total, *times.mutable_total());
  if (!report.copies.empty()) {
    Fill(phases.device_to_device, *times.mutable_device_to_device());
  }
  if (report.check.result != CheckResult::kNone) {
    Fill(phases.check, *times.mutable_check());
  }
  if (report.check.result != CheckResult::kNone || !report.check.why_not.empty()) {
    Fill(report.check, *out.mutable_check());
  }
  out.set_tflops(report.tflops());
  for (const OperandCopy& copy : report.copies) {
    v1::OperandCopy& row = *out.add_copies();
    row.set_operand(ToProto(copy.role));
    row.set_from_device(copy.from_device);
    row.set_bytes(copy.bytes);
    row.set_reused(copy.reused);
    row.set_peer_to_peer(copy.route == CopyRoute::kPeer);
  }
}

void Fill(const gemm::Types& types, v1::KernelTypes& out) {
  out.set_a(ToProto(types.a));
  out.set_b(ToProto(types.b));
  out.set_output(ToProto(types.d));
  out.set_compute(ToProto(types.compute));
}

void Fill(const gemm::Machine& machine, v1::MachineInfo& out) {
  out.set_device(machine.device);
  out.set_driver(machine.driver);
  out.set_cuda(machine.cuda);
  out.set_library(machine.library);
}

void Fill(const TunedFrom& from, v1::TunedFrom& out) {
  out.mutable_size()->set_m(from.m);
  out.mutable_size()->set_n(from.n);
  out.mutable_size()->set_k(from.k);
  out.set_seconds(from.seconds);
  out.set_other_versions(from.other_versions);
  out.set_other_epilogue(from.other_epilogue);
}

void Fill(const gemm::Kernel& kernel, v1::KernelInfo& out) {
  out.set_name(std::string(kernel.name));
  out.set_family(std::string(kernel.family));
  out.set_summary(std::string(kernel.summary));
  for (const gemm::Types& types : kernel.types) {
    Fill(types, *out.add_types());
  }
  for (const gemm::ParamSpec& param : kernel.params) {
    v1::KernelParam& row = *out.add_params();
    row.set_name(std::string(param.name));
    row.set_summary(std::string(param.summary));
    row.set_min(param.min);
    row.set_max(param.max);
    row.set_default_value(param.default_value);
  }
  out.set_tile_m(kernel.tile_m);
  out.set_tile_n(kernel.tile_n);
  out.set_tile_k(kernel.tile_k);
  out.set_stages(kernel.stages);
  out.set_threads(kernel.threads);
  out.set_shared_memory_bytes(static_cast<uint32_t>(kernel.shared_memory_bytes));
  out.set_deterministic(kernel.deterministic);
  out.set_batches(kernel.batches);
  out.set_row_blocks(kernel.row_blocks);
  out.set_groups(kernel.groups);
  out.set_block_scales(kernel.block_scales);
}

void Fill(const Device& device, const DeviceStats& stats, v1::DeviceInfo& out) {
  const DeviceInfoRecord& info = device.info();
  out.set_name(info.name);
  out.set_model(info.model);
  if (info.caps.capability > 0) {
    out.set_compute_capability(
        absl::StrCat(info.caps.capability / 10, ".", info.caps.capability % 10));
  }
  out.set_memory_bytes(stats.memory_bytes.limit);
  out.set_memory_used_bytes(stats.memory_bytes.used);
  out.set_streams(static_cast<int32_t>(stats.streams.limit));
  out.set_healthy(stats.health.ok());
  out.set_unhealthy_reason(std::string(stats.health.message()));
  out.set_estimates(std::string(device.estimates().model()));
}

void Fill(const EngineStats& stats, v1::Load& out) {
  out.set_jobs(static_cast<uint32_t>(stats.jobs.used));
  out.set_queued(static_cast<uint32_t>(stats.queued_jobs.used));
  out.set_admitted_bytes(stats.admitted_bytes.used);
  out.set_matrices(static_cast<uint32_t>(stats.matrices.used));
  uint64_t store_used = 0;
  for (const DeviceStats& device : stats.devices) store_used += device.store_bytes.used;
  out.set_store_used_bytes(store_used);
  out.set_matrices_expired(static_cast<uint64_t>(stats.matrices_expired));
}

}  // namespace gemmd
