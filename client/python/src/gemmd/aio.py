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
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from . import checks
from . import connect as connect_blocking
from .aio_handle import Handle, Operand, TransposedHandle, plain, plain_options
from .aio_pipeline import Pipeline
from .awaiting import NeverBegan, result
from .bench import Benchmark
from .call import Canceller
from .client import Client as BlockingClient
from .errors import Cancelled, DeadlineExceeded
from .handle import Handle as BlockingHandle
from .records import Info, Kernel, Matrix, RankedKernel, Traffic, TuningLoad
from .tables import Table

Answer = TypeVar("Answer")

_THREADS = 32
_MOST_THREADS = 1024


async def connect(
    address: str | None = None, *, threads: int = _THREADS, **options: Any
) -> Client:
    """As `gemmd.connect`. threads: how many calls run at once, 1 to 1024; each has a thread."""
    checks.integer(threads, "threads", 1, _MOST_THREADS)
    blocking = await asyncio.to_thread(partial(connect_blocking, address, **options))
    return Client(blocking, threads)


async def _not_cancelled(future: Future[Answer]) -> Answer:
    """A thread's answer. Where the task is cancelled the thread goes on, or begins yet."""
    return await asyncio.shield(asyncio.wrap_future(future))


class _OwnCanceller(Canceller):
    """Of one call, which may still wait for a thread."""

    work: Future[Any]

    def cancel(self) -> None:
        if not self.work.cancel():
            super().cancel()


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
            return call(*map(plain, args), **plain_options(options))
        given: Canceller | None = options.pop("cancel", None)
        own = _OwnCanceller()  # the task ends its own call; the given one may serve many
        own._begun = time.monotonic()
        timeout = options.get("timeout")
        if timeout is None:
            timeout = self._blocking._connection.options.timeout
        if timeout is not None:
            timeout = checks.timeout(timeout)
        if given is not None:
            checks.instance(given, "cancel", Canceller, "a gemmd.Canceller")
        work = partial(call, *map(plain, args), cancel=own, **plain_options(options))
        future = own.work = self._pool.submit(work)
        if given is not None:
            given._enter(own)
        try:
            return await result(future, own.cancel, timeout)
        except NeverBegan:
            if given is not None and given.cancelled:
                raise Cancelled(f"{call.__name__} was cancelled by its caller") from None
            calls = "calls of this client are" if self._threads > 1 else "call of this client is"
            raise DeadlineExceeded(
                f"{call.__name__} did not begin within its timeout of {timeout:g} s: "
                f"{self._threads} {calls} under way, and it has as many threads"
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
        result = await self._run_cancellable(self._blocking.matmul, a, b, **options)
        return Handle(self, result) if isinstance(result, BlockingHandle) else result

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

    async def matrix(self, name: str | None = None, **options: Any) -> Handle:
        """As `gemmd.Client.matrix`."""
        return Handle(self, await self._run_cancellable(self._blocking.matrix, name, **options))

    async def matrices(self, prefix: str = "", **options: Any) -> Table[Matrix]:
        """As `gemmd.Client.matrices`."""
        return await self._run_cancellable(self._blocking.matrices, prefix, **options)

    async def exists(self, name: str | None = None, **options: Any) -> bool:
        """As `gemmd.Client.exists`."""
        return await self._run_cancellable(self._blocking.exists, name, **options)

    async def delete(self, name: str | None = None, **options: Any) -> int:
        """As `gemmd.Client.delete`."""
        return await self._run_cancellable(self._blocking.delete, name, **options)

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

    async def _operator(self, left: Any, right: Any) -> Any:
        """`left @ right`, of which one is a handle at least."""
        if isinstance(left, Operand) and isinstance(right, Operand):
            return await self.keep(left, right)
        return await self.matmul(left, right)

    def pipeline(
        self, window: int = 256, *, collect: bool = True, batch: bool = True
    ) -> Pipeline:
        """As `gemmd.Client.pipeline`; used with `async with`."""
        return Pipeline(self, window, collect, batch)


__all__ = ["Client", "Handle", "Pipeline", "TransposedHandle", "connect"]
