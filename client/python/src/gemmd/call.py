"""One call of the user: its deadline, its end, and the RPCs under way for it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

import grpc

from . import checks, credentials, errors, interrupt, retries
from .connection import Connection
from .contract import pb

Answer = TypeVar("Answer")

_NO_TEXT = {"Deadline Exceeded", "CANCELLED", "Cancelled", "Locally cancelled by application!"}


class Canceller:
    """Ends calls early, from any thread: pass it as `cancel=`, and call `cancel()`.

    One may serve many calls. A call that begins after `cancel()` ends at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: set[Call | Canceller] = set()
        # When its one call was made, where a thread takes that later: its timeout counts from here.
        self._begun: float | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Ends the calls with Cancelled, unless they have ended. Returns at once."""
        with self._lock:
            self.cancelled = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def _enter(self, call: Call | Canceller) -> None:
        with self._lock:
            self._calls.add(call)
            cancelled = self.cancelled
        if cancelled:
            call.cancel()

    def _leave(self, call: Call | Canceller) -> None:
        with self._lock:
            self._calls.discard(call)


class Call:
    """Used with `with`: where its body raises, every RPC is cancelled. A signal handler that
    raises, as that of Ctrl-C does, cancels them too, and that is raised at the end of the block."""

    __slots__ = (
        "__weakref__", "_canceller", "_deadline", "_hold", "_idle_since", "_idle_timeout", "_lock",
        "_rpcs", "_wake", "cancelled", "connection", "idle", "timeout", "waits", "what",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        what: str,
        timeout: float | None = None,
        canceller: Canceller | None = None,
    ) -> None:
        connection.check()
        if timeout is None:
            timeout = connection.options.timeout
        if timeout is not None:
            timeout = checks.timeout(timeout)
        if canceller is not None:
            checks.instance(canceller, "cancel", Canceller, "a gemmd.Canceller")
        self.connection = connection
        self.what = what
        self.timeout = timeout
        self.cancelled = False
        begun = None if canceller is None else canceller._begun
        if begun is None:
            begun = time.monotonic()
        self._deadline = None if timeout is None else begun + timeout
        # None for a call with a deadline.
        self._idle_timeout = None if self._deadline else connection.idle_timeout
        self._idle_since = begun
        #: It was ended for that.
        self.idle = False
        #: Whether something is to come: a pipeline may have nothing to do.
        self.waits: Callable[[], bool] | None = None
        self._canceller = canceller
        self._lock = threading.Lock()
        self._rpcs: list[Any] = []
        self._hold = interrupt.Hold(self.cancel)
        self._wake = threading.Event() if canceller is not None else None

    def __enter__(self) -> Call:
        self._hold.begin()
        if self._canceller is not None:
            self._canceller._enter(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._canceller is not None:
            self._canceller._leave(self)
        if self._idle_timeout is not None:
            self.connection.idle_watch.remove(self)
        if kind is not None:
            self.drop()
        self._hold.end()

    def left(self) -> float | None:
        """Seconds until the deadline; DeadlineExceeded where it has passed."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._late()
        return left

    def _late(self) -> errors.DeadlineExceeded:
        return errors.DeadlineExceeded(
            f"{self.what} did not end within its timeout of {self.timeout:g} s"
        )

    def begin(self, method: Any, request: Any, *, timeout: float | None = None) -> Any:
        """An RPC that is to end with this call, and by its deadline, or by `timeout`."""
        if timeout is None:
            timeout = self.left()
        try:
            rpc = self.track(method(request, timeout=timeout))
            if timeout is None:
                self.watch()
            return rpc
        except ValueError as error:  # the client was closed meanwhile
            raise self.explain(error) from None

    def track(self, rpc: Any) -> Any:
        """An RPC that is to end with this call."""
        with self._lock:
            self._rpcs.append(rpc)
            cancelled = self.cancelled
        if cancelled:
            rpc.cancel()
        return rpc

    def watch(self) -> None:
        """From now on, it ends when nothing moves."""
        if self._idle_timeout is not None:
            self.connection.idle_watch.add(self)

    def moved(self) -> None:
        """Something was sent or received."""
        self._idle_since = time.monotonic()

    def end_if_idle(self) -> float:
        """Seconds until that would be now. Ends it where they are none."""
        timeout = self._idle_timeout
        if timeout is None or (self.waits is not None and not self.waits()):
            self.moved()
            return timeout or math.inf
        left = self._idle_since + timeout - time.monotonic()
        if left <= 0:
            self.idle = True
            self.drop()
        return left

    def _was_idle(self) -> errors.DeadlineExceeded:
        return errors.DeadlineExceeded(
            f"{self.what}: nothing was sent or received for {self._idle_timeout:g} s "
            "(idle_timeout); to wait longer, give the call a timeout"
        )

    def drop(self) -> None:
        """Cancels the RPCs under way; those that have ended do not mind."""
        with self._lock:
            rpcs, self._rpcs = self._rpcs, []
        with interrupt.Hold():
            for rpc in rpcs:
                rpc.cancel()

    def cancel(self) -> None:
        """From any thread: the call ends with Cancelled."""
        self.cancelled = True
        with interrupt.Hold():
            if self._wake is not None:
                self._wake.set()
            self.drop()
            self.connection.idle_watch.remove(self)

    def check_cancelled(self) -> None:
        if self.cancelled:
            raise errors.Cancelled(f"{self.what} was cancelled by its caller")

    def unary(self, method: Any, request: Any) -> Any:
        """A unary RPC, to its end. A GemmdError where it fails."""
        self.check_cancelled()
        try:
            return self.begin(method.future, request, timeout=self._idle_timeout).result()
        except (grpc.RpcError, grpc.FutureCancelledError, ValueError) as error:
            raise self.explain(error) from None

    def explain(self, error: BaseException) -> errors.GemmdError:
        """The exception for the user."""
        if isinstance(error, errors.GemmdError):
            return error
        connection = self.connection
        if connection.closed:
            return errors.ClientClosed(
                f"{self.what} was ended: the client of {connection.address} was closed"
            )
        if self.idle:
            return self._was_idle()
        if self.cancelled or isinstance(error, grpc.FutureCancelledError):
            return errors.Cancelled(f"{self.what} was cancelled by its caller")
        if not isinstance(error, grpc.RpcError):
            raise error
        code = error.code().name
        details = error.details() or ""
        if code == "DEADLINE_EXCEEDED" and self._deadline is not None:
            # gRPC's own words, such as "Stream removed (Deadline Exceeded)", or the server's of
            # the same deadline, where they came first.
            passed = time.monotonic() >= self._deadline
            if passed or details in _NO_TEXT or "(Deadline Exceeded)" in details:
                return self._late()
        if code == "DEADLINE_EXCEEDED" and self._idle_timeout is not None and (
            details in _NO_TEXT or "(Deadline Exceeded)" in details
        ):
            return self._was_idle()
        if code == "CANCELLED" and details in _NO_TEXT:
            code, details = "UNAVAILABLE", "the server cancelled the call"
        if code == "UNKNOWN" and details.startswith("Stream removed"):
            code = "UNAVAILABLE"  # gRPC's words, as for a connection that ended with a fork
        if code == "UNAVAILABLE":
            if "keepalive" in details:
                options = connection.options
                silence = options.keepalive_seconds + options.keepalive_timeout
                details = f"nothing came for {silence:g} s: the server or the network is gone"
            details = _with_hint(details, connection)
            proxy = connection.proxy
            through = f" through the proxy {proxy.address} ({proxy.variable})" if proxy else ""
            details = f"{connection.address}{through}: {details}"
        made = errors.make(code, details)
        made.retry_after = retries.after_metadata(_trailing(error))
        return made

    def tried(self, attempt: Callable[[], Answer], *, repeatable: bool = True) -> Answer:
        """The answer of `attempt`, which is repeated with backoff where that is safe."""
        budget = self.connection.budget
        budget.on_call()
        made = 0
        while True:
            made += 1
            try:
                return attempt()
            except (errors.Unavailable, errors.ResourceExhausted) as error:
                gone = isinstance(error, errors.Unavailable) and repeatable
                if not gone and not retries.refused(error):
                    raise
                wait = retries.wait(self.connection.options.retry, made, error)
                if wait is None or not self._time_for(wait) or not budget.take():
                    raise
            self.drop()
            self.sleep(wait)

    def _time_for(self, seconds: float) -> bool:
        return self._deadline is None or time.monotonic() + seconds < self._deadline

    def sleep(self, seconds: float) -> None:
        """Waits, but not beyond the deadline. Cancelled where the caller cancels."""
        left = self.left()
        end = time.monotonic() + (seconds if left is None else min(seconds, left))
        while (wait := end - time.monotonic()) > 0:
            if self._wake is None:
                time.sleep(min(wait, 0.05))  # a signal is noted, and ends no sleep
            else:
                self._wake.wait(wait)
            self.check_cancelled()

    def ask_server(self) -> pb.GetServerInfoResponse:
        """GetServerInfo, which the connection remembers."""
        info = self.unary(self.connection.stubs().info, pb.GetServerInfoRequest())
        self.connection.server = info
        return info  # type: ignore[no-any-return]


