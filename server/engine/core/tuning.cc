#include "server/engine/core/tuning.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gemm/quote.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {
namespace {

constexpr absl::string_view kTablesFlag = "--tuning-tables";
constexpr absl::string_view kIdleFlag = "--idle-tuning";

absl::Status CannotRead(absl::string_view flag, const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", gemm::Quoted(path), ": ", why, "; allowed: files that can be read"));
}

// Reads a little more than the largest table.
absl::StatusOr<std::string> ReadDescriptor(int file, absl::string_view flag,
                                           const std::string& path) {
  struct stat status {};
  if (fstat(file, &status) != 0) return CannotRead(flag, path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return CannotRead(flag, path, "not a regular file");
  std::string text;
  std::array<char, 1 << 16> piece;
  while (text.size() <= gemm::kMaxTuningBytes) {
    const ssize_t bytes = read(file, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return CannotRead(flag, path, std::strerror(errno));
    if (bytes == 0) break;
    text.append(piece.data(), static_cast<size_t>(bytes));
  }
  return text;
}

absl::StatusOr<std::string> ReadText(absl::string_view flag, const std::string& path) {
  // A FIFO would be waited for.
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return CannotRead(flag, path, std::strerror(errno));
  absl::StatusOr<std::string> text = ReadDescriptor(file, flag, path);
  close(file);
  return text;
}

absl::StatusOr<gemm::TuningTable> ReadTable(absl::string_view flag, const std::string& path) {
  const absl::StatusOr<std::string> text = ReadText(flag, path);
  if (!text.ok()) return text.status();
  return gemm::ParseTuningTable(*text, absl::StrCat(flag, ": ", path));
}

absl::Status MergeInto(gemm::TuningTable& all, const absl::StatusOr<gemm::TuningTable>& table,
                       absl::string_view flag, absl::string_view path) {
  if (!table.ok()) return table.status();
  const absl::Status merged = all.Merge(*table);
  if (merged.ok()) return merged;
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path, ": ", merged.message()));
}

}  // namespace

Tuning::Tuning(const gemm::TuningTable& table, absl::Span<const std::unique_ptr<Device>> devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    choices_.push_back(std::make_unique<KernelChoices>());
  }
  load_.entries = table.size();
  if (table.size() == 0) return;
  std::set<std::string> skipped;
  devices_.reserve(devices.size());
  for (const auto& device : devices) {
    const DeviceInfoRecord& info = device->info();
    const TunedKernels& tuned = devices_.emplace_back(table, info.machine, info.caps);
    load_.used = std::max(load_.used, tuned.size());
    load_.other_versions = std::max(load_.other_versions, tuned.of_other_versions());
    skipped.insert(tuned.skipped().begin(), tuned.skipped().end());
  }
  load_.skipped.assign(skipped.begin(), skipped.end());
}

absl::StatusOr<gemm::TuningTable> ReadTuningTables(absl::string_view paths,
                                                   const std::string& idle_tuning) {
  gemm::TuningTable all;
  for (const absl::string_view path : absl::StrSplit(paths, ',', absl::SkipWhitespace())) {
    const auto table = ReadTable(kTablesFlag, std::string(path));
    if (absl::Status merged = MergeInto(all, table, kTablesFlag, path); !merged.ok()) {
      return merged;
    }
  }
  const auto found = ReadIdleTuning(idle_tuning);
  if (absl::Status merged = MergeInto(all, found, kIdleFlag, idle_tuning); !merged.ok()) {
    return merged;
  }
  return all;
}

absl::StatusOr<gemm::TuningTable> ReadIdleTuning(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return gemm::TuningTable();
  return ReadTable(kIdleFlag, path);
}

void TuningReloads::Read(Done done) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    if (waiting_.size() < kMostWaiting) {
      first = waiting_.empty();
      waiting_.push_back(std::move(done));
      done = nullptr;
    }
  }
  if (done != nullptr) {
    return done(BoundError({.bound = "waiting-reloads", .retry_after = kRetrySoon},
                           absl::StrCat(kMostWaiting,
                                        " calls wait already for the tuning tables to be read, the "
                                        "most that may: try again later")));
  }
  if (first) reader_.Schedule([this] { ReadForAll(); });
}

void TuningReloads::ReadForAll() {
  std::vector<Done> waited;
  {
    MutexLock lock(mutex_);
    waited.swap(waiting_);
  }
  const absl::StatusOr<TuningLoad> load = read_();
  for (Done& done : waited) done(load);
}

}  // namespace gemmd
