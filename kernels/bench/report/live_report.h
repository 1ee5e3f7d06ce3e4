// Shows a benchmark: progress and tables while it runs, then means and files.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "files/output_file.h"
#include "kernels/bench/report/report_files.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

struct Outputs {
  // Tables: all, the means alone, none.
  enum class Tables { kAll, kMeans, kNone };

  Tables tables = Tables::kAll;
  bool quiet = false;  // no progress
  // The width of the terminal that the tables go to; 0: no bound.
  size_t width = 0;
  // The name of the shapes, if they have one; for the picture.
  std::string suite;
  // Empty: no such file.
  std::string csv, json, plot;
};

// "shape 12/125 4096x4096x512  35 s, about 3 min left  hgemm_mma_...".
std::string ProgressText(const Progress& progress);

// One line that is drawn over on a terminal; elsewhere a line now and then.
class ProgressReport {
 public:
  ProgressReport(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  void Update(const Progress& progress);
  // Call before other output goes to the same terminal.
  void Erase();

 private:
  std::ostream& out_;
  const bool terminal_;
  bool drawn_ = false;
  absl::Duration last_ = absl::ZeroDuration();  // elapsed at the last update
};

// Not thread-safe.
class LiveReport {
 public:
  // Tables go to `out`, progress to `err`.
  LiveReport(const Outputs& outputs, std::ostream& out, std::ostream& err, bool err_is_terminal)
      : outputs_(outputs), out_(out), progress_(err, err_is_terminal) {}

  // Call first, so that a path that cannot be written costs no time. An error names it.
  absl::Status Open();
  // Call before anything is measured. `vendor` names the baseline.
  absl::Status Begin(Metadata metadata, std::string vendor, size_t shapes);
  void Update(const Progress& progress);
  // Adds an entry that became known later. The files of Finish have it.
  void AddMetadata(std::string label, std::string value);
  // The rows of one shape, types and layout; `index` counts shapes from 0.
  void Add(absl::Span<const Row> rows, size_t index);
  // Call after the last row, also of a run cut short. An error names the first file
  // that could not be written.
  absl::Status Finish();

  // True if the reader of the output is gone, so that there is no need to measure on.
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

// OK if a kernel was measured; else FAILED_PRECONDITION, with the first row's reason.
absl::Status CheckMeasured(absl::Span<const Row> rows);

// OK, or DATA_LOSS that names the first kernel with a wrong result.
absl::Status CheckRows(absl::Span<const Row> rows);

}  // namespace gemm::bench
