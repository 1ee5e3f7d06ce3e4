// The catalogue as Markdown.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gemm/kernel.h"

namespace gemm::bench {

// Notes on kernels beside their rows, by name.
struct CatalogueNotes {
  struct Standing {
    double tflops = 0;
    double of_vendor = 0;  // 0: not compared
  };
  int architecture = 0;  // of the registers: 90
  std::map<std::string, int> registers;
  std::map<std::string, Standing> standings;
};

// Reads lines of "name architecture registers shared-memory", as
// tests/kernels/machine_code.py prints them, and keeps the highest architecture.
absl::Status ReadRegisters(const std::string& path, CatalogueNotes& notes);

// Reads the means of a benchmark's JSON file. The first file that has a kernel counts.
absl::Status ReadStandings(const std::string& path, CatalogueNotes& notes);

// A table for each family, in the order given. Columns without any note are left out.
std::string CataloguePage(absl::Span<const Kernel* const> kernels, const CatalogueNotes& notes);

}  // namespace gemm::bench
