"""Sends the products of a pipeline, and those that are alike as one batch.

By the thread that has a product, or by the one that hears that there is room.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Iterator

from . import errors, multiply, together, wire
from .call import Call
from .connection import Connection
from .contract import pb
from .product import ROLES
from .stream import Stream
from .together import Together
from .window import Job, Window

# Messages of products that could be batches under way: one that is computed, one on the wire.
_BATCHES = 2


class Sending(Window):
    """Thread-safe."""

    _stream: Stream

    def __init__(self, connection: Connection, window: int, batch: bool) -> None:
        super().__init__(window)
        self._call = Call(connection, "pipeline")
        self._send_lock = threading.Lock()  # guards the next four; taken before _lock
        self._leaving = False  # a message is under way, or the stream's last one was sent
        self._outgoing = self._messages()
        self._fault: errors.GemmdError | None = None  # no message could be made
        self._in_parts = False  # of a product that takes many messages, some were sent
        # The rest is guarded by _lock. As many at a time as the server took lately: fewer after a
        # refusal, more after products that ended well.
        self._allowed = self._window
        self._alarm = False  # a timer will call _send
        # Batches under way, by numbers of their own, with their products.
        self._batches: dict[int, tuple[Together, list[Job]]] = {}
        self._clocked: set[int] = set()  # messages under way that could be batches
        # Whether products go as batches: only if the server checks no product of its own accord, as
        # no batch is checked. An older server does not say so; its first report shows it.
        server = connection.server
        self._merges: bool | None = None if server.verify == pb.VERIFY_UNSPECIFIED else True
        if (
            not batch
            or server.limits.max_batch_count <= 1
            or server.verify > pb.VERIFY_OFF
            or connection.server_checks
        ):
            self._merges = False
        self._closed = False  # nothing more is added
        self._over = False  # the stream has ended

    def _send(self) -> None:
        """Sends the next message, unless the one before is still under way."""
        with self._send_lock:
            if self._leaving:
                return
            try:
                message = next(self._outgoing)
            except BaseException as error:
                self._leaving = True
                self._fault = errors.Internal(f"the pipeline failed: {error!r}")
                self._stream.cancel()
                return
            if message is not None:
                self._leaving = True
                self._stream.send(message)
            elif self._ended():
                self._leaving = True
                self._stream.close_sending()

    def _message_left(self) -> None:
        self._call.moved()
        with self._send_lock:
            self._leaving = False
        self._send()

    def _messages(self) -> Iterator[bytes | None]:
        """What is to be sent; None where there is nothing now."""
        chunk = self._call.connection.chunk_bytes
        while True:
            jobs = self._next_jobs()
            if not jobs:
                yield None
                continue
            jobs = self._begun(jobs)
            if len(jobs) > 1:
                yield self._message_of_batch(jobs)
            elif jobs:
                if jobs[0].alike is not None:
                    with self._lock:
                        self._clocked.add(jobs[0].job_id)
                yield from self._messages_of(jobs[0], chunk)
                self._in_parts = False
            del jobs

    def _next_jobs(self) -> list[Job]:
        """The next one, with those that are alike. Not before its time, where it was refused. Those
        behind it wait too: the server is at its bound."""
        with self._lock:
            free = int(self._allowed) - self._under_way()
            if not self._todo or free < 1:
                return []
            wait = self._todo[0].not_before - time.monotonic()
            if wait > 0:
                if not self._alarm:
                    self._alarm = True
                    timer = threading.Timer(wait, self._wake)
                    timer.daemon = True
                    timer.start()
                return []
            first = next((job for job in self._todo if self._may_go(job)), None)
            if first is None:
                return []
            found = [first]
            if first.alike is not None and self._merges:
                most = min(free, together.most(self._call.connection, first.plan))
                now = time.monotonic()
                alike = (
                    job for job in self._todo
                    if job.alike == first.alike and job is not first and job.not_before <= now
                )  # fmt: skip
                found += itertools.islice(alike, most - 1)
            if len(found) == 1:
                self._todo.remove(first)
            else:
                taken = set(map(id, found))
                self._todo = deque(job for job in self._todo if id(job) not in taken)
            return found

    def _may_go(self, job: Job) -> bool:
        """Not while others that could be batches are under way, so that those that come meanwhile
        go with it: the sooner, the emptier the stream is."""
        if job.alike is None or self._merges is False:
            return True
        return len(self._clocked) < (_BATCHES if self._merges else 1)

    def _wake(self) -> None:
        with self._lock:
            self._alarm = False
        self._send()

    def _begun(self, jobs: list[Job]) -> list[Job]:
        """Those that are to be sent. The others end."""
        begun = []
        for job in jobs:
            if self._begin(job):
                begun.append(job)
            else:
                self._end(job.job_id)
        return begun

    def _ended(self) -> bool:
        """Whether nothing more will be sent: a product may have to be sent again."""
        with self._lock:
            return self._over or self._call.cancelled or (self._closed and not self._jobs)

    def _message_of_batch(self, jobs: list[Job]) -> bytes:
        batch = Together([job.plan for job in jobs])
        with self._lock:
            number = next(self._ids)
            self._batches[number] = batch, jobs
            self._clocked.add(number)
        return batch.message(number)

    def _messages_of(self, job: Job, chunk: int) -> Iterator[bytes]:
        plan, job_id = job.plan, job.job_id
        whole = multiply.fits_one_message(self._call, plan, 0)
        if whole:
            yield wire.multiply_header(job_id, plan.with_data())
            return
        self._in_parts = True
        for name, _ in plan.sent:
            plan.operand(name).payload.SetInParent()
        yield wire.multiply_header(job_id, plan.without_data())
        for name, matrix in plan.sent:
            for offset, payload in matrix.pieces(0, matrix.nbytes, chunk):
                if job_id not in self._jobs:
                    return  # the server refused it
                yield wire.operand_chunk(job_id, ROLES[name], offset, payload)
