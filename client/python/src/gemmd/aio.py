"""The same client for asyncio.

    async with await gemmd.aio.connect("127.0.0.1:50051") as g:
        c = await g.matmul(a, b)

The names and options are those of `gemmd.Client`. Calls run on threads of the client's own, so
that the loop is never blocked by copies; a task that is cancelled cancels its call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from . import connect as connect_blocking
from .bench import Benchmark
from .call import Canceller
from .client import Client as BlockingClient
from .handle import Handle as BlockingHandle
from .handle import TransposedHandle
from .pipeline import Pipeline as BlockingPipeline
from .records import Info, Kernel, Matrix, RankedKernel, Traffic, TuningLoad
from .report import Report
from .tables import Table

Answer = TypeVar("Answer")

_THREADS = 32


async def connect(address: str = "127.0.0.1:50051", **options: Any) -> Client:
    """As `gemmd.connect`."""
    blocking = await asyncio.to_thread(partial(connect_blocking, address, **options))
    return Client(blocking)


def _plain(value: Any) -> Any:
    """An operand as the blocking client takes it."""
    if isinstance(value, Handle):
        return value._blocking
    return value


class Client:
    """Matrix products on one server, for asyncio. Used from one loop."""

    def __init__(self, blocking: BlockingClient) -> None:
        self._blocking = blocking
        self._pool = ThreadPoolExecutor(_THREADS, "gemmd-aio")

    async def _run(self, call: Callable[..., Answer], *args: Any, **options: Any) -> Answer:
        work = partial(call, *map(_plain, args), **{k: _plain(v) for k, v in options.items()})
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _run_cancellable(
        self, call: Callable[..., Answer], *args: Any, **options: Any
    ) -> Answer:
        canceller = options.setdefault("cancel", Canceller())
        task = asyncio.ensure_future(self._run(call, *args, **options))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            canceller.cancel()
            # The operands may be changed once this has returned.
            await asyncio.gather(task, return_exceptions=True)
            raise

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
        await self._run(self._blocking.close)
        self._pool.shutdown(wait=False)

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
        return Handle(self, await self._run(self._blocking.random, shape, **options))

    async def matrix(self, name: str, **options: Any) -> Handle:
        """As `gemmd.Client.matrix`."""
        return Handle(self, await self._run(self._blocking.matrix, name, **options))

    async def matrices(self, prefix: str = "", **options: Any) -> Table[Matrix]:
        """As `gemmd.Client.matrices`."""
        return await self._run(self._blocking.matrices, prefix, **options)

    async def delete(self, name: str, **options: Any) -> None:
        """As `gemmd.Client.delete`."""
        await self._run(self._blocking.delete, name, **options)

    async def info(self, **options: Any) -> Info:
        """As `gemmd.Client.info`."""
        return await self._run(self._blocking.info, **options)

    async def kernels(self, family: str = "", **options: Any) -> Table[Kernel]:
        """As `gemmd.Client.kernels`."""
        return await self._run(self._blocking.kernels, family, **options)

    async def explain(self, m: int, n: int, k: int, **options: Any) -> Table[RankedKernel]:
        """As `gemmd.Client.explain`."""
        return await self._run(self._blocking.explain, m, n, k, **options)

    async def traffic(self, limit: int = 100, **options: Any) -> Table[Traffic]:
        """As `gemmd.Client.traffic`."""
        return await self._run(self._blocking.traffic, limit, **options)

    async def reload_tuning(self, **options: Any) -> TuningLoad:
        """As `gemmd.Client.reload_tuning`."""
        return await self._run(self._blocking.reload_tuning, **options)

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
        return await self._client._run(self._blocking.numpy, out, **options)

    async def torch(self, out: Any = None, **options: Any) -> Any:
        """As `gemmd.Handle.torch`."""
        return await self._client._run(self._blocking.torch, out, **options)

    async def free(self) -> None:
        """As `gemmd.Handle.free`."""
        await self._client._run(self._blocking.free)

    def detach(self) -> Handle:
        """As `gemmd.Handle.detach`."""
        self._blocking.detach()
        return self

    async def __matmul__(self, other: Any) -> Any:
        return await self._client._run(self._client._blocking._operator, self, other)

    async def __rmatmul__(self, other: Any) -> Any:
        return await self._client._run(self._client._blocking._operator, other, self)

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


class Pipeline:
    """As `gemmd.Pipeline`.

    async with g.pipeline() as p:
        futures = [await p.matmul(a, b) for a, b in pairs]
        async for c in p.results():
            ...
    """

    def __init__(self, client: Client, window: int, collect: bool = True) -> None:
        self._client = client
        self._collect = collect
        self._window = window
        self._room = asyncio.Semaphore(window)
        self._blocking: BlockingPipeline | None = None
        self._order: list[asyncio.Future[Any]] = []

    async def __aenter__(self) -> Pipeline:
        self._blocking = await self._client._run(
            self._client._blocking.pipeline, self._window, collect=False
        )
        return self

    async def matmul(self, a: Any, b: Any, **options: Any) -> asyncio.Future[Any]:
        """An asyncio.Future of the product; waits where `window` products are under way."""
        future = await self._submit(a, b, options)
        if self._collect:
            self._order.append(future)
        return future

    async def _submit(self, a: Any, b: Any, options: dict[str, Any]) -> asyncio.Future[Any]:
        if self._blocking is None:
            raise RuntimeError("a pipeline is used with `async with`")
        await self._room.acquire()
        loop = asyncio.get_running_loop()
        try:
            given = {name: _plain(value) for name, value in options.items()}
            future: Future[Any] = self._blocking.matmul(_plain(a), _plain(b), **given)
        except BaseException:
            self._room.release()
            raise
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._room.release))
        return asyncio.wrap_future(future, loop=loop)

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
        if self._blocking is not None:
            await self._client._run(self._blocking.__exit__, kind, error, trace)


__all__ = ["Client", "Handle", "Pipeline", "connect"]
