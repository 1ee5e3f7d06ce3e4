"""A unary method whose calls are made of gRPC's operations alone.

grpcio's own does as much, and keeps a state, records and hooks for each call beside it: a fifth
of the processor's time of a small product. What this needs of grpcio is private; where a
version lacks it, the call is grpcio's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc

from .credentials import Metadata
from .stream import Ended, cygrpc

_NO_FLAGS = 0


class _Running:
    """A call, as far as it is a grpc.Future."""

    __slots__ = ("_call", "_parse")

    def __init__(self, call: Any, parse: Callable[[bytes], Any]) -> None:
        self._call = call
        self._parse = parse

    def cancel(self) -> None:
        """From any thread. One that has ended does not mind."""
        self._call.cancel(cygrpc.StatusCode.cancelled, "Cancelled")

    def result(self) -> Any:
        """Waits for the answer. To be called once. An RpcError where the call fails."""
        operations = self._call.next_event().batch_operations
        status = operations[-1]
        if status.code() != cygrpc.StatusCode.ok:
            raise Ended(status)
        return self._parse(operations[-2].message())


class Unary:
    """`future` begins a call. Its `result` is to be called where no signal handler can raise."""

    def __init__(
        self,
        channel: grpc.Channel,
        method: str,
        serialize: Callable[[Any], bytes] | None,
        parse: Callable[[bytes], Any],
        metadata: Metadata = (),
    ) -> None:
        """serialize: None where requests are bytes."""
        self._channel: Any = channel
        self._method = method.encode()
        self._serialize = serialize
        self._parse = parse
        self._metadata = metadata or None
        self._usual: Any = channel.unary_unary(method, None, parse)

    def future(self, request: Any, timeout: float | None = None) -> Any:
        message = request if self._serialize is None else self._serialize(request)
        try:
            call = self._begin(message, None if timeout is None else time.time() + timeout)
        except (AttributeError, TypeError):
            return self._usual.future(message, timeout=timeout, metadata=self._metadata)
        return _Running(call, self._parse)

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
