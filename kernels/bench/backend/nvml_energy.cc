#include "kernels/bench/backend/nvml_energy.h"

#include <dlfcn.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gemm::bench {
namespace {

// The parts of nvml.h that are used here: not every CUDA toolkit comes with it.
constexpr int kNvmlSuccess = 0;
struct NvmlDevice;

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};

// NVML's functions, which return kNvmlSuccess or an error that error_string names.
struct Nvml {
  std::unique_ptr<void, CloseLibrary> library;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_at)(const char* pci_bus_id, NvmlDevice** device) = nullptr;
  int (*total_energy)(NvmlDevice* device, unsigned long long* millijoules) = nullptr;
  const char* (*error_string)(int error) = nullptr;

  absl::Status Status(int error, absl::string_view what) const {
    if (error == kNvmlSuccess) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(what, ": ", error_string(error)));
  }
};

template <class Function>
absl::Status Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("NVML has no function ", name));
}

absl::StatusOr<Nvml> Load(const char* name) {
  Nvml nvml;
  nvml.library.reset(dlopen(name, RTLD_NOW | RTLD_LOCAL));
  if (nvml.library == nullptr) {
    // The message names the library.
    return absl::UnavailableError(absl::StrCat("NVML cannot be loaded: ", dlerror()));
  }
  void* const library = nvml.library.get();
  absl::Status status = Find(library, "nvmlInit_v2", nvml.init);
  status.Update(Find(library, "nvmlShutdown", nvml.shutdown));
  status.Update(Find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.device_at));
  status.Update(Find(library, "nvmlDeviceGetTotalEnergyConsumption", nvml.total_energy));
  status.Update(Find(library, "nvmlErrorString", nvml.error_string));
  if (!status.ok()) return status;
  return nvml;
}

class NvmlEnergy : public EnergyCounter {
 public:
  // `nvml` is initialised.
  NvmlEnergy(Nvml nvml, NvmlDevice* device) : nvml_(std::move(nvml)), device_(device) {}
  ~NvmlEnergy() override { nvml_.shutdown(); }

  absl::StatusOr<double> Joules() override {
    unsigned long long millijoules = 0;
    const absl::Status status =
        nvml_.Status(nvml_.total_energy(device_, &millijoules), "NVML's energy counter");
    if (!status.ok()) return status;
    return static_cast<double>(millijoules) * 1e-3;
  }

 private:
  const Nvml nvml_;
  NvmlDevice* const device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<EnergyCounter>> OpenNvmlEnergy(const std::string& pci_bus_id,
                                                              const char* library) {
  absl::StatusOr<Nvml> nvml = Load(library);
  if (!nvml.ok()) return nvml.status();
  absl::Status status = nvml->Status(nvml->init(), "NVML cannot be initialised");
  if (!status.ok()) return status;
  NvmlDevice* device = nullptr;
  status = nvml->Status(nvml->device_at(pci_bus_id.c_str(), &device),
                        absl::StrCat("NVML and the GPU at ", pci_bus_id));
  if (!status.ok()) {
    nvml->shutdown();
    return status;
  }
  auto counter = std::make_unique<NvmlEnergy>(*std::move(nvml), device);
  // GPUs before Volta have none.
  if (const auto joules = counter->Joules(); !joules.ok()) return joules.status();
  return counter;
}

}  // namespace gemm::bench
