"""A stream of messages both ways, which one thread reads.

grpcio's own streams hand every event over twice: from the thread of the channel to the one that
waits, with a condition for each message. Here the thread that reads takes the events from gRPC
itself, as grpcio's blocking calls do. A stream of small messages then takes a third of the
processor's time. What it needs of grpcio is private; where a version lacks it, the stream is
grpcio's own.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import grpc

from .credentials import Metadata

try:
    from grpc._cython import cygrpc  # type: ignore[attr-defined]
except ImportError:
    cygrpc = None

_METADATA, _STATUS, _RECEIVED, _SENT, _CLOSED = range(5)
_NO_FLAGS = 0


class Stream(Protocol):
    """Thread-safe, but for `run`."""

    def send(self, message: bytes) -> None:
        """The next message, once `on_sent` was called for the one before."""

    def close_sending(self) -> None:
        """Nothing follows. Not while a message is under way."""

    def cancel(self) -> None: ...

    def run(self, on_message: Callable[[bytes], None]) -> None:
        """Calls `on_message` and `on_sent` until the stream has ended.

        An RpcError where it did not end well. What `on_message` raises cancels the stream.
        """


class Ended(grpc.RpcError):
    """The status of a stream that did not end well."""

    def __init__(self, status: Any) -> None:
        """`status`: cygrpc's operation that has received it."""
        super().__init__(status.details() or "")
        self._number = status.code()
        self._details = status.details() or ""
        self._trailing = status.trailing_metadata()

    def code(self) -> grpc.StatusCode:
        for code in grpc.StatusCode:
            if code.value[0] == self._number:
                return code
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._trailing


class _OwnQueue:
    """A call with a completion queue of its own, which `run` empties."""

    def __init__(
        self, channel: Any, method: str, metadata: Metadata, on_sent: Callable[[], None]
    ) -> None:
        self._on_sent = on_sent
        self._lock = threading.Lock()
        operations = (
            (
                (
                    cygrpc.SendInitialMetadataOperation(metadata or None, _NO_FLAGS),
                    cygrpc.ReceiveInitialMetadataOperation(_NO_FLAGS),
                ),
                _METADATA,
            ),
            ((cygrpc.ReceiveStatusOnClientOperation(_NO_FLAGS),), _STATUS),
            ((cygrpc.ReceiveMessageOperation(_NO_FLAGS),), _RECEIVED),
        )
        self._due = len(operations)  # events to come; guarded by _lock
        self._call = channel._channel.segregated_call(
            cygrpc.PropagationConstants.GRPC_PROPAGATE_DEFAULTS,
            method.encode(), None, None, None, None, operations, None,
        )  # fmt: skip

    def _operate(self, operation: Any, tag: int) -> None:
        with self._lock:
            # False where the call has ended: nothing comes of it then.
            if self._call.operate((operation,), tag):
                self._due += 1

    def send(self, message: bytes) -> None:
        self._operate(cygrpc.SendMessageOperation(message, _NO_FLAGS), _SENT)

    def close_sending(self) -> None:
        self._operate(cygrpc.SendCloseFromClientOperation(_NO_FLAGS), _CLOSED)

    def cancel(self) -> None:
        self._call.cancel(cygrpc.StatusCode.cancelled, "Cancelled")

    def run(self, on_message: Callable[[bytes], None]) -> None:
        failure: BaseException | None = None
        status: Any = None
        over = False
        while not over:
            event = self._call.next_event()
            with self._lock:
                self._due -= 1
                over = self._due == 0  # the status has come, so that none can be added
            try:
                if event.tag == _RECEIVED:
                    message = event.batch_operations[0].message()
                    if message is not None:
                        on_message(message)
                        self._operate(cygrpc.ReceiveMessageOperation(_NO_FLAGS), _RECEIVED)
                elif event.tag == _SENT:
                    self._on_sent()
                elif event.tag == _STATUS:
                    status = event.batch_operations[0]
            except BaseException as error:
                failure = failure or error
                self.cancel()
        if failure is not None:
            raise failure
        if status.code() != cygrpc.StatusCode.ok:
            raise Ended(status)


class _OfGrpcio:
    """grpcio's own."""

    def __init__(
        self, channel: Any, method: str, metadata: Metadata, on_sent: Callable[[], None]
    ) -> None:
        self._on_sent = on_sent
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._rpc = channel.stream_stream(method, None, None)(self._iterate(), metadata=metadata)

    def _iterate(self) -> Iterator[bytes]:
        while (message := self._messages.get()) is not None:
            yield message
            self._on_sent()

    def send(self, message: bytes) -> None:
        self._messages.put(message)

    def close_sending(self) -> None:
        self._messages.put(None)

    def cancel(self) -> None:
        self._rpc.cancel()

    def run(self, on_message: Callable[[bytes], None]) -> None:
        try:
            for message in self._rpc:
                on_message(message)
        finally:
            self._rpc.cancel()
            self._messages.put(None)


def open_stream(
    channel: Any, method: str, metadata: Metadata, on_sent: Callable[[], None]
) -> Stream:
    """`on_sent` is called when a message has left, on a thread that is not the caller's."""
    try:
        return _OwnQueue(channel, method, metadata, on_sent)
    except (AttributeError, TypeError):
        return _OfGrpcio(channel, method, metadata, on_sent)


__all__ = ["Ended", "Stream", "cygrpc", "open_stream"]
