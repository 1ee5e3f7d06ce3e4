#include "server/engine/engine.h"

#include <algorithm>
#include <future>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/clock.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_losses.h"
#include "server/engine/core/tuning.h"
#include "server/engine/device/device_kinds.h"
#include "server/engine/job/job_admission.h"
#include "server/engine/job/job_impl.h"
#include "server/engine/job/warm_up.h"
#include "server/engine/transfer/download_impl.h"
#include "server/engine/transfer/upload_impl.h"

namespace gemmd {
namespace {

class EngineImpl final : public Engine {
 public:
  EngineImpl(const EngineOptions& options, EngineObserver* observer,
             std::vector<std::unique_ptr<Device>> devices, const gemm::TuningTable& tuning);
  ~EngineImpl() override;

  absl::StatusOr<std::shared_ptr<Job>> Admit(JobSpec spec,
                                             std::shared_ptr<JobListener> listener) override;
  absl::StatusOr<KernelRanking> RankKernels(const RankingQuestion& question) const override {
    return gemmd::RankKernels(core_, question);
  }
  absl::StatusOr<std::shared_ptr<Upload>> BeginUpload(UploadSpec spec, UploadDone done) override;
  absl::StatusOr<std::shared_ptr<Download>> BeginDownload(
      DownloadSpec spec, std::shared_ptr<DownloadListener> listener) override;
  absl::StatusOr<MatrixRecord> DeleteMatrix(const MatrixKey& key) override {
    return core_.store->Delete(key);
  }
  absl::StatusOr<MatrixRecord> DescribeMatrix(const MatrixKey& key) override {
    return core_.store->Record(key);
  }
  absl::StatusOr<MatrixPage> ListMatrices(const MatrixQuery& query) override;
  std::vector<TrafficEntry> ListTraffic(size_t limit) const override {
    return core_.traffic.Top(limit);
  }
  absl::Span<const std::unique_ptr<Device>> devices() const override { return core_.devices; }
  const EngineOptions& options() const override { return core_.options; }
  EngineStats Stats() const override;
  MatrixExtremes FirstMatrices(size_t most) const override { return core_.store->Extremes(most); }
  std::vector<WaitingFlow> WaitingFlows(size_t device, size_t most) const override {
    return core_.schedulers[device]->longest_flows(most);
  }
  EngineActivity Activity() const override { return core_.admission->activity(); }
  TuningLoad tuning() const override { return core_.tuning.Get()->load(); }
  void ReloadTuning(TuningReloads::Done done) override;
  bool ResultStagingIsScarce() const override {
    return std::any_of(core_.devices.begin(), core_.devices.end(),
                       [](const auto& device) { return device->download_staging().scarce(); });
  }
  absl::Status Health() const override;
  void StopAdmitting() override { core_.admission->Close(); }
  bool Drain(absl::Time deadline) override;

 private:
  // Sets the time to live of a matrix without a name, unless it has one of its own.
  void GiveTtl(KeepSpec& keep) const;
  absl::StatusOr<TuningLoad> ReadTuningAgain();
  absl::StatusOr<TuningLoad> TakeUpTables();

