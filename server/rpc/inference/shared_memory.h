// Memory of clients on this machine: parts of files in /dev/shm that they register by name, as
// Triton's clients do.
//
// The server maps no such file: its owner could shrink it, and the next access would end the
// process. It reads by pread(2) and writes by pwrite(2). A region keeps no file open, and so no
// memory: each product opens the files anew.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/base/mutex.h"
#include "server/base/unique_fd.h"
#include "server/base/workers.h"
#include "server/engine/job/job.h"

namespace gemmd {

// An open part of a region. Thread-safe.
class RegionPart {
 public:
  // `bytes` from `begin` on of `file`; `name` is the region's.
  RegionPart(UniqueFd file, uint64_t begin, uint64_t bytes, std::string name)
      : file_(std::move(file)), begin_(begin), bytes_(bytes), name_(std::move(name)) {}

  uint64_t bytes() const { return bytes_; }

  // `at` is an offset in the part. FAILED_PRECONDITION where the file is shorter by now.
  absl::Status Read(uint64_t at, absl::Span<char> into) const;
  absl::Status Write(uint64_t at, absl::Span<const std::byte> from) const;

 private:
  absl::Status Shrunk() const;

  const UniqueFd file_;
  const uint64_t begin_;
  const uint64_t bytes_;
  const std::string name_;
};

// The regions that clients have registered. Thread-safe.
class SharedMemory {
 public:
  static constexpr size_t kMostOfOwner = 1024;
  static constexpr size_t kMostOfAll = 4096;
  static constexpr size_t kMaxNameBytes = 1024;

  struct Region {
    std::string key;  // "/name": the file /dev/shm/name
    uint64_t offset = 0;
    uint64_t bytes = 0;
    ino_t inode = 0;
  };

  // `enabled`: --client-shared-memory.
  explicit SharedMemory(bool enabled);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  bool enabled() const { return workers_ != nullptr; }

  // The owner of what a call registers: the caller's name. UNIMPLEMENTED if shared memory is not
  // enabled, FAILED_PRECONDITION if the peer is not on a Unix socket.
  absl::StatusOr<std::string> OwnerOf(absl::string_view caller, absl::string_view peer) const;

  // ALREADY_EXISTS if the owner has a region of this name. INVALID_ARGUMENT unless `key` names a
  // regular file in /dev/shm of this process's user that has all of the region's bytes.
  // RESOURCE_EXHAUSTED if there are too many regions.
  absl::Status Register(const std::string& owner, const std::string& name, Region region);
  // Does nothing if there is none. A product under way keeps its files open.
  void Unregister(const std::string& owner, const std::string& name);
  void UnregisterAll(const std::string& owner);
  std::map<std::string, Region> List(const std::string& owner) const;
  size_t count() const;

  // `bytes` of a region from `offset` on. INVALID_ARGUMENT names `field`; FAILED_PRECONDITION if
  // the file is gone, is another one, or is shorter by now.
  absl::StatusOr<std::shared_ptr<RegionPart>> Open(const std::string& owner,
                                                   const std::string& name, uint64_t offset,
                                                   uint64_t bytes, absl::string_view field) const;

  // Runs copies of more than a few pages. Only if enabled.
  Workers& workers() { return *workers_; }

 private:
  absl::StatusOr<UniqueFd> OpenFile(const Region& region, absl::string_view field) const;

  const UniqueFd folder_;  // /dev/shm
  const std::unique_ptr<Workers> workers_;
  mutable Mutex mutex_;
  std::map<std::string, std::map<std::string, Region>> owners_ ABSL_GUARDED_BY(mutex_);
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Sends the operand `role` of a job that was started. The job ends with an error where the part
// cannot be read.
void SendRegion(SharedMemory& memory, std::shared_ptr<Job> job, Role role,
                std::shared_ptr<RegionPart> part);

// Writes a result into a part of a region.
class RegionResult : public std::enable_shared_from_this<RegionResult> {
 public:
  RegionResult(SharedMemory& memory, std::shared_ptr<RegionPart> part)
      : memory_(memory), part_(std::move(part)) {}

  uint64_t bytes() const { return part_->bytes(); }

  void Write(ResultPiece piece);
  // Calls `then` once no write is under way, with the first error: at once, or on another thread.
  // Call it last.
  void End(absl::AnyInvocable<void(absl::Status)> then);

 private:
  void WriteNow(const ResultPiece& piece);

  SharedMemory& memory_;
  const std::shared_ptr<RegionPart> part_;
  Mutex mutex_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  absl::AnyInvocable<void(absl::Status)> then_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
