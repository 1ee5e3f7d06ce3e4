#include "files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "files/part_files.h"

namespace gemmd::files {
namespace {

constexpr absl::Duration kReaderPatience = absl::Seconds(10);
constexpr absl::Duration kReaderPoll = absl::Milliseconds(20);
constexpr mode_t kNewFile = 0666;  // less the umask
constexpr size_t kLargestWrite = size_t{1} << 30;

// A new empty file in the folder of `path`, so that it can be renamed, and its path in `part`; -1
// and errno where there is none. Its name is short, so that the longest name that the file system
// takes can still be written. It is random, as a process that was killed leaves its file, and in a
// container the next one has the same PID.
int CreatePart(const std::string& path, std::string& part) {
  constexpr int kAttempts = 100;
  for (int i = 0; i < kAttempts; ++i) {
    uint64_t number = 0;
    if (getentropy(&number, sizeof number) != 0) return -1;
    part = absl::StrCat(path.substr(0, path.rfind('/') + 1), ".",
                        absl::Hex(number, absl::kZeroPad16), ".part");
    const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFile);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// An open FIFO that somebody reads. Without O_NONBLOCK, open would wait for good.
absl::StatusOr<int> OpenFifo(const std::string& path) {
  const absl::Time limit = absl::Now() + kReaderPatience;
  int fd = -1;
  while ((fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO) {
    if (absl::Now() >= limit) {
      return absl::UnavailableError(absl::StrCat(path,
                                                 ": nobody opened this FIFO to read it within ",
                                                 absl::FormatDuration(kReaderPatience)));
    }
    absl::SleepFor(kReaderPoll);
  }
  if (fd < 0) return SystemError(errno, path, "cannot be opened");
  if (fcntl(fd, F_SETFL, O_WRONLY) != 0) {
    const int error = errno;
    (void)::close(fd);
    return SystemError(error, path, "cannot be opened");
  }
  return fd;
}

bool Names(const std::string& path, int fd) {
  if (path == kStandardOutput) return fd == STDOUT_FILENO;
  struct stat named, open;
  return stat(path.c_str(), &named) == 0 && fstat(fd, &open) == 0 && named.st_dev == open.st_dev &&
         named.st_ino == open.st_ino;
}

bool IsOwnOutput(const std::string& path) {
  return Names(path, STDOUT_FILENO) || Names(path, STDERR_FILENO);
}

struct Through {
  int fd;
  bool own_output;    // standard output or standard error
  bool made = false;  // there was no file of this name
};

// The content of a file stays until it is cut.
absl::StatusOr<Through> OpenThrough(const std::string& path) {
  // Opened again, it would be written from its beginning, over the output that is there already.
  for (const int own : {STDOUT_FILENO, STDERR_FILENO}) {
    if (!Names(path, own)) continue;
    const int fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return SystemError(errno, path, "cannot be opened to be written");
    return Through{fd, true};
  }
  struct stat target;
  if (stat(path.c_str(), &target) == 0 && S_ISFIFO(target.st_mode)) {
    const absl::StatusOr<int> fifo = OpenFifo(path);
    if (!fifo.ok()) return fifo.status();
    return Through{*fifo, false};
  }
  // Without O_CREAT at first: in a shared folder such as /tmp, the system refuses that for a file
  // of another user, who may have let everybody write it.
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
  int fd = ::open(path.c_str(), kFlags);
  const bool missing = fd < 0 && errno == ENOENT;
  if (missing) fd = ::open(path.c_str(), kFlags | O_CREAT, kNewFile);
  if (fd < 0) return SystemError(errno, path, "cannot be opened to be written");
  const bool is_link = lstat(path.c_str(), &target) == 0 && S_ISLNK(target.st_mode);
  return Through{fd, false, missing && !is_link};
}

// Whether a rename over what is at the path would change nothing but its content. No: a link, a
// device, a file with other names; a file that is mounted by itself, as containers' are, and one
// that may not be replaced (chattr).
bool Replaceable(const std::string& path, const struct stat& there) {
  if (!S_ISREG(there.st_mode) || there.st_nlink > 1) return false;
  constexpr uint64_t kBound = STATX_ATTR_MOUNT_ROOT | STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND;
  struct statx more = {};
  return statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &more) != 0 ||
         (more.stx_attributes & kBound) == 0;
}

// Gives a new file the owner, the group and the permissions of the one that it is to replace.
bool TakeOver(int fd, const struct stat& old) {
  struct stat now;
  if (fstat(fd, &now) != 0) return false;
  const bool same = now.st_uid == old.st_uid && now.st_gid == old.st_gid;
  if (!same && fchown(fd, old.st_uid, old.st_gid) != 0) return false;
  return fchmod(fd, old.st_mode & 07777) == 0;
}

// So that a new name is still there after a crash. A folder that cannot be read, or a file system
// that knows no such thing, leaves that open.
absl::Status SyncFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::OkStatus();
  const int error = fsync(fd) == 0 ? 0 : errno;
  (void)::close(fd);
  if (error == 0 || error == EINVAL) return absl::OkStatus();
  return SystemError(error, path, "cannot be written");
}

}  // namespace

struct OutputFile::Part {
  explicit Part(std::string path) : file(std::move(path)) {}
  PartFile file;
};

absl::Status SystemError(int error, const std::string& path, absl::string_view what) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

absl::StatusOr<OutputFile> OutputFile::Open(std::string path, Visible visible) {
  if (visible == Visible::kAsItGrows || IsOwnOutput(path)) {
    return WriteThrough(std::move(path), visible);
  }
  struct stat old = {};
  const bool exists = lstat(path.c_str(), &old) == 0;
  // Also of a name that is too long, which the part's is not.
  if (!exists && (errno != ENOENT || path.empty())) {
    return SystemError(errno, path, "cannot be created");
  }
  if (exists && !Replaceable(path, old)) return WriteThrough(std::move(path), visible);
  std::string part;
  const int fd = CreatePart(path, part);
  if (fd < 0) {
    // A file may be writable in a folder that is not.
    if (exists) return WriteThrough(std::move(path), visible);
    return SystemError(errno, path, "cannot be created");
  }
  OutputFile file(path, fd, std::make_unique<Part>(std::move(part)));
  if (exists && !TakeOver(fd, old)) return WriteThrough(std::move(path), visible);
  return file;
}

absl::StatusOr<OutputFile> OutputFile::WriteThrough(std::string path, Visible visible) {
  const absl::StatusOr<Through> through = OpenThrough(path);
  if (!through.ok()) return through.status();
  if (path == kStandardOutput) path = "standard output";  // in errors
  OutputFile file(std::move(path), through->fd, nullptr);
  struct stat there;
  if (through->own_output || fstat(through->fd, &there) != 0) return file;
  file.uncut_ = S_ISREG(there.st_mode);
  file.made_ = through->made;
  file.loses_ = file.uncut_ && visible == Visible::kWhole && there.st_size > 0;
  return file;
}

OutputFile::OutputFile(std::string path, int fd, std::unique_ptr<Part> part)
    : path_(std::move(path)), fd_(fd), part_(std::move(part)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      uncut_(other.uncut_),
      loses_(other.loses_),
      made_(other.made_),
      part_(std::move(other.part_)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(uncut_, other.uncut_);
  std::swap(loses_, other.loses_);
  std::swap(made_, other.made_);
  std::swap(part_, other.part_);
  return *this;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) (void)::close(fd_);
  // Opened for work that did not begin.
  if (fd_ >= 0 && made_ && uncut_) (void)unlink(path_.c_str());
  if (part_ != nullptr) (void)unlink(part_->file.path().c_str());
}

absl::Status OutputFile::Cut() {
  if (!std::exchange(uncut_, false)) return absl::OkStatus();
  if (ftruncate(fd_, 0) == 0) return absl::OkStatus();
  return SystemError(errno, path_, "cannot be cut");
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  if (absl::Status status = Cut(); !status.ok()) return status;
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Unwritten();
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Unwritten() const {
  return SystemError(errno, path_,
                     loses_ ? "cannot be written, and what it had is gone, as it could not be "
                              "replaced but only written in place"
                            : "cannot be written");
}

absl::Status OutputFile::Close() {
  if (absl::Status status = Cut(); !status.ok()) return status;
  // Before its name is: after a crash, the path has all that it had or all that is new.
  if (part_ != nullptr && fsync(fd_) != 0) return Unwritten();
  // Some file systems tell of a failed write only here.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) return Unwritten();
  if (part_ == nullptr) return absl::OkStatus();
  if (rename(part_->file.path().c_str(), path_.c_str()) != 0) {
    return SystemError(errno, path_, "cannot be replaced");
  }
  part_.reset();
  return SyncFolder(path_);
}

bool IsStandardOutput(const std::string& path) {
  struct stat output;
  if (fstat(STDOUT_FILENO, &output) != 0) return false;
  return (!S_ISCHR(output.st_mode) || isatty(STDOUT_FILENO) != 0) && Names(path, STDOUT_FILENO);
}

bool IsTerminal(const std::string& path) {
  if (path == kStandardOutput) return isatty(STDOUT_FILENO) != 0;
  struct stat there;
  if (stat(path.c_str(), &there) != 0 || !S_ISCHR(there.st_mode)) return false;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return false;
  const bool is_terminal = isatty(fd) != 0;
  (void)::close(fd);
  return is_terminal;
}

absl::Status WriteFile(const std::string& path, absl::string_view content) {
  absl::StatusOr<OutputFile> file = OutputFile::Open(path);
  if (!file.ok()) return file.status();
  if (absl::Status status = file->Write(content); !status.ok()) return status;
  return file->Close();
}

}  // namespace gemmd::files
