// Rows as files for programs.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "files/output_file.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// A line of names, then a line for each row. Figures that were not measured are empty.
// Rows are in the file as soon as they are written: a run cut short keeps its rows.
class CsvWriter {
 public:
  // Keeps the file's contents until Begin.
  static absl::StatusOr<CsvWriter> Create(const std::string& path);

  // Writes the names of the columns.
  absl::Status Begin();
  absl::Status Write(absl::Span<const Row> rows);
  // After the last row.
  absl::Status Close() { return file_.Close(); }

 private:
  explicit CsvWriter(gemmd::files::OutputFile file) : file_(std::move(file)) {}

  gemmd::files::OutputFile file_;
};

// The metadata, every row, and the means by kernel and by family, as one object:
// "metadata", "rows", "kernels", "families"; and with rows of `auto` its shares, "auto".
std::string ToJson(const Metadata& metadata, absl::Span<const Row> rows);

}  // namespace gemm::bench
