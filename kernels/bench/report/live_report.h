// Shows a benchmark: progress and tables while it runs, then means and files.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "files/output_file.h"
#include "kernels/bench/report/progress_report.h"
#include "kernels/bench/report/report_files.h"
#include "kernels/bench/result/metadata.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

struct Outputs {
  // Tables: all, the means alone, none.
  enum class Tables { kAll, kMeans, kNone };

  Tables tables = Tables::kAll;
  bool quiet = false;  // no progress
  // Of the terminal that the tables go to; 0: no bound.
  size_t width = 0;
  // The name of the shapes, where they have one; for the picture.
  std::string suite;
  // Empty: no such file.
  std::string csv, json, plot;
};

// Not thread-safe.
class LiveReport {
 public:
  // Tables go to `out`, progress to `err`.
  LiveReport(const Outputs& outputs, std::ostream& out, std::ostream& err, bool err_is_terminal)
      : outputs_(outputs), out_(out), progress_(err, err_is_terminal) {}

  // Call first, before anything is asked for: a path that cannot be written costs no time
  // then. An error names it.
  absl::Status Open();
  // Call before anything is measured. `vendor` names the baseline.
  absl::Status Begin(Metadata metadata, std::string vendor, size_t shapes);
  void Update(const Progress& progress);
  // Adds an entry that is known only now. The files of Finish have it.
  void AddMetadata(std::string label, std::string value);
  // The rows of one shape, types and layout; `index` counts shapes from 0.
  void Add(absl::Span<const Row> rows, size_t index);
  // Call after the last row, also of a run cut short. An error names the first file
  // that could not be written.
  absl::Status Finish();

  // Nobody reads what is printed any more: to measure on is in vain.
  bool unread() const { return !out_.good(); }

  const Metadata& metadata() const { return metadata_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  const Outputs outputs_;
  std::ostream& out_;
  ProgressReport progress_;
  Metadata metadata_;
  std::string vendor_;
  size_t shapes_ = 0;
  std::optional<CsvWriter> csv_;
  std::optional<gemmd::files::OutputFile> json_, plot_;
  absl::Status written_;
  std::vector<Row> rows_;
};

// OK where a kernel was measured; else FAILED_PRECONDITION, with the first row's reason.
absl::Status CheckMeasured(absl::Span<const Row> rows);

// OK, or DATA_LOSS that names the first kernel with a wrong result.
absl::Status CheckRows(absl::Span<const Row> rows);

}  // namespace gemm::bench
