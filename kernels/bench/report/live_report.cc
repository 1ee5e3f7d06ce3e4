#include "kernels/bench/report/live_report.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/bench/report/plot.h"
#include "kernels/bench/report/report_table.h"
#include "kernels/bench/report/text_layout.h"

namespace gemm::bench {
namespace {

using gemmd::files::OutputFile;

absl::Status OpenIfNamed(const std::string& path, std::optional<OutputFile>& file) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<OutputFile> opened = OutputFile::Open(path);
  if (!opened.ok()) return opened.status();
  file = *std::move(opened);
  return absl::OkStatus();
}

absl::Status WriteAll(std::optional<OutputFile>& file, absl::string_view text) {
  absl::Status status = file->Write(text);
  if (status.ok()) status = file->Close();
  file.reset();
  return status;
}

constexpr absl::Duration kRedrawTime = absl::Milliseconds(200);
// Used if the terminal does not say how wide it is.
constexpr size_t kUsualTerminal = 80;
constexpr absl::Duration kLineTime = absl::Seconds(10);
// Returns to the first column and erases the line (ECMA-48, EL).
constexpr const char* kEraseLine = "\r\x1b[K";

std::string WaitText(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  return seconds < 100 ? absl::StrFormat("%.0f s", seconds)
                       : absl::StrFormat("%.0f min", seconds / 60);
}

}  // namespace

absl::Status LiveReport::Open() {
  if (!outputs_.csv.empty()) {
    absl::StatusOr<CsvWriter> created = CsvWriter::Create(outputs_.csv);
    if (!created.ok()) return created.status();
    csv_ = *std::move(created);
  }
  absl::Status opened = OpenIfNamed(outputs_.json, json_);
  if (opened.ok()) opened = OpenIfNamed(outputs_.plot, plot_);
  return opened;
}

absl::Status LiveReport::Begin(Metadata metadata, std::string vendor, size_t shapes) {
  metadata_ = std::move(metadata);
  vendor_ = std::move(vendor);
  shapes_ = shapes;
  if (csv_) {
    if (absl::Status status = csv_->Begin(); !status.ok()) return status;
  }
  if (outputs_.tables != Outputs::Tables::kNone) {
    PrintMetadata(metadata_, out_, outputs_.width);
    out_ << std::flush;
  }
  return absl::OkStatus();
}

void LiveReport::Update(const Progress& progress) {
  if (!outputs_.quiet) progress_.Update(progress);
}

void LiveReport::AddMetadata(std::string label, std::string value) {
  metadata_.emplace_back(std::move(label), std::move(value));
}

void LiveReport::Add(absl::Span<const Row> rows, size_t index) {
  progress_.Erase();
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  if (outputs_.tables == Outputs::Tables::kAll) {
    PrintRows(rows, index, shapes_, vendor_, out_, outputs_.width);
  }
  out_ << std::flush;
  if (csv_) written_.Update(csv_->Write(rows));
}

absl::Status LiveReport::Finish() {
  progress_.Erase();
  if (outputs_.tables != Outputs::Tables::kNone && !rows_.empty()) {
    PrintSummary(rows_, vendor_, out_, outputs_.width);
  }
  absl::Status status = written_;
  if (csv_) status.Update(csv_->Close());
  csv_.reset();
  if (json_) status.Update(WriteAll(json_, ToJson(metadata_, rows_)));
  if (plot_) status.Update(WriteAll(plot_, PlotSvg(rows_, metadata_, outputs_.suite)));
  return status;
}

absl::Status CheckMeasured(absl::Span<const Row> rows) {
  const Row* without = nullptr;
  for (const Row& row : rows) {
    if (row.measured) return absl::OkStatus();
    if (without == nullptr) without = &row;
  }
  if (without == nullptr) return absl::FailedPreconditionError("nothing was measured");
  return absl::FailedPreconditionError(absl::StrCat("nothing was measured: ", without->kernel,
                                                    " on ", ShapeName(without->shape), ": ",
                                                    without->note));
}

absl::Status CheckRows(absl::Span<const Row> rows) {
  for (const Row& row : rows) {
    if (!row.measured || row.right()) continue;
    return absl::DataLossError(absl::StrCat(row.kernel, " on ", ShapeName(row.shape),
                                            " is wrong by ", row.error.of_bound,
                                            " times what is allowed"));
  }
  return absl::OkStatus();
}

std::string ProgressText(const Progress& progress) {
  std::string text = absl::StrCat("shape ", progress.shape + 1, "/", progress.shapes, " ",
                                  ShapeName(progress.at), "  ", WaitText(progress.elapsed));
  if (progress.left != absl::InfiniteDuration()) {
    absl::StrAppend(&text, ", about ", WaitText(progress.left), " left");
  }
  return absl::StrCat(text, "  ", progress.step);
}

void ProgressReport::Update(const Progress& progress) {
  if (progress.elapsed - last_ < (terminal_ ? kRedrawTime : kLineTime)) return;
  last_ = progress.elapsed;
  if (terminal_) {
    // A line that the terminal broke could not be erased.
    const size_t width = TerminalWidth(STDERR_FILENO);
    const size_t room = width == 0 ? kUsualTerminal : width;
    out_ << kEraseLine << ProgressText(progress).substr(0, room - 1) << std::flush;
    drawn_ = true;
  } else {
    out_ << ProgressText(progress) << std::endl;
  }
}

void ProgressReport::Erase() {
  if (drawn_) out_ << kEraseLine << std::flush;
  drawn_ = false;
}

}  // namespace gemm::bench
