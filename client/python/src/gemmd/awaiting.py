"""Futures of threads, awaited on an asyncio loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

Answer = TypeVar("Answer")

# With more futures out than _FEW, results are given up to so much later: waking the loop for each
# takes the interpreter away from the threads that send and receive.
_FEW = 16
_LATER_SECONDS = 0.001
# How many failed futures may be held whose errors were seen.
_SEEN = 16
# Turns of the loop until a task that waits for a future has its error. A task that awaits it needs
# one turn; one behind asyncio.wait_for, asyncio.wait or as_completed needs a few.
_TURNS = 8


class NeverBegan(Exception):
    """No thread took the work: not in time, or it was cancelled before."""


async def result(
    future: Future[Answer], stop: Callable[[], object], begin_within: float | None = None
) -> Answer:
    """What a thread makes. A cancelled task calls `stop`, which must make the thread end soon,
    and waits for that end: until then the thread uses the caller's memory.

    begin_within: NeverBegan where no thread has taken it after so many seconds, or `future` was
    cancelled meanwhile."""
    made = asyncio.wrap_future(future)
    try:
        await asyncio.wait((made,), timeout=begin_within)
        if not made.done():
            if future.cancel():
                raise NeverBegan
            await asyncio.wait((made,))
    except asyncio.CancelledError:
        stop()
        while not made.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((made,))
        if not made.cancelled():
            made.exception()  # asyncio logs one that nobody has seen
        raise
    if made.cancelled():
        raise NeverBegan
    return made.result()


class Arrivals:
    """asyncio.wrap_future for many futures that end one after another: the loop is woken once for
    those that end together. All but `_arrive` is called on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ended: deque[tuple[Future[Any], asyncio.Future[Any]]] = deque()
        self._woken = False  # the loop will call `deliver`
        self._out = 0  # futures that were not given yet
        self._failed: list[asyncio.Future[Any]] = []
        self._most_failed = _SEEN

    def wrap(self, future: Future[Any], *, in_place: bool) -> asyncio.Future[Any]:
        """in_place: the thread writes into the caller's memory until the future is done."""
        made: asyncio.Future[Any]
        if in_place:
            made = _InPlace(future, self._loop)
        else:
            made = self._loop.create_future()
            made.add_done_callback(partial(_cancel_too, future))
        self._out += 1
        future.add_done_callback(partial(self._arrive, made))
        return made

    def _arrive(self, made: asyncio.Future[Any], future: Future[Any]) -> None:
        self._ended.append((future, made))
        if not self._woken:
            self._woken = True
            wake = self.deliver if self._out <= _FEW else self._deliver_later
            with contextlib.suppress(RuntimeError):  # the loop was closed
                self._loop.call_soon_threadsafe(wake)

    def _deliver_later(self) -> None:
        self._loop.call_later(_LATER_SECONDS, self.deliver)

    def deliver(self) -> None:
        """Gives what has ended."""
        self._woken = False  # first: what ends from now on may come too late for this call
        while self._ended:
            future, made = self._ended.popleft()
            self._out -= 1
            if made.done():
                continue
            if future.cancelled() or (isinstance(made, _InPlace) and made.unwanted):
                made.cancel()
            elif (error := future.exception()) is not None:
                made.set_exception(error)
                self._note(made)
            else:
                made.set_result(future.result())

    async def settle(self) -> None:
        """Gives what has ended, and lets those ask that wait for it."""
        self.deliver()
        for _ in range(_TURNS):
            if not any(made._log_traceback for made in self._failed):
                return
            await asyncio.sleep(0)

    def _note(self, failed: asyncio.Future[Any]) -> None:
        self._failed.append(failed)
        if len(self._failed) > self._most_failed:
            self._failed = [made for made in self._failed if made._log_traceback]
            self._most_failed = 2 * len(self._failed) + _SEEN

    def take_unseen(self) -> list[BaseException]:
        """The errors that nobody has asked for so far, by their time. Now they are."""
        # asyncio's own note, by which it logs such errors where their futures are garbage.
        unseen = [made.exception() for made in self._failed if made._log_traceback]
        self._failed.clear()
        return [error for error in unseen if error is not None]


class _InPlace(asyncio.Future[Any]):
    """Cancelled, it is done only when its thread is, as a task is when its coroutine has ended."""

    def __init__(self, future: Future[Any], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._future = future
        self.unwanted = False

    def cancel(self, msg: Any | None = None) -> bool:
        if self.done():
            return False
        self.unwanted = True
        if self._future.cancel() or self._future.done():
            return super().cancel(msg)
        return True


def _cancel_too(future: Future[Any], made: asyncio.Future[Any]) -> None:
    if made.cancelled():
        future.cancel()
