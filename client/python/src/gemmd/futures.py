"""Futures of a pipeline's products, which know whether somebody has asked for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

from .interrupt import Hold
from .report import Report


class Waits(Protocol):
    """A pipeline, as far as futures know it."""

    def _check_waits(self, what: str) -> None:
        """FailedPrecondition where the thread would wait for what it is to do itself."""
        ...


def _open(future: Future[Any]) -> None:
    if isinstance(future, ProductFuture):
        future._ended = True
        future._latch.release()


def _call_back(fn: Callable[[Any], object], future: Future[Any]) -> None:
    try:
        fn(future)
    except Exception:
        raise  # which the future logs
    except BaseException as error:
        if threading.current_thread() is threading.main_thread():
            raise
        # A thread ends by it, and the pipeline's is needed by the other products.
        raise RuntimeError(f"a callback of a product raised {error!r}") from error


class ProductFuture(Future[Any]):
    """Its waits hold no lock: a signal handler that raises in one of concurrent.futures' can
    leave the lock taken for ever, and the pipeline's thread would wait for it."""

    def __init__(self) -> None:
        super().__init__()
        #: Which kernel ran, why, and how long each phase took. It is None until the product has
        #: ended well.
        self.report: Report | None = None
        self._latch = threading.Lock()
        self._latch.acquire()
        self._ended = False
        # Until it is done: a pipeline that is garbage is cancelled.
        self._pipeline: Waits | None = None
        # The pipeline's failed futures that nobody has asked for. This is one of them.
        self._unseen: dict[int, ProductFuture] | None = None
        # One entry for each thread in `result` or `exception`. A list needs no lock for that.
        self._askers: list[None] = []
        # Not a bound method: the future would refer to itself.
        super().add_done_callback(_open)

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        super().add_done_callback(partial(_call_back, fn))

    def _wait(self, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        if not self._ended and (pipeline := self._pipeline) is not None:
            pipeline._check_waits("result()")
        while not self._ended:
            left = 1.0 if end is None else min(1.0, end - time.monotonic())
            if left <= 0:
                return
            if self._latch.acquire(timeout=left):
                self._latch.release()

    def result(self, timeout: float | None = None) -> Any:
        self._ask(timeout)
        with Hold():
            return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._ask(timeout)
        with Hold():
            return super().exception(0)

    def cancel(self) -> bool:
        with Hold():
            return super().cancel()

    def _ask(self, timeout: float | None) -> None:
        self._askers.append(None)
        try:
            self._wait(timeout)
            self._seen()
        finally:
            self._askers.pop()

    def is_asked_for(self) -> bool:
        """Whether a thread waits for it, or is just being told."""
        return bool(self._askers)

    def fail(self, error: BaseException, unseen: dict[int, ProductFuture]) -> None:
        """Ends with `error`, and is in `unseen` until somebody asks."""
        self._unseen = unseen
        unseen[id(self)] = self
        self.set_exception(error)

    def _seen(self) -> None:
        if self._ended and self._unseen is not None:
            self._unseen.pop(id(self), None)
            self._unseen = None

    def give_up(self) -> None:
        """Nobody will ask for it."""
        if not self.cancel():
            self.add_done_callback(lambda future: future.exception())


def raise_first(errors: list[BaseException]) -> None:
    """Of those that nobody asked for, where there is one. Its note says how many others failed."""
    if not errors:
        return
    if len(errors) > 1 and hasattr(errors[0], "add_note"):  # Python 3.11
        errors[0].add_note(f"further products of the pipeline that failed: {len(errors) - 1}")
    raise errors[0]
