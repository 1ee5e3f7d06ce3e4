"""The file that a command writes: it has all of its new content, or what it had.

As files/output_file.h of the C++ programs: the content is in .NUMBER.part beside the path until the
end, and then takes its place with owner, group and permissions. What cannot be replaced so is
written in place: a link, a device, a FIFO, a file with several names, one that is mounted by
itself, one in a folder that is not ours to write, one whose owner we cannot give it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import BinaryIO

# Files of this process that the handler of a signal removes before the process ends.
_unfinished: set[str] = set()


class Output:
    """To be opened before the work whose result it is to have. OSError names the path.

    At the end of a `with` block without an exception, the path has what was written.
    """

    def __init__(self, path: str) -> None:
        #: Whether it is what somebody reads as the standard output, as "-" is.
        self.is_stdout = False
        self._path, self._part = path, ""
        own = _own(path)
        if own:
            # Continued where it stands. Opened by its path, a file that the shell has redirected
            # there would lose its content.
            self._file: BinaryIO = os.fdopen(os.dup(own), "wb")
            self.is_stdout = own == 1 and path != os.devnull
        else:
            self._file = self._beside() or self._through()
        self._uncut = not own and not self._part

    def write(self, data: bytes | memoryview) -> int:
        """Appends. What a file that is written in place had is cut at the first one."""
        with self._named():
            self._cut()
            return self._file.write(data)

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        try:
            if kind is None:
                with self._named():
                    self._commit()
        finally:
            with contextlib.suppress(OSError):  # it may say once more what was said
                self._file.close()
            self._forget()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of a descriptor do not know its path."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None

    def _commit(self) -> None:
        self._cut()
        self._file.flush()
        if not self._part:
            self._file.close()
            return
        # Before its name is: after a crash, the path has all that it had or all that is new.
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._part, self._path)
        self._forget(gone=True)
        with contextlib.suppress(OSError):  # a folder that we may write and not read
            folder = os.open(os.path.dirname(self._path) or ".", os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _cut(self) -> None:
        if self._uncut and stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            self._file.truncate(0)
        self._uncut = False

    def _beside(self) -> BinaryIO | None:
        """The part file; None where the path is to be written in place."""
        try:
            old = os.lstat(self._path)
        except FileNotFoundError:
            if not self._path:
                raise
            old = None
        if old and (not stat.S_ISREG(old.st_mode) or old.st_nlink > 1 or _is_mount(self._path)):
            return None
        for _ in range(100):
            self._part = os.path.join(
                os.path.dirname(self._path), f".{secrets.token_hex(8)}.part"
            )
            try:
                descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                break
            except FileExistsError:
                continue
            except OSError as error:
                self._part = ""
                if old:
                    return None
                raise OSError(error.errno, error.strerror, self._path) from None
        else:
            raise OSError(errno.EEXIST, "no part file can be made beside it", self._path)
        file = os.fdopen(descriptor, "wb")
        _unfinished.add(self._part)
        _clean_up_at_signals()
        if old and not _take_over(descriptor, old):
            file.close()
            self._forget()
            return None
        return file

    def _through(self) -> BinaryIO:
        """Without O_TRUNC: what is there stays until the first write.

        And without O_CREAT at first: in a shared folder such as /tmp, the system refuses that
        for a file of another user, who may have let everybody write it.
        """
        flags = os.O_WRONLY | os.O_NOCTTY
        try:
            descriptor = os.open(self._path, flags)
        except FileNotFoundError:
            descriptor = os.open(self._path, flags | os.O_CREAT, 0o666)
        return os.fdopen(descriptor, "wb")

    def _forget(self, gone: bool = False) -> None:
        if self._part and not gone:
            with contextlib.suppress(OSError):
                os.unlink(self._part)
        _unfinished.discard(self._part)
        self._part = ""


def _own(path: str) -> int:
    """1 or 2 where the path is the standard output or the standard error; else 0."""
    if path == "-":
        return 1
    with contextlib.suppress(OSError):  # no such path; a descriptor that is closed
        status = os.stat(path)
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):
                if os.path.samestat(status, os.fstat(descriptor)):
                    return descriptor
    return 0


def _is_mount(path: str) -> bool:
    """Whether something is mounted on the file, as containers' are: it cannot be renamed over."""
    name = os.path.realpath(path).replace("\\", r"\134")
    for character, escape in ((" ", r"\040"), ("\t", r"\011"), ("\n", r"\012")):
        name = name.replace(character, escape)
    try:
        with open("/proc/self/mountinfo", encoding=None, errors="surrogateescape") as mounts:
            return any(line.split(" ")[4] == name for line in mounts)
    except OSError:
        return False


def _take_over(descriptor: int, old: os.stat_result) -> bool:
    """Gives a new file the owner, the group and the permissions of the one it is to replace."""
    try:
        new = os.fstat(descriptor)
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    except OSError:
        return False
    return True


def _clean_up_at_signals() -> None:
    """No part file is left by a signal that ends the process, unless somebody handles it."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _clean_up_and_end)


def _clean_up_and_end(number: int, frame: FrameType | None) -> None:
    for part in _unfinished:
        with contextlib.suppress(OSError):
            os.unlink(part)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
