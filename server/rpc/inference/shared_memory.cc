#include "server/rpc/inference/shared_memory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "server/engine/bounds/bound_error.h"
#include "server/engine/bounds/options.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

constexpr char kFolder[] = "/dev/shm";
// Copies are bound by memory: a few threads reach most of its speed.
constexpr int kThreads = 4;
// Read at a time, and given to the engine at most so often before it has taken them.
constexpr uint64_t kChunkBytes = kMiB;
constexpr int kMostChunks = 2;
constexpr auto kMaxOffset = static_cast<uint64_t>(std::numeric_limits<off_t>::max());

// Whether no byte lies past the largest offset of a file.
bool Fits(uint64_t offset, uint64_t bytes) {
  uint64_t end = 0;
  return !__builtin_add_overflow(offset, bytes, &end) && end <= kMaxOffset;
}

absl::Status CheckName(absl::string_view name) {
  if (!name.empty() && name.size() <= SharedMemory::kMaxNameBytes) return absl::OkStatus();
  return FieldError(
      "name", absl::StrCat(name.size(), " bytes; it must have 1 to ", SharedMemory::kMaxNameBytes));
}

// The name of the file in /dev/shm that a key means, as shm_open(3) has it.
absl::StatusOr<std::string> FileOf(absl::string_view key) {
  absl::string_view file = key;
  if (!file.empty() && file.front() == '/') file.remove_prefix(1);
  if (file.empty() || file.size() > NAME_MAX || file == "." || file == ".." ||
      absl::StrContains(file, '/') || absl::StrContains(file, '\0')) {
    return FieldError("key", absl::StrCat(gemm::Quoted(key),
                                          "; it must be the name of a file in /dev/shm, with or "
                                          "without a slash before it"));
  }
  return std::string(file);
}

std::unique_ptr<Workers> MakeWorkers(bool enabled) {
  return enabled ? std::make_unique<Workers>("gemmd-shm", kThreads) : nullptr;
}

// Reads a part, chunk by chunk, and gives it to a job.
class RegionSender : public std::enable_shared_from_this<RegionSender> {
 public:
  RegionSender(Workers& workers, std::shared_ptr<Job> job, Role role,
               std::shared_ptr<RegionPart> part)
      : workers_(workers), job_(std::move(job)), role_(role), part_(std::move(part)) {}

  void Begin() {
    workers_.Schedule([self = shared_from_this()] { self->Send(); });
  }

 private:
  // By one thread at a time: chunks go in order.
  void Send() {
    while (const uint64_t bytes = NextBytes()) {
      auto chunk = std::make_unique_for_overwrite<char[]>(bytes);
      const absl::Status status = part_->Read(next_, {chunk.get(), bytes});
      if (!status.ok()) return job_->Cancel(status);
      const char* const data = chunk.get();
      const uint64_t at = next_;
      next_ += bytes;
      job_->Append(
          role_, at,
          absl::MakeCordFromExternal({data, bytes}, [chunk = std::move(chunk)]() mutable {}),
          [self = shared_from_this()] { self->OnConsumed(); });
    }
  }

  // Of the next chunk; 0: none, or it has to wait.
  uint64_t NextBytes() {
    const bool over = next_ == part_->bytes() || !job_->AwaitsPayload();
    MutexLock lock(mutex_);
    sending_ = !over && under_way_ < kMostChunks;
    if (!sending_) return 0;
    ++under_way_;
    return std::min(kChunkBytes, part_->bytes() - next_);
  }

  void OnConsumed() {
    {
      MutexLock lock(mutex_);
      --under_way_;
      if (std::exchange(sending_, true)) return;
    }
    Begin();
  }

