// Memory mapped for the host device. Pages are not allocated until they are touched.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace gemmd {

// Page-aligned and zeroed. Unmapped on destruction; empty when moved from.
class HostMapping {
 public:
  // RESOURCE_EXHAUSTED names the bytes requested and the reason.
  static absl::StatusOr<HostMapping> Create(size_t bytes);

  HostMapping(HostMapping&& other) noexcept { *this = std::move(other); }
  HostMapping& operator=(HostMapping&& other) noexcept;
  ~HostMapping();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  HostMapping(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace gemmd
