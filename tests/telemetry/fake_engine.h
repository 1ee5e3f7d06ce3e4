// An engine that only has a state to show.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/engine/engine.h"

namespace gemmd {

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(EngineStats stats) : stats_(std::move(stats)) {}

  EngineStats Stats() const override { return stats_; }
  EngineActivity Activity() const override { return {}; }
  bool ResultStagingIsScarce() const override { return false; }

  absl::StatusOr<std::shared_ptr<Job>> Admit(JobSpec, std::shared_ptr<JobListener>) override {
    return Unused();
  }
  absl::StatusOr<KernelRanking> RankKernels(const RankingQuestion&) const override {
    return Unused();
  }
  absl::StatusOr<std::shared_ptr<Upload>> BeginUpload(UploadSpec, UploadDone) override {
    return Unused();
  }
  absl::StatusOr<std::shared_ptr<Download>> BeginDownload(
      DownloadSpec, std::shared_ptr<DownloadListener>) override {
    return Unused();
  }
  absl::StatusOr<MatrixRecord> DeleteMatrix(const MatrixKey&) override { return Unused(); }
  absl::StatusOr<MatrixRecord> DescribeMatrix(const MatrixKey&) override { return Unused(); }
  absl::StatusOr<MatrixPage> ListMatrices(const MatrixQuery&) override { return Unused(); }
  MatrixExtremes FirstMatrices(size_t) const override { return {}; }
  std::vector<WaitingFlow> WaitingFlows(size_t, size_t) const override { return {}; }
  std::vector<TrafficEntry> ListTraffic(size_t) const override { return {}; }
  absl::Span<const std::unique_ptr<Device>> devices() const override { return {}; }
  const EngineOptions& options() const override { return options_; }
  TuningLoad tuning() const override { return {}; }
  void ReloadTuning(TuningReloads::Done done) override { done(Unused()); }
  absl::Status Health() const override { return absl::OkStatus(); }
  void StopAdmitting() override {}
  bool Drain(absl::Time) override { return true; }

 private:
  static absl::Status Unused() { return absl::UnimplementedError("a fake engine runs nothing"); }

  const EngineStats stats_;
  const EngineOptions options_;
};

}  // namespace gemmd
