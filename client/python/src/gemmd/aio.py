"""The same client for asyncio.

    async with await gemmd.aio.connect("127.0.0.1:50051") as g:
        c = await g.matmul(a, b)

The names and options are those of `gemmd.Client`. Calls run on threads of the client's own, so
that the loop is never blocked by copies. So many run at once; further ones wait for a thread, and
their `timeout` counts meanwhile. Many small products are for a pipeline, which needs none of them.
A task that is cancelled cancels its call, and goes on when the call has ended: then nothing is
written into `out` any more, and operands may change.
`connect`, `free`, `close` and the ends of handles are not cancelled: they go on without the task.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from . import checks, operands
from . import connect as connect_blocking
from .awaiting import Arrivals, NeverBegan, result
from .bench import Benchmark
from .call import Canceller
from .client import Client as BlockingClient
from .errors import DeadlineExceeded, InvalidType
from .handle import Handle as BlockingHandle
from .handle import TransposedHandle
from .pipeline import Pipeline as BlockingPipeline
from .product import ROLES
from .records import Info, Kernel, Matrix, RankedKernel, Traffic, TuningLoad
from .report import Report
from .tables import Table

Answer = TypeVar("Answer")

_THREADS = 32
_MOST_THREADS = 1024
# Operands of a pipeline that are copied on the loop: another thread takes longer to wake.
_SMALL_BYTES = 64 << 10


async def connect(
    address: str = "127.0.0.1:50051", *, threads: int = _THREADS, **options: Any
) -> Client:
    """As `gemmd.connect`. threads: how many calls run at once, 1 to 1024; each has a thread."""
    checks.integer(threads, "threads", 1, _MOST_THREADS)
    blocking = await asyncio.to_thread(partial(connect_blocking, address, **options))
    return Client(blocking, threads)


def _plain(value: Any) -> Any:
    """An operand as the blocking client takes it."""
    if isinstance(value, Handle):
        return value._blocking
    return value


def _plain_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in options.items()}


async def _not_cancelled(future: Future[Answer]) -> Answer:
    """A thread's answer. Where the task is cancelled the thread goes on, or begins yet."""
    return await asyncio.shield(asyncio.wrap_future(future))


class Client:
    """Matrix products on one server, for asyncio. Used from one loop."""

    def __init__(self, blocking: BlockingClient, threads: int = _THREADS) -> None:
        self._blocking = blocking
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "gemmd-aio")

    def _gone(self) -> bool:
        """The pool has no threads. A call made here ends at once, with ClientClosed."""
        connection = self._blocking._connection
        return connection.closed or connection.forked

    async def _run(self, call: Callable[..., Answer], *args: Any) -> Answer:
        """A call that goes on where its task is cancelled. It uses no memory of the caller's."""
        if self._gone():
            return call(*args)
        return await _not_cancelled(self._pool.submit(call, *args))

    async def _run_cancellable(
        self, call: Callable[..., Answer], *args: Any, **options: Any
    ) -> Answer:
        if self._gone():
            return call(*map(_plain, args), **_plain_options(options))
        given: Canceller | None = options.pop("cancel", None)
        own = Canceller()  # the task ends its own call; the given one may serve many
        own._begun = time.monotonic()
        timeout = options.get("timeout")
        if timeout is None:
            timeout = self._blocking._connection.options.timeout
        if timeout is not None:
            timeout = checks.timeout(timeout)
        if given is not None:
            checks.instance(given, "cancel", Canceller, "a gemmd.Canceller")
            given._enter(own)
        work = partial(call, *map(_plain, args), cancel=own, **_plain_options(options))
        future = self._pool.submit(work)

        def stop() -> None:
            if not future.cancel():
                own.cancel()

        try:
            return await result(future, stop, timeout)
        except NeverBegan:
            raise DeadlineExceeded(
                f"{call.__name__} did not begin within its timeout of {timeout:g} s: "
                f"{self._threads} calls of this client are under way, and it has as many threads"
            ) from None
        finally:
            if given is not None:
                given._leave(own)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        # A thread of its own: those of the pool may all be in the calls that this ends.
        closer = ThreadPoolExecutor(1, "gemmd-aio-close")
        try:
            await _not_cancelled(closer.submit(self._blocking.close))
        finally:
            self._pool.shutdown(wait=False)
            closer.shutdown(wait=False)

    async def matmul(self, a: Any, b: Any, **options: Any) -> Any:
        """As `gemmd.Client.matmul`."""
        return await self._run_cancellable(self._blocking.matmul, a, b, **options)

    async def grouped_matmul(self, a: Any, b: Any, group_sizes: Any, **options: Any) -> Any:
        """As `gemmd.Client.grouped_matmul`."""
        call = self._blocking.grouped_matmul
        return await self._run_cancellable(call, a, b, group_sizes, **options)

    async def keep(self, a: Any, b: Any, **options: Any) -> Handle:
        """As `gemmd.Client.keep`."""
        return Handle(self, await self._run_cancellable(self._blocking.keep, a, b, **options))

    async def put(self, matrix: Any, **options: Any) -> Handle:
        """As `gemmd.Client.put`."""
        return Handle(self, await self._run_cancellable(self._blocking.put, matrix, **options))

    async def random(self, shape: tuple[int, int], **options: Any) -> Handle:
        """As `gemmd.Client.random`."""
        return Handle(self, await self._run_cancellable(self._blocking.random, shape, **options))

    async def matrix(self, name: str, **options: Any) -> Handle:
        """As `gemmd.Client.matrix`."""
        return Handle(self, await self._run_cancellable(self._blocking.matrix, name, **options))

    async def matrices(self, prefix: str = "", **options: Any) -> Table[Matrix]:
        """As `gemmd.Client.matrices`."""
        return await self._run_cancellable(self._blocking.matrices, prefix, **options)

    async def delete(self, name: str, **options: Any) -> None:
        """As `gemmd.Client.delete`."""
        await self._run_cancellable(self._blocking.delete, name, **options)

    async def info(self, **options: Any) -> Info:
        """As `gemmd.Client.info`."""
        return await self._run_cancellable(self._blocking.info, **options)

    async def kernels(self, family: str = "", **options: Any) -> Table[Kernel]:
        """As `gemmd.Client.kernels`."""
        return await self._run_cancellable(self._blocking.kernels, family, **options)

    async def explain(self, m: int, n: int, k: int, **options: Any) -> Table[RankedKernel]:
        """As `gemmd.Client.explain`."""
        return await self._run_cancellable(self._blocking.explain, m, n, k, **options)

    async def traffic(self, limit: int = 100, **options: Any) -> Table[Traffic]:
        """As `gemmd.Client.traffic`."""
        return await self._run_cancellable(self._blocking.traffic, limit, **options)

    async def reload_tuning(self, **options: Any) -> TuningLoad:
        """As `gemmd.Client.reload_tuning`."""
        return await self._run_cancellable(self._blocking.reload_tuning, **options)

    async def bench(self, *args: Any, **options: Any) -> Benchmark:
        """As `gemmd.Client.bench`."""
        return await self._run_cancellable(self._blocking.bench, *args, **options)

    def pipeline(self, window: int = 256, *, collect: bool = True) -> Pipeline:
        """As `gemmd.Client.pipeline`; used with `async with`."""
        return Pipeline(self, window, collect)


