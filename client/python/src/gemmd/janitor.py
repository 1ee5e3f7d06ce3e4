"""Deletes matrices in the background, renews those without a name, and ends pipelines that were
dropped.

A handle may be dropped anywhere, also inside gRPC or while a lock is held, so its end only
puts a name into a queue.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from . import checks, ends
from .call import Call
from .connection import Connection
from .contract import pb
from .errors import InvalidArgument
from .renewals import Renewals

_TIMEOUT = 2.0
_STOP = object()
_DROPPED = object()  # the client was
# How many matrices that could not be deleted are named.
_NAMED = 8
# Handles and pipelines that are garbage with their client are destroyed within this time behind it.
_BEHIND_SECONDS = 1.0


def by_id(matrix_id: str) -> pb.MatrixRef:
    return pb.MatrixRef(id=matrix_id)


def one_of(
    name: str | None,
    matrix_id: str | None,
    *,
    shared: bool = False,
    owner: str | None = None,
    version: int | None = None,
) -> pb.MatrixRef:
    """By its name or its id. InvalidArgument where not exactly one of them is given."""
    if matrix_id is None and name is not None:
        return by_name(name, shared=shared, owner=owner, version=version)
    if matrix_id is None or name is not None:
        which = "neither name nor id is" if matrix_id is None else "name and id are both"
        raise InvalidArgument(f"{which} given; give one of them", field="name")
    if not checks.text(matrix_id, "id"):
        raise InvalidArgument("id is empty; it must be that of a matrix", field="id")
    if checks.flag(shared, "shared"):
        raise InvalidArgument("shared is set with an id; it is for names", field="shared")
    return _narrowed(by_id(matrix_id), owner, version)


def by_name(
    name: str, *, shared: bool = False, owner: str | None = None, version: int | None = None
) -> pb.MatrixRef:
    """owner, version: None for any."""
    ref = pb.MatrixRef(name=checks.name(name), shared=checks.flag(shared, "shared"))
    return _narrowed(ref, owner, version)


def _narrowed(ref: pb.MatrixRef, owner: str | None, version: int | None) -> pb.MatrixRef:
    if owner is not None:
        ref.owner = checks.text(owner, "owner")
    if version is not None:
        ref.version = checks.integer(version, "version", 0, 2**64 - 1)
    return ref


class Janitor:
    """One thread, which is started with the first matrix to delete. Thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._now = _Now()
        self.renewals = Renewals(connection)

    def start(self) -> None:
        """Must be called before the first matrix that may have to be deleted."""
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(
                    target=_run,
                    args=(self._connection, self._queue, self._now, self.renewals),
                    daemon=True,
                    name="gemmd-janitor",
                )
                thread.start()
                self._thread = thread  # started: `stop` may join it

    def delete(self, ref: pb.MatrixRef) -> None:
        """Returns at once. Safe in a destructor."""
        self._queue.put(ref)

    def run(self, work: Callable[[], None]) -> None:
        """On the thread, once it is started. Returns at once. Safe in a destructor."""
        self._queue.put(work)

    def flush(self, call: Call) -> None:
        """Waits until everything so far is deleted, or cannot be, or the call ends."""
        if self._thread is None or not self._thread.is_alive():
            return
        done = threading.Event()
        self._queue.put(done)
        while not done.wait(0.1):
            call.left()
            call.check_cancelled()
            self._connection.check()  # of a closed client nothing is deleted any more

    def stop(self, *, wait: bool = True) -> None:
        """Deletes what is left, then ends."""
        if not wait:  # as in a destructor: no lock
            self._queue.put(_DROPPED)
            return
        self._queue.put(_STOP)
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            if not ends.joined(thread, lambda: self._now.taken):
                self._say_what_is_left()

    def _say_what_is_left(self) -> None:
        left = [] if self._now.ref is None else [self._now.ref]
        with contextlib.suppress(queue.Empty):
            while True:
                item = self._queue.get_nowait()
                if isinstance(item, pb.MatrixRef):
                    left.append(item)
        named = [ref.name or ref.id for ref in left[:_NAMED]]
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        ends.left_behind(
            f"the client of {self._connection.address} was closed, and its thread that deletes "
            f"matrices did not go on for {ends.BOUND_SECONDS:g} s; on the server may be left: "
            f"{', '.join(named) or 'nothing'}{more}"
        )


def _items(todo: queue.SimpleQueue[Any], renewals: Renewals) -> Iterator[Any]:
    """Until the end. The pipelines and handles that are garbage with a client come before it or
    behind it."""
    dropped = False
    while True:
        within = _BEHIND_SECONDS if dropped else renewals.wait()
        try:
            item = todo.get(timeout=within)
        except queue.Empty:
            if dropped:
                return
            renewals.beat()  # between deletions
            continue
        if item is _STOP:
            return
        dropped = dropped or item is _DROPPED
        if item is not _DROPPED:
            yield item


class _Now:
    """What the thread is at."""

    taken = 0
    ref: pb.MatrixRef | None = None


def _run(
    connection: Connection, todo: queue.SimpleQueue[Any], now: _Now, renewals: Renewals
) -> None:
    gone = False
    for item in _items(todo, renewals):
        now.taken += 1
        if isinstance(item, threading.Event):
            gone = False
            item.set()
            continue
        if connection.closed or connection.forked:
            continue
        if callable(item):
            item()
            continue
        if gone and not todo.empty():
            continue  # the server does not answer: not two seconds for each
        now.ref = item
        gone = not _delete(connection, item)
        now.ref = None


def _delete(connection: Connection, ref: pb.MatrixRef) -> bool:
    """Whether the server answered."""
    try:
        request = pb.DeleteMatrixRequest(matrix=ref)
        connection.stubs().delete.future(request, timeout=_TIMEOUT).result()
    except grpc.RpcError as error:
        code = error.code()
        return code not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    except ValueError:  # the channel was closed meanwhile
        return False
    return True