  Workers& workers_;
  const std::shared_ptr<Job> job_;
  const Role role_;
  const std::shared_ptr<RegionPart> part_;
  uint64_t next_ = 0;  // of the thread that sends
  Mutex mutex_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  bool sending_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace

absl::Status RegionPart::Shrunk() const {
  return absl::FailedPreconditionError(
      absl::StrCat("the file of region ", gemm::Quoted(name_), " has become shorter"));
}

absl::Status RegionPart::Read(uint64_t at, absl::Span<char> into) const {
  while (!into.empty()) {
    const ssize_t got =
        pread(file_.get(), into.data(), into.size(), static_cast<off_t>(begin_ + at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("region ", gemm::Quoted(name_), ": ", std::strerror(errno)));
    }
    if (got == 0) return Shrunk();
    at += static_cast<uint64_t>(got);
    into.remove_prefix(static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

absl::Status RegionPart::Write(uint64_t at, absl::Span<const std::byte> from) const {
  // Else the file would grow again.
  struct stat now {};
  if (fstat(file_.get(), &now) != 0 ||
      static_cast<uint64_t>(now.st_size) < begin_ + at + from.size()) {
    return Shrunk();
  }
  while (!from.empty()) {
    const ssize_t put =
        pwrite(file_.get(), from.data(), from.size(), static_cast<off_t>(begin_ + at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("region ", gemm::Quoted(name_), ": ", std::strerror(errno)));
    }
    at += static_cast<uint64_t>(put);
    from.remove_prefix(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

SharedMemory::SharedMemory(bool enabled)
    : folder_(enabled ? open(kFolder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1),
      workers_(MakeWorkers(enabled)) {}

SharedMemory::~SharedMemory() = default;

absl::StatusOr<std::string> SharedMemory::OwnerOf(absl::string_view caller,
                                                  absl::string_view peer) const {
  if (!enabled()) {
    return absl::UnimplementedError(
        "this server takes and gives tensors in messages alone; its flag --client-shared-memory "
        "allows shared memory");
  }
  if (!absl::StartsWith(peer, "unix:")) {
    return absl::FailedPreconditionError(
        "shared memory is for clients on this machine: connect to a unix: address of the server");
  }
  return std::string(caller);
}

absl::StatusOr<UniqueFd> SharedMemory::OpenFile(const Region& region,
                                                absl::string_view field) const {
  const absl::StatusOr<std::string> file = FileOf(region.key);
  if (!file.ok()) return file.status();
  open_how how{};
  how.flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  UniqueFd fd(
      static_cast<int>(syscall(SYS_openat2, folder_.get(), file->c_str(), &how, sizeof(how))));
  const bool registered = region.inode != 0;
  const auto refuse = [&](absl::string_view why) {
    const std::string message = absl::StrCat(gemm::Quoted(region.key), ": ", why);
    return registered ? absl::FailedPreconditionError(absl::StrCat(field, ": ", message))
                      : FieldError(field, message);
  };
  if (!fd) return refuse(std::strerror(errno));
  struct stat found {};
  if (fstat(fd.get(), &found) != 0) return refuse(std::strerror(errno));
  if (!S_ISREG(found.st_mode)) return refuse("it is no regular file");
  if (found.st_uid != geteuid()) return refuse("it belongs to another user than the server's");
  if (registered && found.st_ino != region.inode) {
    return refuse("it is another file than the one that was registered: register it again");
  }
  if (static_cast<uint64_t>(found.st_size) < region.offset + region.bytes) {
    return refuse(absl::StrCat("it has ", found.st_size, " bytes; the region ends at ",
                               region.offset + region.bytes));
  }
  return fd;
}

absl::Status SharedMemory::Register(const std::string& owner, const std::string& name,
                                    Region region) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  if (region.bytes == 0 || !Fits(region.offset, region.bytes)) {
    return FieldError("byte_size", absl::StrCat(region.bytes, " bytes from ", region.offset,
                                                " on; a region has 1 byte or more, and ends "
                                                "before 2^63"));
  }
  region.inode = 0;
  const absl::StatusOr<UniqueFd> file = OpenFile(region, "key");
  if (!file.ok()) return file.status();
  struct stat found {};
  if (fstat(file->get(), &found) != 0) return absl::InternalError(std::strerror(errno));
  region.inode = found.st_ino;
  MutexLock lock(mutex_);
  auto& regions = owners_[owner];
  if (regions.count(name) > 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("name: there is a region ", gemm::Quoted(name), "; unregister it first"));
  }
  if (regions.size() >= kMostOfOwner || count_ >= kMostOfAll) {
    return BoundError({.bound = "shared-memory-regions", .caller = owner},
                      absl::StrCat("name: there are ", regions.size(),
                                   " regions of this caller and ", count_, " of all; at most ",
                                   kMostOfOwner, " and ", kMostOfAll, " can be: unregister some"));
  }
  regions.emplace(name, std::move(region));
  ++count_;
  return absl::OkStatus();
}

void SharedMemory::Unregister(const std::string& owner, const std::string& name) {
  MutexLock lock(mutex_);
  const auto regions = owners_.find(owner);
  if (regions == owners_.end()) return;
  count_ -= regions->second.erase(name);
  if (regions->second.empty()) owners_.erase(regions);
}

void SharedMemory::UnregisterAll(const std::string& owner) {
  MutexLock lock(mutex_);
  const auto regions = owners_.find(owner);
  if (regions == owners_.end()) return;
  count_ -= regions->second.size();
  owners_.erase(regions);
}

std::map<std::string, SharedMemory::Region> SharedMemory::List(const std::string& owner) const {
  MutexLock lock(mutex_);
  const auto regions = owners_.find(owner);
  return regions == owners_.end() ? std::map<std::string, Region>() : regions->second;
}

size_t SharedMemory::count() const {
  MutexLock lock(mutex_);
  return count_;
}

absl::StatusOr<std::shared_ptr<RegionPart>> SharedMemory::Open(const std::string& owner,
                                                               const std::string& name,
                                                               uint64_t offset, uint64_t bytes,
                                                               absl::string_view field) const {
  Region region;
  {
    MutexLock lock(mutex_);
    const auto regions = owners_.find(owner);
    const auto found = regions == owners_.end() ? std::map<std::string, Region>::const_iterator()
                                                : regions->second.find(name);
    if (regions == owners_.end() || found == regions->second.end()) {
      return FieldError(field, absl::StrCat("no region ", gemm::Quoted(name), " is registered"));
    }
    region = found->second;
  }
  uint64_t end = 0;
  if (__builtin_add_overflow(offset, bytes, &end) || end > region.bytes) {
    return FieldError(field, absl::StrCat(bytes, " bytes from ", offset, " on; region ",
                                          gemm::Quoted(name), " has ", region.bytes));
  }
  absl::StatusOr<UniqueFd> file = OpenFile(region, field);
  if (!file.ok()) return file.status();
  return std::make_shared<RegionPart>(*std::move(file), region.offset + offset, bytes, name);
}

void SendRegion(SharedMemory& memory, std::shared_ptr<Job> job, Role role,
                std::shared_ptr<RegionPart> part) {
  std::make_shared<RegionSender>(memory.workers(), std::move(job), role, std::move(part))->Begin();
}

void RegionResult::Write(ResultPiece piece) {
  if (piece.bytes.size() <= kSmallBytes) return WriteNow(piece);
  {
    MutexLock lock(mutex_);
    ++under_way_;
  }
  memory_.workers().Schedule([self = shared_from_this(), piece = std::move(piece)]() mutable {
    self->WriteNow(piece);
    piece = {};  // first: the engine waits for it
    absl::AnyInvocable<void(absl::Status)> then;
    absl::Status status;
    {
      MutexLock lock(self->mutex_);
      if (--self->under_way_ > 0 || self->then_ == nullptr) return;
      then = std::exchange(self->then_, nullptr);
      status = self->status_;
    }
    then(std::move(status));
  });
}

void RegionResult::WriteNow(const ResultPiece& piece) {
  const absl::Status status = part_->Write(piece.offset, piece.bytes);
  if (status.ok()) return;
  MutexLock lock(mutex_);
  status_.Update(status);
}

void RegionResult::End(absl::AnyInvocable<void(absl::Status)> then) {
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (under_way_ > 0) {
      then_ = std::move(then);
      return;
    }
    status = status_;
  }
  then(std::move(status));
}

}  // namespace gemmd
