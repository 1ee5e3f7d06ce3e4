"""The products of a pipeline that are under way, and the room for more."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any

from . import errors, together, wire
from .futures import ProductFuture
from .product import Plan
from .results import Target

# The share of the window that ends before a caller that waits for room is woken. Waking it for
# each product takes the interpreter away from the threads that send and receive.
_BUNCH = 1 / 8


class Job:
    """One product: its plan until it is sent, its memory until it has arrived."""

    __slots__ = (
        "alike", "collect", "future", "job_id", "not_before", "plan", "sink", "target", "tries",
    )  # fmt: skip

    def __init__(self, job_id: int, plan: Plan, collect: bool) -> None:
        self.collect = collect
        self.job_id = job_id
        self.plan = plan
        self.target: Target = plan.target()
        self.sink = wire.Sink(self.target.memory, 0, len(self.target.memory))
        self.future = ProductFuture()
        # When it is sent: the server may refuse it for a bound that passes.
        self.not_before = 0.0
        self.tries = 1
        # The same for products that may go as one batch.
        self.alike = together.key(plan)

    def again(self, job_id: int, wait: float) -> None:
        """Another attempt. Its number is another one: of the last, something may yet come."""
        self.job_id = job_id
        self.sink = wire.Sink(self.target.memory, 0, len(self.target.memory))
        self.not_before = time.monotonic() + wait
        self.tries += 1


class Window:
    """At most `window` products are under way at a time. Thread-safe."""

    def __init__(self, window: int) -> None:
        # A token for each product that may yet be under way.
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._owed = 0  # room that callbacks took before it was there; guarded by _lock
        self._bunch = max(1, int(window * _BUNCH))
        self._left_room = 0  # by products that have ended, and not yet in _room
        self._window = float(window)
        self._lock = threading.Lock()  # guards what follows
        self._ids = itertools.count(1)
        self._jobs: dict[int, Job] = {}
        self._todo: deque[Job] = deque()
        self._done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._give_room(window)

    def _await_room(self) -> None:
        while True:
            try:
                return self._room.get(timeout=1.0)
            except queue.Empty:
                self._check()

    def _owe_room(self) -> None:
        """In a callback, on the thread that makes room: the product takes that of one that ends."""
        with contextlib.suppress(queue.Empty):
            return self._room.get_nowait()
        with self._lock:
            if self._owed >= self._window:
                raise errors.ResourceExhausted(
                    f"window is {self._window:g}, and callbacks have added as many products beyond "
                    "it; a callback may add one for each that ends: add more from another thread"
                )
            self._owed += 1
        return None

    def _check(self) -> None:
        """An error where no product can be added any more."""
        raise NotImplementedError

    def _under_way(self) -> int:
        return len(self._jobs) - len(self._todo)

    def _begin(self, job: Job) -> bool:
        """Whether the product is to be sent: it may have failed or been cancelled."""
        with self._lock:
            alive = job.job_id in self._jobs
            return alive and (job.future.running() or job.future.set_running_or_notify_cancel())

    def _end(self, job_id: int) -> None:
        with self._lock:
            job = self._jobs.pop(job_id, None)
            if job is None:
                return
            self._left_room += 1
            if self._left_room == self._bunch:
                self._give_room(self._left_room)
                self._left_room = 0
        job.future._pipeline = None
        if job.collect:
            self._done.put(job.future)

    def _give_room(self, count: int) -> None:
        paid = min(self._owed, count)
        self._owed -= paid
        for _ in range(count - paid):
            self._room.put(None)
