"""The matrices without a name of a client, whose time to live it renews while it lives.

The server deletes a matrix without a name some time after its last use (`--unnamed-ttl`), so that
a client that was killed leaves nothing behind for ever.
"""

from __future__ import annotations

import random
import threading
import time
import weakref
from typing import TYPE_CHECKING

import grpc

from .contract import pb

if TYPE_CHECKING:
    from .connection import Connection
    from .handle import Handle

# Of a time to live, how many times it is renewed: a server that is away for some is no matter.
_BEATS = 4
# For each matrix. After one that takes as long, the others wait for the next round.
_TIMEOUT = 2.0


class Renewals:
    """Thread-safe. `beat` is the janitor's."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._held: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._last = time.monotonic()
        # Of the round under way, what is yet to be renewed.
        self._ahead: list[pb.MatrixRef] = []

    @property
    def ttl(self) -> float:
        """Seconds; 0: matrices without a name stay until they are deleted."""
        ttl = self._connection.server.limits.unnamed_ttl
        return ttl.seconds + ttl.nanos * 1e-9

    def add(self, handle: Handle) -> None:
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
        """Uses one matrix, by reading its first byte. A round of beats uses each once."""
        if not self._ahead:
            self._last = time.monotonic()
            with self._lock:
                self._ahead = [handle._ref for handle in self._held if not handle._freed]
            # One that fails each time, and ends the round, keeps no other from its turn.
            random.shuffle(self._ahead)
        if self._ahead:
            ref = self._ahead.pop()
            if self._connection.closed or self._connection.forked or not self._use(ref):
                self._ahead.clear()

    def _use(self, ref: pb.MatrixRef) -> bool:
        """Whether the server answered."""
        request = pb.GetMatrixRequest(matrix=ref)
        request.range.length = 1
        try:
            for _ in self._connection.stubs().get(request, timeout=_TIMEOUT):
                pass
        except grpc.RpcError as error:
            code = error.code()
            return code not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        except ValueError:  # the channel was closed meanwhile
            return False
        return True
