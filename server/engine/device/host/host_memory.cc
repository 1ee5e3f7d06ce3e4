// Anonymous mappings without swap reserved for them.
#include "server/engine/device/host/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gemmd {

absl::StatusOr<HostMapping> HostMapping::Create(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("host memory: ", bytes, " bytes could not be mapped: ", strerror(errno)));
  }
  return HostMapping(static_cast<std::byte*>(data), bytes);
}

HostMapping& HostMapping::operator=(HostMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostMapping::~HostMapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace gemmd