  EngineCore core_;
  // Reads tuning tables again, one call after the other.
  std::unique_ptr<TuningReloads> tuning_reloads_;  // null: no tables
};

// Devices on which work still runs that nothing can stop: it uses their memory until the
// process ends. Never destroyed.
struct LeftBehind {
  Mutex mutex;
  std::vector<std::unique_ptr<Device>> devices ABSL_GUARDED_BY(mutex);
};

LeftBehind& DevicesLeftBehind() {
  static LeftBehind* const left = new LeftBehind;
  return *left;
}

// All devices at the same time.
void WarmUpAll(const std::vector<std::unique_ptr<Device>>& devices) {
  std::vector<std::future<int>> products;
  products.reserve(devices.size());
  for (const auto& device : devices) {
    products.push_back(std::async(std::launch::async, [&device] { return WarmUp(*device); }));
  }
}

// Half of the smallest device's memory.
size_t DefaultStoreBytes(const std::vector<std::unique_ptr<Device>>& devices) {
  size_t smallest = devices.front()->memory().capacity();
  for (const auto& device : devices) {
    smallest = std::min(smallest, device->memory().capacity());
  }
  return smallest / 2;
}

// How long a thread that sends answers looks for the next one. Threads of host devices need the
// CPUs.
absl::Duration AnswerSpin(const std::vector<std::unique_ptr<Device>>& devices,
                          const EngineOptions& options) {
  const bool polled = std::any_of(devices.begin(), devices.end(), [](const auto& device) {
    return device->info().caps.target == gemm::Target::kCuda;
  });
  return polled ? options.completion_spin / 10 : absl::ZeroDuration();
}

EngineImpl::EngineImpl(const EngineOptions& options, EngineObserver* observer,
                       std::vector<std::unique_ptr<Device>> devices,
                       const gemm::TuningTable& tuning) {
  EngineOptions& filled = core_.options;
  filled = options;
  if (filled.copy_threads == 0) filled.copy_threads = DefaultCopyThreads();
  if (filled.store_bytes == 0) filled.store_bytes = DefaultStoreBytes(devices);
  if (filled.device_memory_bytes == 0) {
    filled.device_memory_bytes = devices.front()->memory().capacity();
  }
  core_.observer = observer;
  core_.admission = std::make_unique<Admission>(filled);
  core_.devices = std::move(devices);
  for (const auto& device : core_.devices) device->UseEstimatesOfModel();
  core_.answers =
      std::make_unique<Workers>("answers", filled.copy_threads, AnswerSpin(core_.devices, filled));
  core_.queue_limit = std::make_unique<QueueLimit>(filled.max_queued_jobs);
  for (const auto& device : core_.devices) {
    core_.schedulers.push_back(
        std::make_unique<Scheduler>(*device, *core_.queue_limit, filled.max_queue_wait));
    core_.costs.push_back(std::make_unique<CostModel>(device->info().caps.target));
    core_.placed.push_back(std::make_unique<PlacedWork>());
  }
  core_.tuning.Set(std::make_shared<const Tuning>(tuning, core_.devices));
  if (!filled.tuning_tables.empty() || !filled.idle_tuning.empty()) {
    tuning_reloads_ = std::make_unique<TuningReloads>([this] { return ReadTuningAgain(); });
  }
  core_.timer = std::make_unique<Timer>();
  core_.store = std::make_unique<MatrixStore>(core_.devices.size(), filled.store_bytes,
                                              filled.max_matrices, *core_.timer);
  core_.losses = std::make_shared<DeviceLosses>(core_);
  core_.uploads = std::make_shared<UploadGroups>(core_);
  core_.workers = std::make_unique<Workers>("copy", filled.copy_threads);
  core_.losses->Watch();
}

EngineImpl::~EngineImpl() {
  tuning_reloads_.reset();
  StopAdmitting();
  Drain(SteadyNow());
  core_.admission->WaitIdle(absl::InfiniteFuture());
  // Nothing more is scheduled. Functions that still run release the devices' blocks.
  core_.answers->Stop();
  core_.timer->Stop();
  for (std::unique_ptr<Device>& device : core_.devices) {
    if (device->Health().ok()) continue;
    AwaitCallbacks(*device);
    // Work that does not hang ends at once, but a stream may not have seen it yet.
    for (int i = 0; i < 1000 && !device->Idle(); ++i) absl::SleepFor(absl::Milliseconds(1));
    if (device->Idle()) continue;
    LeftBehind& left = DevicesLeftBehind();
    MutexLock lock(left.mutex);
    left.devices.push_back(std::move(device));
  }
}

void EngineImpl::GiveTtl(KeepSpec& keep) const {
  const absl::Duration ttl = core_.options.unnamed_ttl;
  if (keep.name.empty() && !keep.ttl.has_value() && ttl > absl::ZeroDuration()) keep.ttl = ttl;
}

absl::StatusOr<std::shared_ptr<Job>> EngineImpl::Admit(JobSpec spec,
                                                       std::shared_ptr<JobListener> listener) {
  const absl::Time arrived = SteadyNow();
  if (spec.keep_result.has_value()) GiveTtl(*spec.keep_result);
  absl::StatusOr<AdmittedJob> admitted = AdmitJob(core_, std::move(spec));
  if (!admitted.ok()) {
    if (core_.observer != nullptr) core_.observer->OnJobEnd(JobReport(), admitted.status());
    return admitted.status();
  }
  return std::make_shared<JobImpl>(core_, *std::move(admitted), std::move(listener), arrived);
}

absl::StatusOr<std::shared_ptr<Upload>> EngineImpl::BeginUpload(UploadSpec spec, UploadDone done) {
  const absl::Time arrived = SteadyNow();
  GiveTtl(spec.keep);
  absl::StatusOr<std::shared_ptr<UploadImpl>> upload =
      UploadImpl::Begin(core_, std::move(spec), std::move(done));
  if (upload.ok()) return *std::move(upload);
  if (core_.observer != nullptr) {
    core_.observer->OnTransferEnd(/*upload=*/true, 0, SteadyNow() - arrived, upload.status());
  }
  return upload.status();
}

absl::StatusOr<std::shared_ptr<Download>> EngineImpl::BeginDownload(
    DownloadSpec spec, std::shared_ptr<DownloadListener> listener) {
  const absl::Time arrived = SteadyNow();
  absl::StatusOr<std::shared_ptr<DownloadImpl>> download =
      DownloadImpl::Begin(core_, std::move(spec), std::move(listener));
  if (download.ok()) return *std::move(download);
  if (core_.observer != nullptr) {
    core_.observer->OnTransferEnd(/*upload=*/false, 0, SteadyNow() - arrived, download.status());
  }
  return download.status();
}

absl::StatusOr<MatrixPage> EngineImpl::ListMatrices(const MatrixQuery& query) {
  if (query.page_size < 1 || query.page_size > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_size is ", query.page_size, ", but must be 1 to 1000"));
  }
  return core_.store->List(query);
}

void EngineImpl::ReloadTuning(TuningReloads::Done done) {
  if (tuning_reloads_ == nullptr) {
    return done(absl::FailedPreconditionError(
        "this server has no tuning tables to read again: it was started without its flag "
        "--tuning-tables or --idle-tuning"));
  }
  tuning_reloads_->Read(std::move(done));
}

absl::StatusOr<TuningLoad> EngineImpl::ReadTuningAgain() {
  absl::StatusOr<TuningLoad> load = TakeUpTables();
  if (core_.observer != nullptr) core_.observer->OnTuningReload(load);
  return load;
}

absl::StatusOr<TuningLoad> EngineImpl::TakeUpTables() {
  const absl::StatusOr<gemm::TuningTable> table =
      ReadTuningTables(core_.options.tuning_tables, core_.options.idle_tuning);
  // The files are wrong, not the request.
  if (!table.ok()) return absl::FailedPreconditionError(table.status().message());
  auto tuning = std::make_shared<const Tuning>(*table, core_.devices);
  TuningLoad load = tuning->load();
  core_.tuning.Set(std::move(tuning));
  core_.traffic.Clear();  // some of it may have entries now
  return load;
}

Gauge BytesOf(const StagingPool& pool) {
  return {static_cast<int64_t>(pool.used_blocks() * pool.block_bytes()),
          static_cast<int64_t>(pool.blocks() * pool.block_bytes())};
}

EngineStats EngineImpl::Stats() const {
  EngineStats stats;
  stats.jobs = core_.admission->jobs();
  stats.queued_jobs = core_.queue_limit->gauge();
  stats.admitted_bytes = core_.admission->admitted_bytes();
  stats.matrices = {core_.store->count(), core_.store->max_matrices()};
  stats.matrices_expired = core_.store->expired();
  stats.traffic = core_.traffic.held();
  stats.traffic_dropped = core_.traffic.dropped();
  for (size_t i = 0; i < core_.devices.size(); ++i) {
    Device& device = *core_.devices[i];
    DeviceStats one;
    one.name = device.info().name;
    one.memory_bytes = {static_cast<int64_t>(device.memory().used()),
                        static_cast<int64_t>(device.memory().capacity())};
    one.streams = core_.schedulers[i]->streams();
    one.upload_staging_bytes = BytesOf(device.upload_staging());
    one.download_staging_bytes = BytesOf(device.download_staging());
    one.store_bytes = {static_cast<int64_t>(core_.store->used_bytes(i)),
                       static_cast<int64_t>(core_.store->quota_bytes())};
    one.replicas = core_.store->replica_stats(i);
    one.queued_jobs = core_.schedulers[i]->queued();
    one.waiting_flows = core_.schedulers[i]->waiting_flows();
    one.queue_wait_seconds = absl::ToDoubleSeconds(core_.schedulers[i]->estimated_wait());
    one.queue_wait_limit_seconds = absl::ToDoubleSeconds(core_.options.max_queue_wait);
    one.jobs_begun = core_.schedulers[i]->begun();
    one.driver_allocations = device.driver_allocations();
    one.health = device.Health();
    one.loss = core_.losses->stats(i);
    stats.devices.push_back(std::move(one));
  }
  return stats;
}

absl::Status EngineImpl::Health() const {
  absl::Status last;
  for (const auto& device : core_.devices) {
    last = device->Health();
    if (last.ok()) return last;
  }
  return last;
}

bool EngineImpl::Drain(absl::Time deadline) {
  const bool idle = core_.admission->WaitIdle(deadline);
  core_.admission->CloseDownloads();
  if (idle) return true;
  core_.admission->CancelAll(absl::UnavailableError("the server is shutting down"));
  return false;
}

}  // namespace

bool Engine::LeftWorkBehind() {
  LeftBehind& left = DevicesLeftBehind();
  MutexLock lock(left.mutex);
  return !left.devices.empty();
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options,
                                                       EngineObserver* observer) {
  absl::Status status = CheckOptions(options);
  if (!status.ok()) return status;
  const absl::StatusOr<gemm::TuningTable> tuning =
      ReadTuningTables(options.tuning_tables, options.idle_tuning);
  if (!tuning.ok()) return tuning.status();
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> devices = CreateDevices(options);
  if (!devices.ok()) return devices.status();
  if (options.warm_up) WarmUpAll(*devices);
  return std::make_unique<EngineImpl>(options, observer, *std::move(devices), *tuning);
}

}  // namespace gemmd