class Handle:
    """As `gemmd.Handle`, with calls to await. `@` is `client.matmul` to await."""

    __array_ufunc__ = None

    def __init__(self, client: Client, blocking: BlockingHandle) -> None:
        self._client = client
        self._blocking = blocking

    @property
    def shape(self) -> tuple[int, int]:
        return self._blocking.shape

    @property
    def dtype(self) -> str:
        return self._blocking.dtype

    @property
    def nbytes(self) -> int:
        return self._blocking.nbytes

    @property
    def name(self) -> str | None:
        return self._blocking.name

    @property
    def version(self) -> int:
        return self._blocking.version

    @property
    def freed(self) -> bool:
        return self._blocking.freed

    @property
    def report(self) -> Report | None:
        return self._blocking.report

    @property
    def T(self) -> TransposedHandle:
        """An operand for this client's calls."""
        return self._blocking.T

    async def numpy(self, out: Any = None, **options: Any) -> Any:
        """As `gemmd.Handle.numpy`."""
        return await self._client._run_cancellable(self._blocking.numpy, out, **options)

    async def torch(self, out: Any = None, **options: Any) -> Any:
        """As `gemmd.Handle.torch`."""
        return await self._client._run_cancellable(self._blocking.torch, out, **options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise InvalidType("a handle of gemmd.aio is no array; its elements are `await w.numpy()`")

    async def free(self) -> None:
        """As `gemmd.Handle.free`."""
        await self._client._run(self._blocking.free)

    def detach(self) -> Handle:
        """As `gemmd.Handle.detach`."""
        self._blocking.detach()
        return self

    async def __matmul__(self, other: Any) -> Any:
        return await self._client._run_cancellable(self._client._blocking._operator, self, other)

    async def __rmatmul__(self, other: Any) -> Any:
        return await self._client._run_cancellable(self._client._blocking._operator, other, self)

    async def __aenter__(self) -> Handle:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client._run(self._blocking.__exit__, kind, error, trace)

    def __repr__(self) -> str:
        return f"<aio {self._blocking!r}>"


class _Sent(BlockingPipeline):
    """A pipeline whose products are added by the loop, which must not wait or copy."""

    def __init__(self, client: BlockingClient, window: int, on_room: Callable[[int], None]) -> None:
        self._on_room = on_room
        super().__init__(client, window, collect=False)

    def _give_room(self, count: int) -> None:
        self._on_room(count)

    def send_small(self) -> bool:
        """Has the product sent that the loop has just added. False where that may copy much:
        another thread must call `_send`."""
        if self._leaving:
            return True  # the end of the message under way sends the next one
        with self._lock:
            first = [job.plan.payload_bytes for job in itertools.islice(self._todo, 2)]
        if self._in_parts or len(first) > 1 or sum(first) > _SMALL_BYTES:
            return False
        self._send()
        return True


class Pipeline:
    """As `gemmd.Pipeline`. A future that is cancelled ends at once, or where its product has an
    `out`, when nothing is written there any more.

    async with g.pipeline() as p:
        futures = [await p.matmul(a, b) for a, b in pairs]
        async for c in p.results():
            ...
    """

    def __init__(self, client: Client, window: int, collect: bool = True) -> None:
        self._client = client
        self._collect = collect
        self._window = window
        self._room = asyncio.Semaphore(0)
        self._turn = asyncio.Lock()  # products go in the order of the calls
        # Makes copies, sends, and waits for the end, so that the loop does none of these. Not of
        # the client's pool, whose threads may all be in long calls.
        self._thread = ThreadPoolExecutor(1, "gemmd-aio-pipeline")
        self._waking = False  # the thread will send
        self._blocking: _Sent | None = None
        self._arrivals: Arrivals  # of the loop, with `_blocking`
        self._order: list[asyncio.Future[Any]] = []

    async def __aenter__(self) -> Pipeline:
        opening = self._thread.submit(self._open, asyncio.get_running_loop())
        try:
            await result(opening, opening.cancel)
        except BaseException as error:
            await self.__aexit__(type(error), error, None)
            raise
        return self

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        def on_room(count: int) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(self._give_room, count)

        self._arrivals = Arrivals(loop)
        self._blocking = _Sent(self._client._blocking, self._window, on_room)

    def _give_room(self, count: int) -> None:
        for _ in range(count):
            self._room.release()

    async def matmul(self, a: Any, b: Any, **options: Any) -> asyncio.Future[Any]:
        """An asyncio.Future of the product; waits where `window` products are under way."""
        future = await self._submit(a, b, options)
        if self._collect:
            self._order.append(future)
        return future

    async def _submit(self, a: Any, b: Any, options: dict[str, Any]) -> asyncio.Future[Any]:
        blocking = self._blocking
        if blocking is None:
            raise RuntimeError("a pipeline is used with `async with`")
        blocking._check()
        given = _plain_options(options)
        timeout = given.pop("timeout", None)
        make = partial(blocking._plan, _plain(a), _plain(b), timeout, given)
        async with self._turn:
            if _copies(_plain(a), _plain(b), given):
                making = self._thread.submit(make)
                plan = await result(making, making.cancel)
            else:
                plan = make()
            await self._room.acquire()
            future = blocking._enqueue(plan, collect=False)
            if not self._waking and not blocking.send_small():
                self._waking = True
                self._thread.submit(self._send, blocking)
        return self._arrivals.wrap(future, in_place=given.get("out") is not None)

    def _send(self, blocking: _Sent) -> None:
        self._waking = False  # first: what is added from now on may come too late for this one
        blocking._send()

    async def results(self) -> AsyncIterator[Any]:
        """The results of the products so far, in their order."""
        while self._order:
            yield await self._order.pop(0)

    async def as_completed(self) -> AsyncIterator[Any]:
        """The results of the products so far, as they end."""
        order, self._order = self._order, []
        for next_one in asyncio.as_completed(order):
            yield await next_one

    async def map(self, pairs: Iterable[tuple[Any, Any]], **options: Any) -> AsyncIterator[Any]:
        """The products of pairs of operands, in order."""
        ahead: list[asyncio.Future[Any]] = []
        for a, b in pairs:
            ahead.append(await self._submit(a, b, options))
            while ahead and ahead[0].done():
                yield ahead.pop(0).result()
        for future in ahead:
            yield await future

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._blocking is not None:
                ending = self._thread.submit(self._blocking.__exit__, kind, error, trace)
                await result(ending, self._blocking._call.cancel)
        finally:
            if self._blocking is not None:
                self._arrivals.deliver()  # every future is done behind the block
            self._thread.shutdown(wait=False)


def _copies(a: Any, b: Any, options: dict[str, Any]) -> bool:
    """Whether the plan of a product takes a copy of an operand."""
    given = (a, b, *(options.get(name) for name in ROLES))
    return any(
        operands.copied(value)
        for value in given
        if value is not None and not isinstance(value, BlockingHandle | TransposedHandle)
    )


__all__ = ["Client", "Handle", "Pipeline", "connect"]
