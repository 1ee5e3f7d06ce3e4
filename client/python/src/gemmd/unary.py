"""A unary method whose blocking call is made of gRPC's operations alone.

grpcio's own does as much, and keeps a state, records and hooks for each call beside it: a fifth
of the processor's time of a small product. What this needs of grpcio is private; where a
version lacks it, the call is grpcio's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc

from . import interrupt
from .credentials import Metadata
from .stream import Ended, cygrpc

_NO_FLAGS = 0


def _wait(call: Any) -> Any:
    """The call's only event. Here Ctrl-C is raised: gRPC cleans up after it."""
    return call.next_event()


interrupt.raise_in(_wait)


class Unary:
    """Takes bytes."""

    def __init__(
        self,
        channel: grpc.Channel,
        method: str,
        parse: Callable[[bytes], Any],
        metadata: Metadata = (),
    ) -> None:
        self._channel: Any = channel
        self._method = method.encode()
        self._parse = parse
        self._metadata = metadata or None
        self._usual: Any = channel.unary_unary(method, None, parse)

    def __call__(self, request: bytes, timeout: float | None = None) -> Any:
        try:
            call = self._begin(request, None if timeout is None else time.time() + timeout)
        except (AttributeError, TypeError):
            return self._usual(request, timeout=timeout, metadata=self._metadata)
        try:
            operations = _wait(call).batch_operations
        except BaseException:
            call.cancel(cygrpc.StatusCode.cancelled, "Cancelled")
            raise
        status = operations[-1]
        if status.code() != cygrpc.StatusCode.ok:
            raise Ended(status)
        return self._parse(operations[-2].message())

    def future(self, request: bytes, timeout: float | None = None) -> Any:
        """grpcio's own."""
        return self._usual.future(request, timeout=timeout, metadata=self._metadata)

    def _begin(self, request: bytes, deadline: float | None) -> Any:
        operations = (
            cygrpc.SendInitialMetadataOperation(self._metadata, _NO_FLAGS),
            cygrpc.SendMessageOperation(request, _NO_FLAGS),
            cygrpc.SendCloseFromClientOperation(_NO_FLAGS),
            cygrpc.ReceiveInitialMetadataOperation(_NO_FLAGS),
            cygrpc.ReceiveMessageOperation(_NO_FLAGS),
            cygrpc.ReceiveStatusOnClientOperation(_NO_FLAGS),
        )
        return self._channel._channel.segregated_call(
            cygrpc.PropagationConstants.GRPC_PROPAGATE_DEFAULTS,
            self._method, None, deadline, None, None, ((operations, None),), None,
        )  # fmt: skip
