// The .npy header reader: what it accepts must be consistent and bounded.
#include <cstdint>
#include <cstdlib>

#include "gemmd/client/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<gemmd::client::NpyHeader> header = gemmd::client::ReadNpyHeader(bytes);
  if (!header.ok()) return 0;
  if (header->data_offset > size) std::abort();
  if (header->shape.rows < 1 || header->shape.cols < 1) std::abort();
  // What was read can be written, and read again as the same.
  const absl::StatusOr<std::string> written = gemmd::client::EncodeNpyHeader(header->shape);
  if (!written.ok()) std::abort();
  const auto again = gemmd::client::ReadNpyHeader(*written, header->shape.dtype);
  if (!again.ok() || again->shape.rows != header->shape.rows ||
      again->shape.cols != header->shape.cols) {
    std::abort();
  }
  return 0;
}