def _with_hint(details: str, connection: Connection) -> str:
    """With what it may be that makes a connection fail so."""
    if _closed_at_once(details):
        who = "a server does so that "
        if connection.proxy is not None:
            who = "the proxy does so, and a server that "
        elif not credentials.uses_tls(connection.options):
            who = "a server does so that wants TLS, or "
        details += f"; {who}has as many connections as it takes"
    if _nobody_listens(details):
        hint = "does gemmd run, and is this its address?"
        if connection.proxy is not None:
            hint = "is this the proxy's address? no_proxy names servers that need none"
        details += f"; nobody listens there: {hint}"
    return details


def _closed_at_once(details: str) -> bool:
    """Whether the server closed the connection before its first word, in gRPC's words."""
    closed = "Socket closed" in details or "Connection reset by peer" in details
    return closed and "failed to connect" in details


def _nobody_listens(details: str) -> bool:
    refused = "Connection refused" in details or "No such file or directory" in details
    return refused and "failed to connect" in details


def _trailing(error: grpc.RpcError) -> Any:
    """Of an error of grpcio's, or of this package's."""
    read = getattr(error, "trailing_metadata", None)
    return read() if read is not None else None


def first_error(found: Iterable[errors.GemmdError]) -> errors.GemmdError:
    """Of the failures of one transfer, the one that caused the others.

    The server ends a stripe with ABORTED when another one has failed, and here it is cancelled.
    """
    listed = list(found)
    for error in listed:
        if not isinstance(error, errors.Aborted | errors.Cancelled):
            return error
    return listed[0]
