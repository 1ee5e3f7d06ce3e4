"""The channels to one server, and what is known of it."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import grpc
import grpc.experimental

from . import checks, credentials, ends, idle, proxies
from .contract import MESSAGE_OVERHEAD_BYTES, MIB, SERVICE, pb
from .errors import ClientClosed, FailedPrecondition
from .interrupt import Hold
from .options import Options
from .retries import Budget
from .stream import Stream, cygrpc, open_stream
from .unary import Unary


@dataclass(frozen=True)
class Stubs:
    """The methods of the contract on one channel.

    Requests with payload, and streams of it, are bytes: this package writes and reads them by
    hand.
    """

    multiply: Any
    #: A Stream of `multiply`, for many small messages; takes its `on_sent`.
    multiply_stream: Callable[[Callable[[], None]], Stream]
    multiply_unary: Any
    put: Any
    get: Any
    list: Any
    delete: Any
    kernels: Any
    rank: Any
    reload_tuning: Any
    traffic: Any
    info: Any
    benchmark: Any


class _Showing:
    """A method whose calls all carry the same metadata."""

    def __init__(self, method: Any, metadata: credentials.Metadata) -> None:
        self._method = method
        self._metadata = metadata

    def __call__(self, request: Any, timeout: float | None = None) -> Any:
        return self._method(request, timeout=timeout, metadata=self._metadata)

    def future(self, request: Any, timeout: float | None = None) -> Any:
        return self._method.future(request, timeout=timeout, metadata=self._metadata)


def _stubs(channel: grpc.Channel, metadata: credentials.Metadata = ()) -> Stubs:
    def unary(name: str, request: Any, response: Any) -> Unary:
        serialize = None if request is None else request.SerializeToString
        return Unary(channel, SERVICE + name, serialize, response.FromString, metadata)

    plain = Stubs(
        multiply=channel.stream_stream(SERVICE + "Multiply", None, None),
        multiply_stream=functools.partial(open_stream, channel, SERVICE + "Multiply", metadata),
        multiply_unary=unary("MultiplyUnary", None, pb.MultiplyUnaryResponse),
        put=channel.stream_unary(SERVICE + "PutMatrix", None, pb.PutMatrixResponse.FromString),
        get=channel.unary_stream(
            SERVICE + "GetMatrix", pb.GetMatrixRequest.SerializeToString, None
        ),
        list=unary("ListMatrices", pb.ListMatricesRequest, pb.ListMatricesResponse),
        delete=unary("DeleteMatrix", pb.DeleteMatrixRequest, pb.DeleteMatrixResponse),
        kernels=unary("ListKernels", pb.ListKernelsRequest, pb.ListKernelsResponse),
        rank=unary("RankKernels", pb.RankKernelsRequest, pb.RankKernelsResponse),
        reload_tuning=unary("ReloadTuning", pb.ReloadTuningRequest, pb.ReloadTuningResponse),
        traffic=unary("ListTraffic", pb.ListTrafficRequest, pb.ListTrafficResponse),
        info=unary("GetServerInfo", pb.GetServerInfoRequest, pb.GetServerInfoResponse),
        benchmark=channel.unary_stream(
            SERVICE + "Benchmark",
            pb.BenchmarkRequest.SerializeToString,
            pb.BenchmarkResponse.FromString,
        ),
    )
    if not metadata:
        return plain
    calls = {name: getattr(plain, name) for name in ("multiply", "put", "get", "benchmark")}
    # The others show it themselves.
    return replace(plain, **{name: _Showing(method, metadata) for name, method in calls.items()})


def _open(address: str, options: Options, through_proxy: bool) -> list[grpc.Channel]:
    secure = credentials.of_channel(options)
    every = [_arguments(options, through_proxy, index) for index in range(options.channels)]
    if secure is None:
        return [grpc.insecure_channel(address, arguments) for arguments in every]
    return [grpc.secure_channel(address, secure, arguments) for arguments in every]


def _arguments(options: Options, through_proxy: bool, index: int) -> list[tuple[str, Any]]:
    arguments: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", options.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        # Channels of equal arguments would share one connection.
        ("gemmd.channel", index),
        # The thread that iterates over a download also receives it.
        (grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),
        # Fewer, larger reads off the socket for messages of a megabyte.
        ("grpc.experimental.tcp_read_chunk_size", MIB),
        ("grpc.keepalive_time_ms", int(options.keepalive_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", int(options.keepalive_timeout * 1000)),
        # By default gRPC asks twice and then no more, until data is sent.
        ("grpc.http2.max_pings_without_data", 0),
        # A call is tried again by this package, which knows when that is safe.
        ("grpc.enable_retries", 0),
        # A server that is started again is found within the waits of `Retry`. The least
        # backoff stays gRPC's: it also bounds the time that a connection may take.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]
    if not through_proxy:
        # gRPC takes the proxy of http_proxy for loopback, too: what goes there without TLS,
        # and the token with it, would leave this machine.
        arguments.append(("grpc.enable_http_proxy", 0))
    if options.server_name is not None:
        arguments.append(("grpc.ssl_target_name_override", options.server_name))
    return arguments


def check_gevent() -> None:
    """FailedPrecondition where gevent has patched what gRPC's threads and this package's wait by,
    and gRPC does not know it: some call would wait for ever."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is None or not monkey.is_module_patched("threading"):
        return
    if not getattr(cygrpc, "g_gevent_activated", True):
        raise FailedPrecondition(
            "gevent has patched threading, and gRPC does not know of gevent: call "
            "grpc.experimental.gevent.init_gevent() before gemmd.connect"
        )


