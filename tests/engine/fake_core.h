// The parts of an engine over devices without threads. Its workers run functions at once, on the
// caller's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_losses.h"
#include "server/engine/transfer/upload_impl.h"
#include "tests/engine/fake_device.h"

namespace gemmd {

struct FakeCore {
  explicit FakeCore(EngineOptions options = DefaultOptions(), int devices = 1,
                    FakeDevice::Options device = {}) {
    core.options = options;
    core.admission = std::make_unique<Admission>(options);
    core.queue_limit = std::make_unique<QueueLimit>(options.max_queued_jobs);
    core.answers = std::make_unique<Workers>("answers", 0);
    for (int i = 0; i < devices; ++i) {
      device.name = absl::StrCat("fake:", i);
      core.devices.push_back(std::make_unique<FakeDevice>(device));
      core.schedulers.push_back(std::make_unique<Scheduler>(*core.devices.back(), *core.queue_limit,
                                                            options.max_queue_wait));
      core.costs.push_back(std::make_unique<CostModel>(core.devices.back()->info().caps.target));
      core.placed.push_back(std::make_unique<PlacedWork>());
    }
    core.timer = std::make_unique<Timer>();
    core.store = std::make_unique<MatrixStore>(core.devices.size(), options.store_bytes,
                                               options.max_matrices, *core.timer);
    core.losses = std::make_shared<DeviceLosses>(core);
    core.uploads = std::make_shared<UploadGroups>(core);
    core.workers = std::make_unique<Workers>("copy", 0);
    core.answers->Stop();
    core.workers->Stop();
  }
  ~FakeCore() { core.timer->Stop(); }

  static EngineOptions DefaultOptions() {
    EngineOptions options;
    options.store_bytes = 32 * kKiB;
    options.job_timeout = absl::ZeroDuration();  // no test's clock loses a device by the way
    return options;
  }

  FakeDevice& device(size_t i = 0) { return static_cast<FakeDevice&>(*core.devices[i]); }

  EngineCore core;
};

}  // namespace gemmd
