"""Ctrl-C, held back while the main thread is inside a call.

Python may raise KeyboardInterrupt between any two steps of the main thread. Inside gRPC that
can be after a call was counted and before the thread that serves its channel was started, or
after a lock was taken and before the block that frees it was entered. Every later call on
that channel then waits for ever. So the signal is only noted there; a thread of this module
ends the RPCs under way, and KeyboardInterrupt is raised when gRPC has returned.

Only Python's own handler of SIGINT is replaced: by one that does the same, but during a call.
It is put in place by the first call on the main thread and stays, as changing it costs system
calls. A handler of the application's is left alone.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed leaves it out
import _thread
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

try:
    from grpc import _channel
except ImportError:
    _channel = None  # type: ignore[assignment]

_AGAIN_SECONDS = 0.02

# Where a blocking unary call waits. gRPC cleans up after an exception there, and only there;
# None where a version of grpcio has no such function.
_BLOCKING: Any = getattr(
    getattr(_channel, "_UnaryUnaryMultiCallable", None), "_blocking", None
)
CAN_BLOCK = _BLOCKING is not None
_raising_in = {_BLOCKING.__code__} if CAN_BLOCK else set()


def raise_in(function: Callable[..., Any]) -> None:
    """Ctrl-C is raised in this function too, which must do nothing but wait."""
    _raising_in.add(function.__code__)

# The hold of the main thread, which alone changes it; the lock orders its end and `_wake`.
_current: Hold | None = None
_end_lock = threading.Lock()


def _handler(number: int, frame: FrameType | None) -> None:
    if _current is None:
        signal.default_int_handler(number, frame)
    else:
        _current._note(frame)


class Hold:
    """Used with `with`, or with `begin` and `end`. On any other thread, and within another
    hold, it does nothing."""

    __slots__ = ("_cancel", "came")

    def __init__(self, cancel: Callable[[], None] | None = None) -> None:
        self._cancel = cancel
        #: Whether Ctrl-C was pressed meanwhile.
        self.came = False

    def begin(self) -> None:
        global _current
        if threading.get_ident() != threading.main_thread().ident or _current is not None:
            return
        # Not of `signal`: what it wraps these in takes longer than they do.
        handler = _signal.getsignal(signal.SIGINT)
        if handler is signal.default_int_handler:
            _signal.signal(signal.SIGINT, _handler)
        elif handler is not _handler:
            return
        # From here on, no KeyboardInterrupt can come.
        _current = self

    def end(self) -> None:
        """Raises KeyboardInterrupt where one was held back."""
        global _current
        if _current is not self:
            return
        if self.came:
            with _end_lock:
                _current = None
        else:
            _current = None
        if self.came:
            raise KeyboardInterrupt

    def _note(self, frame: FrameType | None) -> None:
        if not self.came:
            self.came = True
            # Not threading.Thread: its start takes locks that the main thread may hold.
            _thread.start_new_thread(self._wake, ())
        if frame is not None and frame.f_code in _raising_in:
            raise KeyboardInterrupt

    def _wake(self) -> None:
        """Ends the RPCs. A blocking call has nothing to cancel: the signal is sent again until
        it finds the main thread where it waits."""
        if self._cancel is not None:
            self._cancel()
        main = threading.main_thread().ident
        while main is not None:
            time.sleep(_AGAIN_SECONDS)
            with _end_lock:
                if _current is not self:
                    return
                signal.pthread_kill(main, signal.SIGINT)

    def __enter__(self) -> Hold:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.end()
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None
