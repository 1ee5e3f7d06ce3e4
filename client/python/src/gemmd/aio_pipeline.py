"""Many products under way on one stream, for asyncio: `gemmd.aio.Pipeline`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any

from . import operands
from .aio_handle import Owner, plain, plain_options
from .awaiting import Arrivals, result
from .client import Client as BlockingClient
from .futures import raise_first
from .handle import Handle, TransposedHandle
from .interrupt import Hold
from .pipeline import Pipeline as BlockingPipeline
from .product import ROLES

# Operands of a pipeline that are copied on the loop: another thread takes longer to wake.
_SMALL_BYTES = 64 << 10


class _Sent(BlockingPipeline):
    """A pipeline whose products are added by the loop, which must not wait or copy."""

    def __init__(
        self, client: BlockingClient, window: int, batch: bool, on_room: Callable[[int], None]
    ) -> None:
        self._on_room = on_room
        super().__init__(client, window, collect=False, batch=batch)

    def _give_room(self, count: int) -> None:
        self._on_room(count)

    def _take_unseen(self) -> list[BaseException]:
        return []  # the futures of the loop say what was asked for

    def send_small(self) -> bool:
        """Has the product sent that the loop has just added. False where that may copy much:
        another thread must call `_send`."""
        if self._leaving:
            return True  # the end of the message under way sends the next one
        with self._lock:
            first = [job.plan.payload_bytes for job in itertools.islice(self._todo, 2)]
        if self._in_parts or len(first) > 1 or sum(first) > _SMALL_BYTES:
            return False
        with Hold():
            self._send()
        return True


class Pipeline:
    """As `gemmd.Pipeline`. A future that is cancelled ends at once, or where its product has an
    `out`, when nothing is written there any more.

    async with g.pipeline() as p:
        futures = [await p.matmul(a, b) for a, b in pairs]
        async for c in p.results():
            ...

    The end of the block raises the first error that nobody asked for: see `gemmd.Pipeline`.
    A task asks by awaiting the future.
    """

    def __init__(
        self, client: Owner, window: int, collect: bool = True, batch: bool = True
    ) -> None:
        self._client = client
        self._collect = collect
        self._window = window
        self._batch = batch
        self._room = asyncio.Semaphore(0)
        self._turn = asyncio.Lock()  # products go in the order of the calls
        # Makes copies, sends, and waits for the end, so that the loop does none of these. Not of
        # the client's pool, whose threads may all be in long calls.
        self._thread = ThreadPoolExecutor(1, "gemmd-aio-pipeline")
        self._waking = False  # the thread will send
        self._blocking: _Sent | None = None
        self._arrivals: Arrivals  # of the loop, with `_blocking`
        self._order: deque[asyncio.Future[Any]] = deque()
        self._ended: asyncio.Queue[asyncio.Future[Any]] = asyncio.Queue()
        self._pending = 0  # futures that as_completed has yet to give

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
        self._blocking = _Sent(self._client._blocking, self._window, self._batch, on_room)

    def _give_room(self, count: int) -> None:
        for _ in range(count):
            self._room.release()

    async def matmul(self, a: Any, b: Any, **options: Any) -> asyncio.Future[Any]:
        """An asyncio.Future of the product; waits where `window` products are under way."""
        future = await self._submit(a, b, options)
        if self._collect:
            self._order.append(future)
            self._pending += 1
            future.add_done_callback(self._ended.put_nowait)
        return future

    async def _submit(self, a: Any, b: Any, options: dict[str, Any]) -> asyncio.Future[Any]:
        blocking = self._blocking
        if blocking is None:
            raise RuntimeError("a pipeline is used with `async with`")
        blocking._check()
        given = plain_options(options)
        timeout = given.pop("timeout", None)
        make = partial(blocking._plan, plain(a), plain(b), timeout, given)
        async with self._turn:
            if _copies(plain(a), plain(b), given):
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
            yield await self._order.popleft()

    async def as_completed(self) -> AsyncIterator[asyncio.Future[Any]]:
        """The futures of the products so far, as they end: those that `matmul` gave, all done."""
        while self._pending:
            self._pending -= 1
            try:
                future = await self._ended.get()
            except BaseException:
                self._pending += 1
                raise
            yield future

    async def map(
        self, pairs: Iterable[tuple[Any, Any]] | AsyncIterable[tuple[Any, Any]], **options: Any
    ) -> AsyncIterator[Any]:
        """The products of pairs of operands, in order. Where it is left early, or one of them
        fails, those behind are cancelled."""
        ahead: deque[asyncio.Future[Any]] = deque()
        try:
            async for a, b in _each(pairs):
                ahead.append(await self._submit(a, b, options))
                while ahead and ahead[0].done():
                    yield ahead.popleft().result()
            while ahead:
                yield await ahead.popleft()
        finally:
            for future in ahead:
                future.cancel()

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
                if kind is None:
                    await self._arrivals.settle()
        finally:
            if self._blocking is not None:
                self._arrivals.deliver()  # every future is done behind the block
                unseen = self._arrivals.take_unseen()
            self._thread.shutdown(wait=False)
        if self._blocking is not None and kind is None:
            raise_first(unseen)


async def _each(
    pairs: Iterable[tuple[Any, Any]] | AsyncIterable[tuple[Any, Any]],
) -> AsyncIterator[tuple[Any, Any]]:
    if isinstance(pairs, AsyncIterable):
        async for pair in pairs:
            yield pair
    else:
        for pair in pairs:
            yield pair


def _copies(a: Any, b: Any, options: dict[str, Any]) -> bool:
    """Whether the plan of a product takes a copy of an operand."""
    given = (a, b, *(options.get(name) for name in ROLES))
    return any(
        operands.copied(value)
        for value in given
        if value is not None and not isinstance(value, Handle | TransposedHandle)
    )
