// Tuning tables: what is accepted is bounded, and its text is accepted as the same table.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "gemm/kernel.h"
#include "gemm/tuning.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = gemm::ParseTuningTable(text, "table");
  if (!table.ok()) {
    Require(table.status().message().size() < 1024);
    return 0;
  }
  Require(table->size() <= gemm::kMaxTuningEntries);
  for (const auto& [machine, products] : table->entries()) {
    Require(!machine.device.empty());
    for (const auto& [product, choice] : products) {
      Require(product.m >= 1 && product.n >= 1 && product.k >= 1);
      Require(choice.seconds > 0 && !choice.kernel.empty());
      Require(choice.params.size() <= gemm::kMaxParams);
    }
  }
  const std::string written = gemm::FormatTuningTable(*table);
  const auto again = gemm::ParseTuningTable(written, "table");
  // Text may be longer than what it was read from.
  Require(again.ok() || written.size() > gemm::kMaxTuningBytes);
  if (again.ok()) Require(gemm::FormatTuningTable(*again) == written);
  return 0;
}
