// A library that replaces NVML. It knows three GPUs.
#include <cstring>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6, kUninitialized = 1;
int users = 0;
unsigned long long millijoules = 1500;
// A GPU with a counter, one without, and one whose counter fails from the second reading on.
char good, old_one, failing;
int readings = 0;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++users;
  return kSuccess;
}

int nvmlShutdown() { return users-- > 0 ? kSuccess : kUninitialized; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  if (users == 0) return kUninitialized;
  *device = std::strcmp(bus, "0000:01:00.0") == 0   ? &good
            : std::strcmp(bus, "0000:02:00.0") == 0 ? &old_one
            : std::strcmp(bus, "0000:03:00.0") == 0 ? &failing
                                                    : nullptr;
  return *device == nullptr ? kNotFound : kSuccess;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* energy) {
  if (users == 0) return kUninitialized;
  if (device == &old_one || (device == &failing && ++readings > 1)) return kNotSupported;
  *energy = millijoules += 250;
  return kSuccess;
}

const char* nvmlErrorString(int error) {
  return error == kNotSupported ? "Not Supported" : error == kNotFound ? "Not Found" : "Other";
}

// For the test: how often it is initialised.
int FakeNvmlUsers() { return users; }

}  // extern "C"
