"""The matrices without a name of a client, whose time to live it renews while it lives.

The server deletes a matrix without a name some time after its last use (`--unnamed-ttl`), so that
a client that was killed leaves nothing behind for ever.
"""

from __future__ import annotations

import random
import threading
import time
import weakref
from typing import Any, Protocol

import grpc

from .connection import Connection
from .contract import pb

# Renewals within a time to live: a server may be away for some of them.
_BEATS = 4
# For each matrix. After one that takes as long, the others wait for the next round.
_TIMEOUT = 2.0
# At a time. A server has at most 65,536 matrices by default. If each takes 41 ms, four at a time
# take 672 s: less than the 900 s from one round to the next at the default time to live.
_AT_ONCE = 4


class Held(Protocol):
    """A handle, as far as renewals know it."""

    _ref: pb.MatrixRef
    _freed: bool


class Renewals:
    """Thread-safe. `beat` is the janitor's."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._held: weakref.WeakSet[Held] = weakref.WeakSet()
        self._last = time.monotonic()
        # The matrices that the round under way has yet to renew.
        self._ahead: list[pb.MatrixRef] = []

    @property
    def ttl(self) -> float:
        """Seconds; 0: matrices without a name stay until they are deleted."""
        ttl = self._connection.server.limits.unnamed_ttl
        return ttl.seconds + ttl.nanos * 1e-9

    def add(self, handle: Held) -> None:
        """To be renewed as long as the handle is there."""
        with self._lock:
            self._held.add(handle)

    def wait(self) -> float | None:
        """Seconds until the next beat; None where there will be none."""
        if self._ahead:
            return 0.0
        ttl = self.ttl
        return max(0.0, self._last + ttl / _BEATS - time.monotonic()) if ttl > 0 else None

    def beat(self) -> None:
        """Uses a few matrices, by reading their first bytes. A round of beats uses each once."""
        if not self._ahead:
            self._last = time.monotonic()
            with self._lock:
                self._ahead = [handle._ref for handle in self._held if not handle._freed]
            # One that fails each time, and ends the round, keeps no other from its turn.
            random.shuffle(self._ahead)
        if self._ahead:
            refs, self._ahead = self._ahead[:_AT_ONCE], self._ahead[_AT_ONCE:]
            if self._connection.closed or self._connection.forked or not self._use(refs):
                self._ahead.clear()

    def _use(self, refs: list[pb.MatrixRef]) -> bool:
        """Whether the server answered for each."""
        try:
            answers = [self._ask(ref) for ref in refs]
        except ValueError:  # the channel was closed meanwhile
            return False
        return all([_answered(answer) for answer in answers])

    def _ask(self, ref: pb.MatrixRef) -> Any:
        request = pb.GetMatrixRequest(matrix=ref)
        request.range.length = 1
        return self._connection.stubs().get(request, timeout=_TIMEOUT)


def _answered(answer: Any) -> bool:
    """Waits for it."""
    try:
        for _ in answer:
            pass
    except grpc.RpcError as error:
        code = error.code()
        return code not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return True