class Connection:
    """Thread-safe. Usable only in the process that made it."""

    def __init__(self, address: str, options: Options) -> None:
        self.address = address
        self.options = options
        self.closed = False
        self.budget = Budget(options.retry.budget, options.retry.budget_per_call)
        #: Seconds; None: no bound.
        self.idle_timeout = checks.timeout(options.idle_timeout, "idle_timeout")
        self.idle_watch = idle.Watch()
        self.forked = False
        metadata = credentials.of_calls(address, options)
        #: The proxy that TLS goes through.
        self.proxy = proxies.chosen(address) if credentials.uses_tls(options) else None
        self._channels = _open(address, options, self.proxy is not None)
        self._all = [_stubs(channel, metadata) for channel in self._channels]
        self._turn = itertools.count()
        self._device_turn = itertools.count()
        self.server = pb.GetServerInfoResponse()
        #: A report has shown that it checks products of its own accord, which no batch can have.
        self.server_checks = False
        _alive.add(self)

    @property
    def channels(self) -> int:
        return len(self._channels)

    def next_channel(self) -> int:
        return next(self._turn) % len(self._all)

    def stubs(self, channel: int | None = None) -> Stubs:
        """Of this channel, or of the one whose turn it is."""
        return self._all[self.next_channel() if channel is None else channel]

    def check(self) -> None:
        """ClientClosed where no call can be made."""
        if self.forked:
            raise ClientClosed(
                f"the client of {self.address} was connected before this process was forked "
                f"(it is now process {os.getpid()}); call gemmd.connect in this process"
            )
        if self.closed:
            raise ClientClosed(f"the client of {self.address} was closed")

    @property
    def life(self) -> tuple[int, int]:
        """When the server that was last asked was started: another life, another value."""
        return self.server.started.seconds, self.server.started.nanos

    @property
    def may_keep(self) -> bool:
        """Whether the caller has the role to keep matrices; an older server names no roles."""
        roles = self.server.caller.roles
        return not roles or "matrices" in roles

    @property
    def server_message_bytes(self) -> int:
        return self.server.limits.max_message_bytes or 4 * MIB  # gRPC's own

    @property
    def chunk_bytes(self) -> int:
        """A multiple of 8 bytes, so that no element is cut."""
        room = max(4096, self.server_message_bytes - MESSAGE_OVERHEAD_BYTES)
        return min(self.options.chunk_bytes, room) // 8 * 8

    def pick_device(self, now: pb.GetServerInfoResponse) -> str:
        """The healthy devices in turn; "" where there is no choice."""
        healthy = [device.name for device in now.devices if device.healthy]
        return healthy[next(self._device_turn) % len(healthy)] if len(healthy) > 1 else ""

    def close(self) -> None:
        """Ends the calls under way. In a forked child it does nothing."""
        if self.closed or self.forked:
            return
        self.closed = True

        def close() -> None:
            for channel in self._channels:
                channel.close()

        with Hold():
            if not ends.done(close, "gemmd-close"):
                ends.left_behind(
                    f"the connections to {self.address} did not close within "
                    f"{ends.BOUND_SECONDS:g} s; they end with the process"
                )

    def abandon(self) -> None:
        """Called in a forked child: gRPC's objects are the parent's, so none is destroyed."""
        self.forked = True
        _abandoned.append((self._channels, self._all))


_alive: weakref.WeakSet[Connection] = weakref.WeakSet()
_abandoned: list[Any] = []


#: Whether this process was forked from one that had imported this package.
in_forked_child = False


def _after_fork() -> None:
    global in_forked_child
    in_forked_child = True
    for connection in list(_alive):
        connection.abandon()


_register: Callable[..., None] | None = getattr(os, "register_at_fork", None)
if _register is not None:
    _register(after_in_child=_after_fork)
