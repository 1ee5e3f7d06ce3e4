"""Ctrl-C, held back while the main thread is inside a call.

Python may raise KeyboardInterrupt between any two steps of the main thread. Inside gRPC that
can be after a call was counted and before the thread that serves its channel was started, or
after a lock was taken and before the block that frees it was entered. Every later call on
that channel then waits for ever. So the signal is only noted there; a thread of this module
ends the RPCs under way, and KeyboardInterrupt is raised when gRPC has returned.

Only Python's own handler of SIGINT is replaced, and only during a call. A handler of the
application's is left in place.
"""

from __future__ import annotations

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


class Hold:
    """Used with `with`, or with `begin` and `end`. On any other thread it does nothing."""

    __slots__ = ("_cancel", "_installed", "_lock", "came")

    def __init__(self, cancel: Callable[[], None] | None = None) -> None:
        self._cancel = cancel
        self._installed = False
        self._lock: threading.Lock | None = None
        #: Whether Ctrl-C was pressed meanwhile.
        self.came = False

    def begin(self) -> None:
        if (
            threading.get_ident() == threading.main_thread().ident
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            self._lock = threading.Lock()
            # From its return on, no KeyboardInterrupt can come.
            signal.signal(signal.SIGINT, self._note)
            self._installed = True

    def end(self) -> None:
        """Raises KeyboardInterrupt where one was held back."""
        if not self._installed or self._lock is None:
            return
        with self._lock:
            self._installed = False
        # Runs `_note` first for a signal that is pending.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.came:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self.came:
            self.came = True
            # Not threading.Thread: its start takes locks that the main thread may hold.
            _thread.start_new_thread(self._wake, ())
        if self._installed and frame is not None and CAN_BLOCK:
            if frame.f_code is _BLOCKING.__code__:
                raise KeyboardInterrupt

    def _wake(self) -> None:
        """Ends the RPCs. A blocking call has nothing to cancel: the signal is sent again until
        it finds the main thread where it waits."""
        if self._cancel is not None:
            self._cancel()
        main = threading.main_thread().ident
        lock = self._lock
        while lock is not None and main is not None:
            time.sleep(_AGAIN_SECONDS)
            with lock:
                if not self._installed:
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
