#include "server/engine/device/device.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/quote.h"
#include "server/base/mutex.h"

namespace gemmd {

absl::Status Stream::CopyFrom(const Device& device, const std::byte*, std::byte*, size_t) {
  return absl::InternalError("this device cannot copy straight from " + device.info().name);
}

absl::StatusOr<size_t> IndexOfDevice(absl::Span<const std::unique_ptr<Device>> devices,
                                     absl::string_view name) {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (name.empty() || devices[i]->info().name == name) return i;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "device is ", gemm::Quoted(name), ", but this server has ",
      absl::StrJoin(devices, ", ", [](std::string* out, const std::unique_ptr<Device>& device) {
        absl::StrAppend(out, device->info().name);
      })));
}

void AwaitCallbacks(Device& device) {
  Mutex mutex;
  CondVar changed;
  size_t pending = 2 + device.compute_streams().size() + device.quick_streams().size();
  const auto await = [&](Stream& stream) {
    stream.Notify([&](absl::Status) {
      MutexLock lock(mutex);
      if (--pending == 0) changed.NotifyOne();
    });
  };
  await(device.upload_stream());
  await(device.download_stream());
  for (const std::unique_ptr<Stream>& stream : device.compute_streams()) await(*stream);
  for (const std::unique_ptr<Stream>& stream : device.quick_streams()) await(*stream);
  MutexLock lock(mutex);
  while (pending > 0) changed.Wait(mutex);
}

}  // namespace gemmd
