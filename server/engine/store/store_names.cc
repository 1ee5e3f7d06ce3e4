// The store's names: who may take one, and how it passes from one matrix to the next.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gemm/quote.h"
#include "server/engine/store/store.h"

namespace gemmd {
namespace {

absl::Status VersionError(const KeepSpec& keep, absl::string_view instead) {
  return absl::AbortedError(
      absl::StrCat("keep.if_version is ", *keep.if_version, ", but ", instead, ": read it again"));
}

}  // namespace

bool MatrixStore::ReservesName(const KeepSpec& keep) {
  return !keep.name.empty() && (!keep.replace || keep.if_version == 0);
}

absl::Status MatrixStore::CheckName(const KeepSpec& keep) const {
  if (keep.name.empty()) return absl::OkStatus();
  const auto name = [&keep] { return gemm::Quoted(keep.name); };
  const auto named = by_name_.find(NameOf(keep));
  if (named == by_name_.end()) {
    if (keep.if_version.value_or(0) == 0) return absl::OkStatus();
    return VersionError(keep, absl::StrCat("no matrix has the name ", name()));
  }
  if (!keep.replace) {
    return absl::AlreadyExistsError(absl::StrCat(
        "keep.name ", name(), " names another matrix: delete that one first, or replace it"));
  }
  const Named& current = named->second;
  if (current.owner != keep.owner) {
    return absl::PermissionDeniedError(
        absl::StrCat("keep.replace: the shared matrix with name ", name(), " belongs to ",
                     gemm::Quoted(current.owner), ": its owner alone may replace it"));
  }
  if (!keep.if_version.has_value()) return absl::OkStatus();
  if (current.version == 0) {
    return VersionError(keep, absl::StrCat("another call is putting a matrix of the name ", name(),
                                           ", which has no version yet"));
  }
  if (*keep.if_version == current.version) return absl::OkStatus();
  return VersionError(
      keep, absl::StrCat("the matrix with name ", name(), " has version ", current.version));
}

absl::Status MatrixStore::CheckOvertaken(const KeepSpec& keep, bool replaced) {
  if (!replaced || !keep.if_version.has_value()) return absl::OkStatus();
  return VersionError(keep, absl::StrCat("another matrix took the name ", gemm::Quoted(keep.name),
                                         " before this one was complete"));
}

absl::Status MatrixStore::TakeName(ResidentMatrix& matrix, Dropped& dropped) {
  const KeepSpec& keep = matrix.room.keep_;
  const std::string& id = matrix.record.id;
  const NameKey key = NameOf(keep);
  const auto named = keep.name.empty() ? by_name_.end() : by_name_.find(key);
  const bool reserved = named != by_name_.end() && named->second.id == id;
  absl::Status status = reserved ? absl::OkStatus() : CheckName(keep);
  if (!status.ok()) return status;
  if (named != by_name_.end() && !reserved) {
    if (const auto old = by_id_.find(named->second.id); old != by_id_.end()) {
      dropped = Erase(old);
    } else {
      deleted_early_.emplace(named->second.id, /*replaced=*/true);
    }
  }
  // Versions begin with the wall clock, so that none from before a restart is given again.
  const auto now = static_cast<uint64_t>(absl::ToUnixMicros(absl::Now()));
  last_version_ = std::max(last_version_ + 1, now);
  matrix.record.version = last_version_;
  if (!keep.name.empty()) {
    by_name_[key] =
        Named{id, keep.owner, matrix.room.device_index_, matrix.room.bytes_, last_version_};
    ForgetLost(key);
  }
  return absl::OkStatus();
}

}  // namespace gemmd
