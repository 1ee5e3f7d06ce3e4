"""What signal handlers raise, held back while the main thread is inside a call.

Python runs signal handlers between any two steps of the main thread, and what they raise goes on
from there: the KeyboardInterrupt of Ctrl-C, or the SystemExit of a handler of SIGTERM that calls
sys.exit. Inside gRPC that can be after a call was counted and before the thread that serves its
channel was started, or after a lock was taken and before the block that frees it was entered.
Every later call on that channel then waits for ever. So during a call a handler runs as always,
but what it raises is only noted; a thread of this module ends the RPCs under way, and the
exception is raised when gRPC has returned.

For that, handlers are replaced by `_guard` for the time of a call, and put back behind it.
Changing one costs a system call. Python's own handler of SIGINT is replaced by the first call on
the main thread and stays so: between calls `_guard` does the same.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed leaves it out
import _thread
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

# Those by which programs are stopped, timed and told something.
_SIGNALS = tuple(
    int(number)
    for name in ("INT", "TERM", "ALRM", "HUP", "QUIT", "USR1", "USR2", "VTALRM", "PROF", "XCPU")
    if (number := getattr(signal, f"SIG{name}", None)) is not None
)

# The main thread alone changes these two.
_current: Hold | None = None
_put_back: dict[int, Any] = {}  # the application's handlers where _guard stands


def _guard(number: int, frame: FrameType | None) -> None:
    hold = _current
    handler = _put_back.get(number, signal.default_int_handler)
    if hold is None:
        handler(number, frame)
        return
    try:
        handler(number, frame)
    except BaseException as error:
        hold._note(error)


def _restore() -> None:
    """A handler that raises meanwhile may leave others to the next hold."""
    for number in list(_put_back):
        if _signal.getsignal(number) is _guard:
            _signal.signal(number, _put_back[number])
        del _put_back[number]


def _after_fork() -> None:
    """The hold is one of the parent's main thread, and ends there alone."""
    global _current
    _current = None
    _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Hold:
    """Used with `with`, or with `begin` and `end`. On any other thread, and within another
    hold, it does nothing."""

    __slots__ = ("_cancel", "raised")

    def __init__(self, cancel: Callable[[], None] | None = None) -> None:
        """cancel: ends what the hold waits for. Called on a thread of its own."""
        self._cancel = cancel
        #: The exception that a signal handler has raised meanwhile.
        self.raised: BaseException | None = None

    def begin(self) -> None:
        global _current
        if threading.get_ident() != threading.main_thread().ident or _current is not None:
            return
        for number in _SIGNALS:
            # Not `signal.getsignal`: its wrapper takes longer than the call.
            handler = _signal.getsignal(number)
            if handler is _guard or not callable(handler):
                continue
            if handler is not signal.default_int_handler:
                _put_back[number] = handler
            _signal.signal(number, _guard)
        # From here on, no handler can raise.
        _current = self

    def end(self) -> None:
        """Raises what was held back."""
        global _current
        if _current is not self:
            return
        _current = None
        _restore()
        error, self.raised = self.raised, None
        try:
            if error is not None:
                raise error from None
        finally:
            # Its traceback has this frame and the call's, which would live until a collection.
            del error

    def _note(self, error: BaseException) -> None:
        if self.raised is not None:
            return
        self.raised = error
        if self._cancel is not None:
            # Not from here, nor by threading.Thread, whose start takes locks: the main thread
            # may hold what these need. While Python ends, there are no more threads.
            with contextlib.suppress(RuntimeError):
                _thread.start_new_thread(self._cancel, ())

    def __enter__(self) -> Hold:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
