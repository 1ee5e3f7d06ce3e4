// Converts the engine's reports to the contract's messages.
#pragma once

#include "absl/time/time.h"
#include "gemm/kernel.h"
#include "gemm/v1/gemm.pb.h"
#include "server/engine/core/report.h"
#include "server/engine/engine.h"
#include "server/engine/store/matrix.h"

namespace gemmd {

void Fill(const Shape& shape, gemm::v1::MatrixShape& out);
void Fill(const MatrixRecord& matrix, gemm::v1::MatrixInfo& out);
void Fill(const JobReport& report, gemm::v1::ProductReport& out);
// Fills all fields except the devices that run the kernel.
void Fill(const gemm::Kernel& kernel, gemm::v1::KernelInfo& out);
void Fill(const Device& device, const DeviceStats& stats, gemm::v1::DeviceInfo& out);
void Fill(const gemm::Types& types, gemm::v1::KernelTypes& out);
void Fill(const gemm::Machine& machine, gemm::v1::MachineInfo& out);
void Fill(const TunedFrom& from, gemm::v1::TunedFrom& out);
void Fill(const EngineStats& stats, gemm::v1::Load& out);

// Truncates to whole nanoseconds.
void Fill(absl::Duration duration, google::protobuf::Duration& out);
void Fill(absl::Time time, google::protobuf::Timestamp& out);

}  // namespace gemmd
